"""Recalibration: how often its statement holds, how large its bound is, and how good its maps are.

Six kinds of cells. "coverage": how often the population's smCE and ldCE lie beyond the limits that
``recalibrate`` states, at 90%, so 5% on each side. "bound": the mean upper limit of smCE after,
beside that of a map fitted to one half of the rows and judged on the other. "quality": what maps
lose against E[y | v] on the population of laws, beside those of other libraries. "real": the same
on held-out rows of data sets that come with scikit-learn. "few" and "few real": whether with few
rows to take the sigmoid, as ``recalibrate`` does, is better than to select there, too.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import caldist
from caldist import Joint
from studies.laws import ATOMS, LAWS, Law, Vector, identity, midpoints, stream
from studies.runs import Row
from studies.truth import SLACK

__all__ = [
    "FAMILIES",
    "FULL",
    "REAL",
    "RECALIBRATED",
    "ROWS",
    "Plan",
    "cells",
    "recalibration_cell",
]

LEVEL = 0.9
ROWS = (300, 1000, 4000)
FEW_ROWS = (25, 50, 75, 100, 150)
BOUND_ROWS = 800
FAMILIES = ("auto", "sigmoid", "isotonic")
TOLERANCE = 0.02  # what the share of misses may be above its nominal value
_RESAMPLES = 999  # what users get, where the size of the bound is the question
_QUALITY_ATOMS = 4_000
_CERTAIN = 1e-12  # predictions of 0 and 1 that fail would cost infinitely much

Labels = NDArray[np.int64]
Map = Callable[[Vector], Vector]
Fitter = Callable[[Labels, Vector], Map]


def _plateau(u: Vector) -> Vector:
    """Return frequencies that never leave the middle half."""
    return np.clip(u, 0.25, 0.75)


def _blend(u: Vector) -> Vector:
    """Return the mean of frequencies whose logits are 2 too small and 2 too large."""
    odds = u / (1 - u)
    low, high = odds * math.exp(-2), odds * math.exp(2)
    return np.asarray(0.5 * low / (1 + low) + 0.5 * high / (1 + high))


def _root(u: Vector) -> Vector:
    return np.sqrt(u)


def _cents(u: Vector) -> Vector:
    """Return predictions with one decimal at the ends and two in the middle."""
    return np.where(np.abs(u - 0.5) < 0.3, np.round(u, 2), np.round(u, 1))


def _skewed(u: Vector) -> Vector:
    return np.asarray(1 - (1 - u) ** 3)


# One prediction, and laws that were made for the upper end of the distance.
_NOT_RECALIBRATED = {"constant", "unequal clusters", "narrow", "few atoms"}
RECALIBRATED: dict[str, Law] = {
    **{name: LAWS[name] for name in LAWS if name not in _NOT_RECALIBRATED},
    **{
        law.name: law
        for law in (
            Law("plateau", "frequencies between 0.25 and 0.75 alone", identity, _plateau),
            Law("blend", "two populations, logits 2 too small and 2 too large", identity, _blend),
            Law("root", "frequencies are roots of the predictions", identity, _root),
            Law("cents", "predictions with one or two decimals", _cents, _skewed),
        )
    },
}
"""Those of the other studies, where there is more than one prediction, and four more."""

BALANCED = tuple(name for name in RECALIBRATED if "rare" not in name and "clusters" not in name)
"""Independent rows of labels that are not rare."""

FEW_LAWS = BALANCED
"""Those of which so few rows have both labels."""


@dataclass(frozen=True)
class Plan:
    """How much work a cell is.

    Attributes
    ----------
    seed
        Of all random streams.
    data_sets
        Data sets of cells of coverage, by the number of rows.
    n_resamples
        Replicates for each statement, but for the bound: there as many as by default.
    bound_sets, quality_sets, real_splits, few_sets
        Data sets, or splits of a real one, of the other cells.
    """

    seed: int = 1
    data_sets: tuple[int, ...] = (200, 200, 100)
    n_resamples: int = 99
    bound_sets: int = 30
    quality_sets: int = 20
    real_splits: int = 20
    few_sets: int = 60

    def __str__(self) -> str:
        peers = ", ".join(name for name in _PEERS if find_spec(_PEERS[name]) is not None)
        return (
            f"seed {self.seed}; data sets {self.data_sets}, {self.bound_sets}, "
            f"{self.quality_sets}, {self.real_splits}, {self.few_sets}; "
            f"resamples {self.n_resamples}; {peers}"
        )


FULL = Plan()


def cells(rows: Sequence[int] = ROWS) -> list[tuple[str | int, ...]]:
    """Return (kind, law, rows, family or "all") of all cells, the slow ones first."""
    found: list[tuple[str | int, ...]] = []
    for n in sorted(rows, reverse=True):
        found += [("coverage", law, n, family) for law in RECALIBRATED for family in FAMILIES]
        found += [
            ("quality", law, n, "all") for law in RECALIBRATED if not RECALIBRATED[law].clustered
        ]
    found += [("bound", law, BOUND_ROWS, family) for law in BALANCED for family in FAMILIES]
    found += [("real", name, 0, "all") for name in REAL]
    found += [("few", law, n, "all") for law in FEW_LAWS for n in FEW_ROWS]
    return found + [("few real", name, 0, "all") for name in REAL]


def recalibration_cell(kind: str, name: str, n: int, method: str, *, plan: Plan) -> list[Row]:
    """Simulate one cell and return a row for each quantity.

    One thread is used, because the cells share the cores already.
    """
    with mock.patch.dict(os.environ, CALDIST_NUM_THREADS="1"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "coverage":
            return _coverage(RECALIBRATED[name], n, method, plan)
        if kind == "bound":
            return _bound(RECALIBRATED[name], n, method, plan)
        if kind == "quality":
            return _quality(RECALIBRATED[name], n, plan)
        if kind == "few":
            return _few(RECALIBRATED[name], n, plan)
        return _few_real(name, plan) if kind == "few real" else _real(name, plan)


def _row(kind: str, name: str, n: int, method: str, quantity: str, values: Sequence[float]) -> Row:
    """Return the mean of values with its standard error."""
    array = np.asarray(values, dtype=np.float64)
    error = array.std() / math.sqrt(max(1, array.size)) if array.size else math.nan
    return {
        "kind": kind,
        "law": name,
        "rows": str(n),
        "method": method,
        "quantity": quantity,
        "data_sets": str(array.size),
        "mean": f"{array.mean() if array.size else math.nan:.6g}",
        "error": f"{error:.3g}",
    }


# -- the statement -------------------------------------------------------------------------------


def _population(law: Law, function: Map, atoms: int = ATOMS) -> Joint:
    u = midpoints(atoms)
    rate = law.frequency(u)
    return Joint.from_masses(function(law.prediction(u)), 1 - rate, rate)


def _coverage(law: Law, n: int, family: str, plan: Plan) -> list[Row]:
    original = law.population()
    before = {"smooth_ce": caldist.smooth_ce(original)}
    before["lower_distance"] = caldist.lower_distance(original)
    found: dict[str, list[float]] = {}
    for at in range(plan.data_sets[ROWS.index(n)]):
        sample = law.draw(n, stream(plan.seed, law.name, n, at))
        result = caldist.recalibrate(
            sample.y_true, sample.y_prob, family=family, clusters=sample.clusters,  # type: ignore[arg-type]
            confidence_level=LEVEL, n_resamples=plan.n_resamples,
            rng=stream(plan.seed, law.name, n, family, at),
        )  # fmt: skip
        if not result.after:
            continue
        assert result.map is not None
        mapped = _population(law, result.map)
        after = {"smooth_ce": caldist.smooth_ce(mapped)}
        after["lower_distance"] = caldist.lower_distance(mapped)
        said: dict[str, float] = {}
        for name, true in before.items():
            upper, lower = result.after[name].upper, result.before[name].lower
            said |= {
                f"{name}, after misses": after[name] > upper + SLACK,
                f"{name}, before misses": true < lower - SLACK,
                f"{name}, bound": upper,
                f"{name}, truth": after[name],
            }
        said["distance, bound"] = result.after["distance"].upper
        said["distance, after misses"] = after["lower_distance"] > said["distance, bound"]
        said["improvement proved"] = (
            result.before["smooth_ce"].lower > result.after["smooth_ce"].upper
        )
        for name, change in (("brier_score", _brier), ("log_loss", caldist.log_loss)):
            changed = change(mapped) - change(original)  # of the log loss perhaps -inf
            stated = result.loss[name]
            said[f"{name}, change misses"] = not stated.lower <= changed <= stated.upper
        for quantity, value in said.items():
            found.setdefault(quantity, []).append(float(value))
    empty = {"smooth_ce, after misses": [], "smooth_ce, before misses": []}
    return [
        _row("coverage", law.name, n, family, quantity, values)
        for quantity, values in (found or empty).items()
    ]


def _brier(joint: Joint) -> float:
    return caldist.brier_score(joint)


def _log(joint: Joint) -> float:
    mass0, mass1 = joint.normalized()
    p = np.clip(joint.prediction, _CERTAIN, 1 - _CERTAIN)
    return -float(mass1 @ np.log(p) + mass0 @ np.log1p(-p))


def _bound(law: Law, n: int, family: str, plan: Plan) -> list[Row]:
    ours, theirs = [], []
    for at in range(plan.bound_sets):
        sample = law.draw(n, stream(plan.seed, law.name, n, "bound", at))
        rng = stream(plan.seed, law.name, n, family, "bound", at)
        options: dict[str, Any] = {"n_resamples": _RESAMPLES, "rng": rng}
        y, p = sample.y_true, sample.y_prob
        whole = caldist.recalibrate(y, p, family=family, confidence_level=LEVEL, **options)  # type: ignore[arg-type]
        if not whole.after:
            continue
        ours.append(whole.after["smooth_ce"].upper)
        half = caldist.recalibrate(y[::2], p[::2], family=family, confidence_level=None, rng=rng)  # type: ignore[arg-type]
        assert half.map is not None
        judged = caldist.confidence_interval(
            y[1::2], half.map(p[1::2]), confidence_level=LEVEL, **options
        )
        theirs.append(judged.upper)
    return [
        _row("bound", law.name, n, family, "all rows", ours),
        _row("bound", law.name, n, family, "half held out", theirs),
    ]


# -- maps ----------------------------------------------------------------------------------------


def _ours(family: str) -> Fitter:
    def fit(y: Labels, p: Vector) -> Map:
        found = caldist.recalibrate(y, p, family=family, confidence_level=None, rng=0)  # type: ignore[arg-type]
        assert found.map is not None
        return found.map

    return fit


def _scikit(method: str) -> Fitter:
    """Return scikit-learn's own way: a frozen model whose predictions are the scores."""

    def fit(y: Labels, p: Vector) -> Map:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.frozen import FrozenEstimator

        model = CalibratedClassifierCV(FrozenEstimator(_scores_as_model()), method=method)
        model.fit(p[:, None], y)
        return lambda v: np.asarray(model.predict_proba(v[:, None])[:, 1])

    return fit


def _scores_as_model() -> Any:
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Scores(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        classes_ = np.array([0, 1])
        n_features_in_ = 1

        def predict_proba(self, x: Vector) -> Vector:
            return np.column_stack((1 - x[:, 0], x[:, 0]))

        def fit(self, _x: Vector, _y: Labels) -> Any:
            return self

        def predict(self, x: Vector) -> Labels:
            return (x[:, 0] > 0.5).astype(np.int64)

        def __sklearn_is_fitted__(self) -> bool:
            return True

    return Scores()


def _venn_abers(y: Labels, p: Vector) -> Map:
    from venn_abers import VennAbers

    model = VennAbers()
    model.fit(np.column_stack((1 - p, p)), y)
    return lambda v: np.asarray(model.predict_proba(np.column_stack((1 - v, v)))[0][:, 1])


def _beta(y: Labels, p: Vector) -> Map:
    from betacal import BetaCalibration

    model = BetaCalibration("abm").fit(p[:, None], y)
    return lambda v: np.asarray(model.predict(v[:, None]))


def _probcal(name: str) -> Fitter:
    def fit(y: Labels, p: Vector) -> Map:
        import probcal

        model = getattr(probcal, name)().fit(p, y)

        def predict(v: Vector) -> Vector:
            found = np.asarray(model.predict_proba(v))
            return found[:, 1] if found.ndim == 2 else found

        return predict

    return fit


FITTERS: dict[str, Fitter] = {
    "none": lambda _y, _p: lambda v: v,
    "caldist auto": _ours("auto"),
    "caldist sigmoid": _ours("sigmoid"),
    "caldist beta": _ours("beta"),
    "caldist isotonic": _ours("isotonic"),
    "sklearn sigmoid": _scikit("sigmoid"),
    "sklearn isotonic": _scikit("isotonic"),
    "sklearn temperature": _scikit("temperature"),
    "venn-abers": _venn_abers,
    "betacal": _beta,
    "probcal spline": _probcal("SplineCalibrator"),
    "probcal selector": _probcal("CalibratorSelector"),
}
_PEERS = {
    "sklearn sigmoid": "sklearn",
    "sklearn isotonic": "sklearn",
    "sklearn temperature": "sklearn",
    "venn-abers": "venn_abers",
    "betacal": "betacal",
    "probcal spline": "probcal",
    "probcal selector": "probcal",
}


def _fitters() -> Iterator[tuple[str, Fitter]]:
    """Give those whose packages are installed."""
    for name, fitter in FITTERS.items():
        if name not in _PEERS or find_spec(_PEERS[name]) is not None:
            yield name, fitter


def _quality(law: Law, n: int, plan: Plan) -> list[Row]:
    u = midpoints(_QUALITY_ATOMS)
    v, rate = law.prediction(u), law.frequency(u)
    optimum = Joint.from_masses(*_best(v, rate))
    found: dict[tuple[str, str], list[float]] = {}
    for at in range(plan.quality_sets):
        sample = law.draw(n, stream(plan.seed, law.name, n, "quality", at))
        if min(sample.y_true.sum(), n - sample.y_true.sum()) < 5:
            continue
        for name, fitter in _fitters():
            value = _mapped(fitter, sample.y_true, sample.y_prob, v)
            if value is None:
                found.setdefault((name, "failures"), []).append(1.0)
                continue
            joint = Joint.from_masses(value, 1 - rate, rate)
            losses = {
                "log loss": _log(joint) - _log(optimum),
                "Brier": _brier(joint) - _brier(optimum),
                "smCE": caldist.smooth_ce(joint),
            }
            for quantity, loss in losses.items():
                found.setdefault((name, quantity), []).append(loss)
    rows = [
        _row("quality", law.name, n, name, quantity, values)
        for (name, quantity), values in found.items()
    ]
    return rows or [_row("quality", law.name, n, "none", "log loss", [])]


def _best(v: Vector, rate: Vector) -> tuple[Vector, Vector, Vector]:
    """Return the population after each prediction was replaced by its own frequency."""
    _, place = np.unique(v, return_inverse=True)
    count, ones = np.bincount(place), np.bincount(place, rate)
    mean = ones / count
    return mean, count * (1 - mean), count * mean


def _mapped(fitter: Fitter, y: Labels, p: Vector, v: Vector) -> Vector | None:
    """Return mapped values; None where a library fails or leaves [0, 1]."""
    try:
        value = np.asarray(fitter(y, p)(v), dtype=np.float64)
    except Exception:  # noqa: BLE001 -- whatever other libraries raise
        return None
    if value.shape != v.shape or not np.isfinite(value).all():
        return None
    return value if value.min() > -1e-9 and value.max() < 1 + 1e-9 else None


# -- real data -----------------------------------------------------------------------------------


def _sets() -> dict[str, Callable[[], tuple[Vector, Labels]]]:
    def classes(load: str, positive: Callable[[Any], Any]) -> Callable[[], tuple[Vector, Labels]]:
        def read() -> tuple[Vector, Labels]:
            from sklearn import datasets

            x, y = getattr(datasets, load)(return_X_y=True)
            return x, np.asarray(positive(y)).astype(np.int64)

        return read

    return {
        "cancer": classes("load_breast_cancer", lambda y: y),
        "diabetes": classes("load_diabetes", lambda y: y > 140),
        "diabetes, worst sixth": classes("load_diabetes", lambda y: y > 230),
        "digits, odd": classes("load_digits", lambda y: y % 2),
        "digits, below 3": classes("load_digits", lambda y: y < 3),
        "digits, 8": classes("load_digits", lambda y: y == 8),
    }


def _models() -> dict[str, Callable[[int], Any]]:
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier

    return {
        "boosting": lambda seed: HistGradientBoostingClassifier(max_iter=60, random_state=seed),
        "extra trees": lambda seed: ExtraTreesClassifier(60, random_state=seed),
        "naive Bayes": lambda _: GaussianNB(var_smoothing=1e-3),
        "neighbours": lambda _: KNeighborsClassifier(15),
        "discriminant": lambda _: QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
    }


REAL = tuple(
    f"{name}: {model}"
    for name in _sets()
    for model in ("boosting", "extra trees", "naive Bayes", "neighbours", "discriminant")
)


def _splits(name: str, plan: Plan) -> Iterator[tuple[Vector, Labels, Labels, Labels]]:
    """Give scores and labels of all rows, which rows fit a map, and which judge it.

    Two fifths train the model, another two fit the map, the last judges.
    """
    load, model = name.split(": ")
    x, y = _sets()[load]()
    for at in range(plan.real_splits):
        order = stream(plan.seed, name, "real", at).permutation(y.size)
        train, fit, test = np.split(order, [2 * y.size // 5, 4 * y.size // 5])
        scores = _models()[model](at).fit(x[train], y[train])
        yield np.clip(scores.predict_proba(x)[:, 1].astype(np.float64), 0, 1), y, fit, test


def _real(name: str, plan: Plan) -> list[Row]:
    found: dict[tuple[str, str], list[float]] = {}
    rows = 0
    for p, y, fit, test in _splits(name, plan):
        rows = fit.size
        for key, fitter in _fitters():
            value = _mapped(fitter, y[fit], p[fit], p[test])
            if value is None:
                found.setdefault((key, "failures"), []).append(1.0)
                continue
            joint = Joint.from_arrays(y[test], np.clip(value, 0, 1))
            losses = {
                "log loss": _log(joint), "Brier": _brier(joint),
                "smCE": caldist.smooth_ce(joint),
            }  # fmt: skip
            for quantity, loss in losses.items():
                found.setdefault((key, quantity), []).append(loss)
    return [
        _row("real", name, rows, key, quantity, values) for (key, quantity), values in found.items()
    ]


# -- few rows ------------------------------------------------------------------------------------


def _selecting_from(few: float) -> Fitter:
    """Select by cross-validation from so many rows on, and take the sigmoid below."""

    def fit(y: Labels, p: Vector) -> Map:
        with mock.patch("caldist.recalibration._selection.FEW", few):
            return _ours("auto")(y, p)

    return fit


RULES = {"sigmoid": _selecting_from(math.inf), "selection": _selecting_from(0)}


def _ruled(
    y: Labels, p: Vector, judge: Callable[[Map], float], found: dict[str, list[float]]
) -> None:
    """Add the loss of each rule, and by how much the sigmoid is better."""
    loss = {name: judge(fit(y, p)) for name, fit in RULES.items()}
    for name, value in loss.items():
        found.setdefault(name, []).append(value)
    found.setdefault("gain", []).append(loss["selection"] - loss["sigmoid"])


def _few(law: Law, n: int, plan: Plan) -> list[Row]:
    u = midpoints(_QUALITY_ATOMS)
    v, rate = law.prediction(u), law.frequency(u)
    least = _log(Joint.from_masses(*_best(v, rate)))
    found: dict[str, list[float]] = {}
    for at in range(plan.few_sets):
        sample = law.draw(n, stream(plan.seed, law.name, n, "few", at))
        _ruled(
            sample.y_true, sample.y_prob,
            lambda kappa: _log(Joint.from_masses(kappa(v), 1 - rate, rate)) - least,
            found,
        )  # fmt: skip
    return [_row("few", law.name, n, key, "log loss", values) for key, values in found.items()]


def _few_real(name: str, plan: Plan) -> list[Row]:
    found: dict[int, dict[str, list[float]]] = {n: {} for n in FEW_ROWS}
    for p, y, fit, test in _splits(name, plan):
        for n in FEW_ROWS:
            own = fit[:n]
            if min(y[own].sum(), n - y[own].sum()) < 5:
                continue
            _ruled(
                y[own], p[own],
                lambda kappa: _log(Joint.from_arrays(y[test], kappa(p[test]))),  # noqa: B023 -- called at once
                found[n],
            )  # fmt: skip
    return [
        _row("few real", name, n, key, "log loss", values)
        for n in FEW_ROWS
        for key, values in found[n].items()
    ] or [_row("few real", name, FEW_ROWS[0], "gain", "log loss", [])]
