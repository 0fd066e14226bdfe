"""Sub-groups: every measure with its interval in each, and one test for all of them together."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist._util.frames import frame
from caldist._util.text_tables import aligned
from caldist.data.categories import number_labels
from caldist.inference._limits import FEW
from caldist.inference._norms import make_norm
from caldist.inference._null import null_values, sums
from caldist.inference._resampling import Resampler, Sample, group_codes
from caldist.inference.intervals import Interval, confidence_interval
from caldist.measures.evaluation import measure_names

__all__ = ["Group", "GroupEvaluation", "evaluate_groups"]

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]

_DEFAULT = ("smooth_ce", "lower_distance", "brier_score")
_MEASURES = (
    "smooth_ce",
    "kernel_ce",
    "lower_distance",
    "random_interval_ce",
    "surrogate_interval_ce",
    "interval_ce",
    "brier_score",
)
_ROUNDING = 1e-9  # relative; statistics that differ by less are constant, scores equal


@dataclass(frozen=True)
class Group:
    """One sub-group of :func:`caldist.evaluate_groups`.

    Attributes
    ----------
    name
        Its label in ``by``.
    n_rows, n_positives
        Its rows, and those of label 1.
    intervals
        From the name of each measure to its value and interval.
    score
        How many standard deviations the smooth calibration error lies above its mean under
        calibration.
    pvalue
        The p-value of perfect calibration in this group, adjusted for looking at all groups.
    note
        What to beware of; empty as a rule.
    """

    name: Any
    n_rows: int
    n_positives: int
    intervals: dict[str, Interval]
    score: float
    pvalue: float
    note: str = ""


@dataclass(frozen=True)
class GroupEvaluation:
    """The result of :func:`caldist.evaluate_groups`: the groups, strongest evidence first."""

    groups: tuple[Group, ...]
    confidence_level: float
    n_resamples: int

    @property
    def pvalue(self) -> float:
        """The p-value of perfect calibration in all groups."""
        return self.groups[0].pvalue

    def __getitem__(self, name: object) -> Group:
        """Return the group of this name."""
        for group in self.groups:
            if group.name == name:
                return group
        raise KeyError(name)

    def columns(self) -> dict[str, list[Any]]:
        """Return the table as columns."""
        names = [group.name for group in self.groups]
        kinds = {type(name) for name in names}
        if len(kinds) > 1 or not kinds <= {str, int, float, bool}:
            names = [str(name) for name in names]  # tables want one plain type to a column
        table: dict[str, list[Any]] = {
            "group": names,
            "n_rows": [group.n_rows for group in self.groups],
            "n_positives": [group.n_positives for group in self.groups],
        }
        for measure in self.groups[0].intervals:
            for suffix, end in (("", "value"), ("_low", "low"), ("_high", "high")):
                table[measure + suffix] = [
                    getattr(group.intervals[measure], end) for group in self.groups
                ]
        for column in ("score", "pvalue", "note"):
            table[column] = [getattr(group, column) for group in self.groups]
        return table

    def frame(self) -> Any:
        """Return the table as a frame of pandas, polars or pyarrow, the first that is installed."""
        return frame(self.columns())

    def __str__(self) -> str:
        measures = list(self.groups[0].intervals)
        rows = [["group", "rows", "positives", *measures, "p-value", "note"]]
        rows += [
            [
                str(group.name),
                f"{group.n_rows:,}",
                f"{group.n_positives:,}",
                *(_short(group.intervals[measure]) for measure in measures),
                f"{group.pvalue:.3f}",
                group.note,
            ]
            for group in self.groups
        ]
        lines = aligned(rows, left={0, len(rows[0]) - 1})
        level = f"{100 * self.confidence_level:g}%"
        lines.append(f"Intervals: {level} each. p-values: adjusted for all groups.")
        return "\n".join(lines)


def _short(interval: Interval) -> str:
    return f"{interval.value:.4f} [{interval.low:.4f}, {interval.high:.4f}]"


def evaluate_groups(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    by: ArrayLike,
    measures: Iterable[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    rng: _validate.Rng = None,
    progress: bool = False,
) -> GroupEvaluation:
    r"""Evaluate sub-groups, and test them all for perfect calibration at one error rate.

    Labels are drawn from the predictions, for all rows at once, B times. The smooth calibration
    error of each group, in the data and in each replicate, is standardised over these B + 1
    values to a score Z, and

    .. math:: p_g = \frac{\#\{b : \max_h Z_{b,h} \ge Z_{0,g}\}}{B + 1}

    where b = 0 are the data.

    **What it means.** If all groups are perfectly calibrated, the probability that any p-value is
    at most α is at most α, in every sample size and for every number of groups. Looking at each
    group alone would find something in half of all cases with a dozen groups. A group of few rows
    must deviate more to be found. The intervals hold for each group alone, not for all at once.

    **What it estimates.** Intervals and p-values speak of the population behind each group.

    **Cost.** A sort and O(n) for each replicate of the test, and an interval for each group and
    measure: a second for a few groups, a minute or two for 1,000 of 100 rows each.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    by : array-like
        The sub-group of each row: text, numbers, categories or other hashable labels.
    measures : list of names, optional
        Which measures to show, out of those that :func:`caldist.confidence_interval` has an
        interval for, with their default options. By default ``smooth_ce``, ``lower_distance`` and
        ``brier_score``.
    confidence_level : float
        Of each interval.
    n_resamples : int
        B above, and the replicates of each interval.
    sample_weight : array-like, optional
        Weights must not depend on the labels.
    groups : array-like, optional
        The cluster of each row, where rows are not independent; see
        :func:`caldist.calibration_test`. Clusters may reach across sub-groups.
    rng : int, numpy.random.Generator or None
        With an integer, the intervals of a group are those that
        :func:`caldist.confidence_interval` gives for its rows and the same integer.
    progress : bool
        Show progress bars after two seconds.

    Returns
    -------
    GroupEvaluation
        ``groups``, strongest evidence first, each with ``name``, ``n_rows``, ``n_positives``,
        ``intervals``, ``score``, ``pvalue`` and ``note``; ``pvalue`` for all groups together;
        ``frame()`` for a table; printing shows it too. Fewer than ten rows of a label, or
        clusters with it, are noted and not warned of.

    References
    ----------
    Westfall and Young, "Resampling-Based Multiple Testing", 1993.

    Examples
    --------
    >>> import numpy as np, caldist
    >>> y_prob = np.tile(np.linspace(0.1, 0.9, 50), 2)
    >>> y_true = np.arange(100) * 7 % 50 < 50 * y_prob
    >>> y_true[:50] = False
    >>> by = ["north"] * 50 + ["south"] * 50
    >>> result = caldist.evaluate_groups(y_true, y_prob, by=by, rng=0)
    >>> [(group.name, group.pvalue < 0.05, group.note) for group in result.groups]
    [('north', True, 'only 0 positives'), ('south', False, '')]
    """
    names_of_measures = measure_names(
        _DEFAULT if measures is None else measures, _MEASURES, "the measures with an interval are"
    )
    confidence_level = _validate.check_fraction("confidence_level", confidence_level)
    resampler = Resampler.of(rng, n_resamples=n_resamples, progress=progress)
    label, prediction, weight = _validate.binary_inputs(y_true, y_prob, sample_weight)
    names, code = number_labels(by, label.size, "by")
    cluster = None if groups is None else group_codes(groups, label.size)[0]
    _check_weights(names, code, weight)
    score, pvalue = _simultaneous(code, label, prediction, weight, cluster, resampler)
    fresh = rng is None or isinstance(rng, np.random.Generator)
    seed = resampler.entropy if fresh else rng
    parts = np.split(np.argsort(code, kind="stable"), np.cumsum(np.bincount(code))[:-1])
    found = []
    for at, rows in _with_bar(parts, show=progress):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the note says it
            intervals = {
                name: confidence_interval(
                    label[rows],
                    prediction[rows],
                    measure=name,
                    confidence_level=confidence_level,
                    n_resamples=n_resamples,
                    sample_weight=None if weight is None else weight[rows],
                    groups=None if cluster is None else cluster[rows],
                    rng=seed,
                )
                for name in names_of_measures
            }
        counting = rows if weight is None else rows[weight[rows] > 0]
        found.append(
            Group(
                name=names[at],
                n_rows=rows.size,
                n_positives=int(label[rows].sum()),
                intervals=intervals,
                score=float(score[at]),
                pvalue=float(pvalue[at]),
                note=_note(label[counting], None if cluster is None else cluster[counting]),
            )
        )
    found.sort(key=lambda group: (group.pvalue, -group.score))
    return GroupEvaluation(tuple(found), confidence_level, resampler.n_resamples)


def _simultaneous(
    code: Integers,
    label: NDArray[np.uint8],
    prediction: Vector,
    weight: Vector | None,
    cluster: Integers | None,
    resampler: Resampler,
) -> tuple[Vector, Vector]:
    """Return the score and the adjusted p-value of each group."""
    sample, starts = _side_by_side(code, label, prediction, weight, cluster)
    ends = [*starts[1:], sample.prediction.size]
    parts = [
        (slice(start, end), make_norm("smooth_ce", sample.prediction[start:end]))
        for start, end in zip(starts, ends, strict=True)
    ]
    values = null_values(sample, lambda c: [norm(c[part]) for part, norm in parts], resampler)
    largest = values.max(axis=0)
    values /= np.where(largest > 0, largest, 1.0)  # squares of a tiny group's values would vanish
    deviation = values.std(axis=0)
    varies = deviation > _ROUNDING * values.mean(axis=0)
    score = np.zeros_like(values)
    np.divide(values - values.mean(axis=0), deviation, out=score, where=varies)
    most = np.sort(score.max(axis=1))
    reached = most.size - np.searchsorted(most, score[0] - _ROUNDING, side="left")
    return score[0], reached / most.size


def _side_by_side(
    code: Integers,
    label: NDArray[np.uint8],
    prediction: Vector,
    weight: Vector | None,
    cluster: Integers | None,
) -> tuple[Sample, list[int]]:
    """Return the supports of all groups as one sample, and where each group starts."""
    order = np.lexsort((prediction, code))
    if weight is not None:
        order = order[weight[order] > 0]
    share = np.full(order.size, 1 / order.size) if weight is None else weight[order] / weight.sum()
    v, g, y = prediction[order] + 0.0, code[order], label[order].astype(np.int64)
    new_group = np.concatenate(([True], g[1:] != g[:-1]))
    new = new_group | np.concatenate(([True], v[1:] != v[:-1]))
    place = np.cumsum(new) - 1
    sample = Sample(
        prediction=v[new],
        residual=sums(place, share * (y - v), int(place[-1]) + 1),
        place=place,
        label=y,
        count=np.ones(order.size, dtype=np.int64),
        share=share,
        group=None if cluster is None else cluster[order],
        n_groups=0 if cluster is None else int(cluster.max()) + 1,
    )
    return sample, place[new_group].tolist()


def _note(label: NDArray[np.uint8], cluster: Integers | None) -> str:
    ones = int(label.sum())
    counts = {"positive": ones, "negative": label.size - ones}
    if cluster is not None:
        counts = {"cluster": np.unique(cluster).size}
        if counts["cluster"] >= FEW:
            counts["positive cluster"] = np.unique(cluster[label == 1]).size
            counts["negative cluster"] = np.unique(cluster[label == 0]).size
    few = [f"{n} {what}{'' if n == 1 else 's'}" for what, n in counts.items() if n < FEW]
    return f"only {' and '.join(few)}" if few else ""


def _with_bar(parts: list[Integers], *, show: bool) -> Iterator[tuple[int, Integers]]:
    """Enumerate the groups, with a progress bar where asked for."""
    if not show:
        yield from enumerate(parts)
        return
    from tqdm.auto import tqdm  # not needed otherwise

    yield from tqdm(enumerate(parts), total=len(parts), desc="intervals", unit=" groups", delay=2)


# -- arguments -------------------------------------------------------------------------------


def _check_weights(names: list[Any], code: Integers, weight: Vector | None) -> None:
    if weight is None:
        return
    empty = np.bincount(code, weights=weight) == 0
    if empty.any():
        at = _validate.first(empty)
        message = (
            f"sample_weight is 0 in all rows of group {_validate.show(names[at])}, the first of "
            f"which is sample_weight[{_validate.first(code == at)}]: leave these rows out."
        )
        raise ValueError(message)
