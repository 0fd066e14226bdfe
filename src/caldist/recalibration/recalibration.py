"""``recalibrate`` and ``evaluate_map``: a monotone map, and how well it calibrates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.products import dot
from caldist._util.results import Result, plain
from caldist._util.types import Vector
from caldist._util.version import __version__
from caldist._util.warning import warn
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import InvalidInput, InvalidType, answering
from caldist.inference.folds import FOLDS, ordered_units
from caldist.inference.intervals import Interval
from caldist.inference.resampling import Resampler, order_rank
from caldist.inference.sample import Units
from caldist.measures.corp import Corp, corp
from caldist.recalibration import _table, statement
from caldist.recalibration._fits import CELLS, Candidate, Counts, Fit, fit_all, sharp_margins
from caldist.recalibration._selection import CANDIDATES, CandidateLoss, Selection
from caldist.recalibration.calibration_map import CalibrationMap, mapped
from caldist.recalibration.statement import LossChange

Family = Literal[
    "auto", "identity", "shift", "temperature", "sigmoid", "beta", "isotonic", "monotone"
]
Method = Literal["resampling", "finite_sample"]

FAMILIES = ("auto", "identity", "shift", "temperature", "sigmoid", "beta", "isotonic", "monotone")
_SLACK = 2.0  # of the family "monotone"
_FOLDS = 20  # the random stream of dealing
_FALLS = 1e-12  # by which a map made elsewhere may decrease, as rounding does
_NO_LOSS: Mapping[str, LossChange] = MappingProxyType({})
_NOT_ASKED = "none was asked for (confidence_level is None)."


@dataclass(frozen=True, eq=False)
class Recalibration(Result):
    """A monotone map of predictions, and how well it calibrates.

    Attributes
    ----------
    map
        The map, a table; None where one made elsewhere is not monotone.
    family
        The kind of map: "identity", "shift", "temperature", "sigmoid", "beta", "monotone" or
        "isotonic"; "given" for one made elsewhere.
    slack
        By which factor slopes may differ from those of a sigmoid or beta map: 1 for these
        themselves, infinity for isotonic regression; None for a map made elsewhere.
    before, after
        For "smooth_ce", "lower_distance" and "distance" the value on the rows and limits for the
        population, without and with the map; the same where the map is the identity. For the
        distance itself the value is an upper bound, the mean cost of moving predictions to the mean
        label of their bin. With ``method="finite_sample"`` all limits hold at once. Empty where no
        statement is made.
    loss
        By how much recalibration changes the Brier score and the log loss, on rows that had no part
        in the fit: keys "brier_score" and "log_loss".
    candidates
        The maps that were compared, simplest first, with their cross-validated losses.
    resolution
        The Brier score of the mapped rows in parts: what a monotone map could still take off, what
        the ranking explains, what nothing does.
    auc_before, auc_after
        The probability that a row of label 1 ranks above one of label 0, ties half; None where a
        label is missing.
    confidence_level, method, n_resamples
        The confidence level of the limits, how they are made ("resampling" or "finite_sample"), and
        from how many replicates; None and 0 where there are none.
    n_rows, n_positives
        How many rows there are, and how many of label 1, as far as that is known.
    rounding
        The mean distance by which predictions were rounded, at most; the limits allow for it.
    reason
        Why no statement is made; empty if one is.
    """

    map: CalibrationMap | None
    family: str
    slack: float | None
    before: Mapping[str, Interval]
    after: Mapping[str, Interval]
    loss: Mapping[str, LossChange]
    candidates: Mapping[str, CandidateLoss]
    resolution: Corp | None
    auc_before: float | None
    auc_after: float | None
    confidence_level: float | None
    method: str
    n_resamples: int
    n_rows: int | None
    n_positives: int | None
    rounding: float = 0.0
    reason: str = ""

    def __eq__(self, other: object) -> bool:
        """Whether all that is said is the same."""
        if not isinstance(other, Recalibration):
            return NotImplemented
        return self.map == other.map and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and unpickle by way of dicts, as read-only mappings cannot be pickled."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        dicts = {key: dict(v) if isinstance(v, Mapping) else v for key, v in values.items()}
        return _unpickled, (dicts,)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values; the map as what its file holds."""
        content = super().to_dict()
        content["map"] = None if self.map is None else self.map.to_dict()
        return content

    def _lines(self) -> list[dict[str, Any]]:
        """Return a line for each measure and loss."""
        lines: list[dict[str, Any]] = []
        for name, bounds in self.after.items():
            for when, found in (("before", self.before[name]), ("after", bounds)):
                content = found.to_dict()
                ends = {key: content[key] for key in ("value", "lower", "upper")}
                lines.append({"measure": name, "when": when, **ends})
        for name, change in self.loss.items():
            lines.append(
                {"measure": name, "when": "change", "value": change.change}
                | {"lower": change.lower, "upper": change.upper}
            )
        return lines or [
            {"measure": None, "when": None, "value": None, "lower": None, "upper": None}
        ]

    def __str__(self) -> str:
        from caldist.recalibration._words import sentences

        return sentences(self)


def _unpickled(values: dict[str, Any]) -> Recalibration:
    read_only = {key: MappingProxyType(v) for key, v in values.items() if isinstance(v, dict)}
    return Recalibration(**values | read_only)


@answering
def recalibrate(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    family: Family = "auto",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    clusters: ArrayLike | None = None,
    confidence_level: float | None = 0.95,
    method: Method = "resampling",
    n_resamples: int = 999,
    rng: validate.Rng = 0,
    progress: bool = False,
) -> Recalibration:
    r"""Fit a monotone map that calibrates predictions, and state how well it does.

    **What it means.** ``map`` turns predictions into recalibrated ones. It increases strictly, so
    the ranking of rows stays as it is. There are two exceptions: "isotonic" makes ties, and where
    predictions rank no better than chance the map is constant, with a warning. The statement is
    about the table that is exported. It has at most 256 points and lies within 1% of κ(1 - κ) of
    the fit κ where these are enough. With the confidence level, the smooth calibration error of the
    population was at least ``before["smooth_ce"].lower`` and is at most
    ``after["smooth_ce"].upper``, for rows drawn like these. All rows fit the map *and* judge it.
    That is valid because the bound holds for all monotone maps at once, so neither the fit nor the
    choice of a family costs anything, and it is about half as large as one from rows held out.
    "identity" is a result, too: these rows support no map that improves the predictions.

    **Rows that trained the model void the statement.** Their labels are known to the model, so its
    predictions look better on them than on others. Pass rows that the model has not seen. Nor does
    the statement hold after the population has changed.

    **Families.** With A = log v and B = -log(1 - v), slightly softened at the ends, predictions
    become σ of: A + B + c ("shift", as after under-sampling), a(A + B) ("temperature"),
    a(A + B) + c ("sigmoid"), aA + bB + c ("beta"). "monotone" lets slopes differ from those of a
    sigmoid by a factor of at most 2, and maximises the likelihood over all such maps, exactly; with
    an infinite factor it is "isotonic". "auto" compares 17 of these, five factors among them, by
    cross-validated log loss and takes the simplest that is within half a standard error of the
    best; below 75 rows it takes the sigmoid.

    **What it estimates.** ``before`` and ``after`` describe the population. So does ``loss``: the
    whole procedure, selection included, is repeated on four fifths of the rows and judged on the
    fifth, five times. Limits for the distance to calibration itself shrink only as n^(-1/3).
    Where predictions were nearly calibrated, the smooth calibration error may be larger after
    recalibration than before, by the price of estimating a mean, while the log loss falls.

    **Cost.** A sort and some hundred fits on at most 4,096 cells; with a statement three times
    that, two passes over the rows for each replicate and measure, and what
    :func:`caldist.distance_bracket` costs. Of a summary it does not depend on the number of rows.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once. One on a grid is recalibrated at
        the means of its cells, and every bound of calibration after allows for where rows lie in
        them.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    family : str
        The kind of map: "auto", "identity", "shift", "temperature", "sigmoid", "beta", "isotonic",
        or "monotone", whose slopes differ from those of a sigmoid by a factor of at most 2.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    clusters : array-like, optional
        The cluster of each row; see :func:`caldist.confidence_interval`. Folds and signs go by
        cluster.
    confidence_level : float or None
        None: the map alone, without a statement.
    method : "resampling" or "finite_sample"
        How the limits are made. "finite_sample" uses an inequality that is proved for every number
        of independent rows of equal weight; its limits are two to three times as wide.
    n_resamples : int
        The number of replicates: at least 2/(1 - confidence_level) - 1.
    rng : int, numpy.random.Generator or None
        The same rows give the same answer, in any order and on any number of cores; None draws a
        fresh seed.
    progress : bool
        Show a progress bar after two seconds.

    Returns
    -------
    Recalibration

    Warns
    -----
    UserWarning
        Where the map is constant: only one label, or a ranking that says nothing about it.

    See Also
    --------
    caldist.recalibration.evaluate_map : the same statement for a map made elsewhere.

    Examples
    --------
    >>> import caldist
    >>> demo = caldist.datasets.load_demo()
    >>> found = caldist.recalibrate(demo.y_true, demo.y_prob["random_forest"], n_resamples=99)
    >>> found.family, found.before["smooth_ce"].lower > found.after["smooth_ce"].upper
    ('temperature', True)
    >>> found.map([0.2, 0.5, 0.8]).round(2)  # the forest was too modest
    array([0.01, 0.5 , 0.99])
    >>> print(found)
    Recalibrated by a temperature, as a table of ... points. With 95% confidence the smooth ...
    """
    validate.check_choice("family", family, FAMILIES)
    candidates = _candidates(family)
    asked = _Asked.of(confidence_level, method, n_resamples, rng, progress=progress)
    rows = Rows.of(
        y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, clusters=clusters
    )
    units = ordered_units(rows)
    if confidence_level is not None:
        statement.refuse_unproved(units, method)

    selection = Selection(units, candidates, asked.resampler.stream(_FOLDS))
    chosen = selection.chosen()
    assert chosen is not None  # noqa: S101 -- rows are never none
    fit = chosen.fit
    _warn_if_flat(fit, Counts.of(units))
    table = CalibrationMap(*_table_of(fit))
    starts, parameters = fit.starts, fit.candidate.parameters
    return _stated(
        rows,
        units,
        table,
        asked,
        judge=lambda: _out_of_folds(selection),
        remainder=statement.penalty(units, fit(units.prediction), starts, parameters),
        family=fit.candidate.family,
        slack=fit.candidate.slack,
        candidates=chosen.candidates,
    )


@answering
def evaluate_map(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    map: Any,  # noqa: A002 -- the word that everyone uses for it
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    clusters: ArrayLike | None = None,
    confidence_level: float | None = 0.95,
    method: Method = "resampling",
    n_resamples: int = 999,
    rng: validate.Rng = 0,
    progress: bool = False,
) -> Recalibration:
    r"""State how well a monotone map calibrates that was made elsewhere.

    **What it means.** The statement of :func:`caldist.recalibrate`, for any monotone map: with the
    confidence level, the smooth calibration error of the population was at least ``lower`` of
    ``before`` without it and is at most ``upper`` of ``after`` with it. The map may have been
    fitted to these very rows. A callable or a fitted estimator becomes a table of at most
    256 points, and the table is what the statement is about.

    A map that is not monotone gets no statement, and ``reason`` says where it decreases: the bound
    holds for all *monotone* maps at once. ``loss`` is measured on these rows, so it is right only
    for a map that was made from other rows.

    **What it estimates.** The population.

    **Cost.** That of :func:`caldist.recalibrate` without the fits.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1, before the map.
    map : CalibrationMap, table, callable or fitted estimator
        A table is a pair (x, y) or a mapping with these keys. A callable takes an array of
        probabilities. Of an estimator of scikit-learn ``predict_proba`` is used, or else
        ``predict``, or else ``transform``, with the scores as its only feature.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    clusters : array-like, optional
        The cluster of each row; see :func:`caldist.confidence_interval`.
    confidence_level : float or None
        None: no statement.
    method : "resampling" or "finite_sample"
        See :func:`caldist.recalibrate`.
    n_resamples : int
        The number of replicates: at least 2/(1 - confidence_level) - 1.
    rng : int, numpy.random.Generator or None
        The same rows give the same answer, in any order and on any number of cores; None draws a
        fresh seed.
    progress : bool
        Show a progress bar after two seconds.

    Returns
    -------
    Recalibration

    Examples
    --------
    >>> import caldist
    >>> from caldist.recalibration import evaluate_map
    >>> demo = caldist.datasets.load_demo()
    >>> y_true, y_prob = demo.y_true, demo.y_prob["random_forest"]
    >>> def sharper(v):
    ...     return v**2 / (v**2 + (1 - v) ** 2)
    >>> found = evaluate_map(y_true, y_prob, map=sharper, n_resamples=99)
    >>> found.before["smooth_ce"].lower > 0.03, found.after["smooth_ce"].upper < 0.03
    (True, True)
    >>> wrong = evaluate_map(y_true, y_prob, map=lambda v: (v - 0.5) ** 2)
    >>> wrong.map is None, wrong.reason
    (True, 'the map is not monotone: it falls from ... at ... to ... at ....')
    """
    asked = _Asked.of(confidence_level, method, n_resamples, rng, progress=progress)
    rows = Rows.of(
        y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, clusters=clusters
    )
    units = ordered_units(rows)
    if confidence_level is not None:
        statement.refuse_unproved(units, method)
    counts = Counts.of(units)
    merged = counts.merged(counts.cells(CELLS))
    table, reason = _given(map, merged)
    # It may be anything monotone that was fitted to these rows: isotonic regression is the most.
    free = fit_all(merged, [Candidate("soft", math.inf)])[0]
    remainder, after = 0.0, units.prediction
    if table is not None:
        after = mapped(table, units.prediction)
        remainder = statement.penalty(units, after, free.starts, 0)
    return _stated(
        rows,
        units,
        table,
        asked,
        judge=lambda: (units, after[units.place]),
        remainder=remainder,
        family="given",
        slack=None,
        candidates={},
        reason=reason,
    )


# -- what both have in common --------------------------------------------------------------------


@dataclass(frozen=True)
class _Asked:
    """Options of the statement, checked."""

    confidence_level: float | None
    method: str
    resampler: Resampler

    @classmethod
    def of(
        cls,
        confidence_level: float | None,
        method: str,
        n_resamples: int,
        rng: validate.Rng,
        *,
        progress: bool,
    ) -> _Asked:
        validate.check_choice("method", method, ("resampling", "finite_sample"))
        resampler = Resampler.of(rng, n_resamples=n_resamples, progress=progress)
        if confidence_level is not None:
            confidence_level = validate.check_fraction("confidence_level", confidence_level)
            if method == "resampling":
                order_rank(resampler.n_resamples, 1 - (1 - confidence_level) / 2)
        return cls(confidence_level, method, resampler)


def _candidates(family: str) -> tuple[Candidate, ...]:
    if family == "auto":
        return CANDIDATES
    if family == "monotone":
        return (Candidate("soft", _SLACK),)
    if family == "isotonic":
        return (Candidate("soft", math.inf),)
    return (Candidate("soft" if family == "sigmoid" else family),)


def _out_of_folds(selection: Selection) -> tuple[Units, Vector]:
    """Return the rows, and what the whole procedure makes of each without those of its fold."""
    units, fold = selection.folds.units, selection.folds.fold[0]
    after = units.prediction[units.place]
    for k in range(FOLDS):
        own, chosen = fold == k, selection.chosen(without=k)
        if chosen is not None:
            table = CalibrationMap(*_table_of(chosen.fit))
            after[own] = mapped(table, units.prediction)[units.place[own]]
    return units, after


def _table_of(fit: Fit) -> tuple[Vector, Vector]:
    """Return the table of a fit."""
    ends = np.array([0.0, 1.0])
    if fit.scale is None:
        return ends, ends
    if fit.is_flat:
        return ends, fit(ends)
    points = np.empty(0) if fit.at is None else fit.at
    x = _table.grid(fit.scale.margins, points)
    return _table.tabulate(fit, x, strict=fit.candidate.slack < math.inf)


def _warn_if_flat(fit: Fit, counts: Counts) -> None:
    if not counts.has_both:
        label = int(counts.ones.any())
        message = f"all rows have label {label}: the map is as good as one label can make it."
        warn(message)
    elif fit.is_flat:
        message = (
            "the map is constant, because the ranking of these predictions says nothing about "
            "the labels: larger ones do not have more labels 1."
        )
        warn(message)


def _given(given: Any, counts: Counts) -> tuple[CalibrationMap | None, str]:
    """Return a map made elsewhere as a table, or why there is none."""
    if isinstance(given, CalibrationMap):
        return given, ""
    if isinstance(given, Mapping) and {"x", "y"} <= set(given):
        return CalibrationMap(given["x"], given["y"]), ""
    if isinstance(given, tuple | list) and len(given) == 2:
        return CalibrationMap(given[0], given[1]), ""
    function = _function(given)
    x = _table.grid(sharp_margins(counts), counts.prediction)
    value = _values(function, x)
    falls = value[:-1] - value[1:]
    if falls.max() > _FALLS:
        at = int(falls.argmax())
        return None, (
            f"the map is not monotone: it falls from {value[at]:.6g} at {x[at]:.6g} to "
            f"{value[at + 1]:.6g} at {x[at + 1]:.6g}."
        )
    knots = _table.tabulate(lambda _: value, x, strict=False, finest=True)
    return CalibrationMap(*knots), ""


def _function(given: Any) -> Callable[[Vector], Any]:
    """Return what maps an array of scores."""
    if hasattr(given, "predict_proba"):
        return lambda v: np.asarray(given.predict_proba(v[:, None]))[:, -1]
    for name in ("predict", "transform"):
        if hasattr(given, name):
            return lambda v: np.asarray(getattr(given, name)(v[:, None])).reshape(-1)
    if callable(given):
        return given  # type: ignore[no-any-return]
    raise InvalidType(
        argument="map",
        value=given,
        reason=f"something of type {type(given).__name__} is no map",
        remedy="Pass a CalibrationMap, a table (x, y), a callable or a fitted estimator.",
    )


def _values(function: Callable[[Vector], Any], x: Vector) -> Vector:
    value = validate.real_vector(function(x.copy()), "map(y_prob)")
    validate.check_size("map(y_prob)", value.size, "y_prob", x.size)
    outside = ~((value >= 0) & (value <= 1))
    if outside.any():
        at = validate.first(outside)
        raise InvalidInput(
            argument=f"map({x[at]:.6g})",
            value=value[at],
            reason="a map must return a probability for every score between 0 and 1",
            remedy="For scikit-learn's IsotonicRegression set out_of_bounds='clip'.",
        )
    return np.ascontiguousarray(value, dtype=np.float64)


def _stated(
    rows: Rows,
    units: Units,
    table: CalibrationMap | None,
    asked: _Asked,
    *,
    judge: Callable[[], tuple[Units, Vector]],
    remainder: float,
    family: str,
    slack: float | None,
    candidates: Mapping[str, CandidateLoss],
    reason: str = "",
) -> Recalibration:
    """Make the statement about a table, or say why there is none.

    ``judge`` returns rows, and what maps from other rows make of their predictions.
    """
    level = asked.confidence_level
    reason = reason or (_NOT_ASKED if level is None else statement.why_none(units, asked.method))
    before: Mapping[str, Interval] = MappingProxyType({})
    after, losses = before, _NO_LOSS
    resolution, auc_after = None, None
    if table is not None:
        after_map = statement.mapped_units(units, table)
        joint = statement.joint_of(after_map)
        resolution, auc_after = corp(joint), _auc(joint)
        if not reason and level is not None:
            risk = 1 - level
            before = statement.bounds_before(rows, risk, asked.method, asked.resampler)
            after = before  # of the identity, which no label has moved
            if not table.is_identity:
                after = statement.bounds_after(
                    after_map,
                    risk,
                    asked.method,
                    asked.resampler,
                    remainder=remainder,
                    rounding=statement.rounding_of(rows.joint, table),
                )
            losses = statement.losses(*judge(), risk)
        said = None
        if not reason:
            said = {"confidence_level": level, "method": asked.method}
            said |= {"before": plain(before), "after": plain(after)}
        provenance = {
            "family": family,
            "slack": None if slack == math.inf else slack,
            "n_rows": rows.n_rows,
            "n_positives": rows.n_positives,
            "caldist": __version__,
            "statement": said,
        }
        if family != "given":
            table = CalibrationMap(table.x, table.y, provenance=provenance)
    return Recalibration(
        map=table,
        family=family,
        slack=slack,
        before=before,
        after=after,
        loss=losses,
        candidates=MappingProxyType(dict(candidates)),
        resolution=resolution,
        auc_before=_auc(statement.joint_of(units)),
        auc_after=auc_after,
        confidence_level=level,
        method=asked.method,
        n_resamples=asked.resampler.n_resamples if after and asked.method[0] == "r" else 0,
        n_rows=rows.n_rows,
        n_positives=rows.n_positives,
        rounding=rows.joint.radius,
        reason=reason,
    )


def _auc(joint: Joint) -> float | None:
    """Return the probability that a row of label 1 ranks above one of label 0, ties half."""
    zeros, ones = joint.mass0, joint.mass1
    pairs = float(zeros.sum() * ones.sum())
    if pairs == 0:
        return None
    below = np.cumsum(zeros) - zeros / 2
    return dot(ones, below) / pairs
