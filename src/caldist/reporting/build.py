"""From labels and predictions to a report."""

from __future__ import annotations

import math
import platform
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist._version import __version__
from caldist.data.categories import group_codes
from caldist.data.joint import Joint
from caldist.inference import (
    calibration_test,
    compare_all,
    confidence_interval,
    distance_bracket,
    evaluate_groups,
    miscalibrated_regions,
)
from caldist.inference._paired import PARTS
from caldist.measures.evaluation import evaluate
from caldist.measures.registry import MEASURES
from caldist.reporting.figures import figures
from caldist.reporting.model import (
    DataReport,
    GroupReport,
    MeasureReport,
    ModelReport,
    PairReport,
    Report,
)
from caldist.reporting.verdict import verdict

__all__ = ["REPORTED", "report"]

Vector = NDArray[np.float64]

_WITH_INTERVAL = (
    "smooth_ce",
    "lower_distance",
    "kernel_ce",
    "random_interval_ce",
    "interval_ce",
    "brier_score",
)
_WITHOUT = ("upper_distance", "binned_ece", "ece")
REPORTED = (*_WITH_INTERVAL, *_WITHOUT)
_MOST_RESAMPLES = 20_000  # for the comparison of many models
_NO_INTERVAL = "Only of these rows: no interval for the population would be valid."


def report(
    y_true: ArrayLike,
    y_prob: ArrayLike | Mapping[str, ArrayLike],
    *,
    by: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    rng: _validate.Rng = 0,
    progress: bool = False,
) -> Report:
    """Report on the calibration of one or more models: a verdict, figures, intervals, tests.

    Parameters
    ----------
    y_true : array-like of 0 and 1
    y_prob : mapping from name to array-like in [0, 1]
        Each model's predicted probability of label 1, on the same rows. One array is one model,
        called "model".
    by : array-like, optional
        A sub-group for each row.
    sample_weight : array-like, optional
    groups : array-like, optional
        Rows that belong together (a patient, a game): intervals and tests take clusters as a whole.
    confidence_level : float
    n_resamples : int
    rng : int, Generator or None
        Same seed, same report.
    progress : bool
        Show progress bars for what lasts longer than two seconds.

    Returns
    -------
    Report
        Prints as a table, shows as HTML in a notebook; ``to_html(path)``, ``to_json(path)`` and
        ``to_markdown(path)`` write it.

    Examples
    --------
    >>> import numpy as np, caldist
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> found = caldist.report(rng.random(1000) < p, {"honest": p}, n_resamples=99)
    >>> found.models[0].pvalue > 0.05
    True
    """
    confidence_level = _validate.check_fraction("confidence_level", confidence_level)
    n_resamples = _validate.check_count("n_resamples", n_resamples)
    progress = _validate.check_flag("progress", progress)
    label, predictions = _rows(y_true, y_prob)
    options: dict[str, Any] = {
        "sample_weight": sample_weight,
        "groups": groups,
        "n_resamples": n_resamples,
        "rng": rng,
        "progress": progress,
    }
    with _collected_warnings() as notes:
        models = tuple(
            _model(name, label, prediction, confidence_level, options)
            for name, prediction in predictions.items()
        )
        pairs = _pairs(label, predictions, confidence_level, options, notes)
        subgroups = _subgroups(label, predictions, by, confidence_level, options)
    return Report(
        models=models,
        pairs=pairs,
        groups=subgroups,
        data=_data(label, predictions, sample_weight, groups, notes),
        confidence_level=confidence_level,
        n_resamples=n_resamples,
        seed=int(rng) if isinstance(rng, int | np.integer) else None,
        versions=_versions(),
        figures=figures(label, predictions, models, sample_weight, confidence_level, rng),
    )


def _rows(
    y_true: ArrayLike, y_prob: ArrayLike | Mapping[str, ArrayLike]
) -> tuple[NDArray[np.uint8], dict[str, Vector]]:
    """Return clean labels and the predictions of each model."""
    if not isinstance(y_prob, Mapping):
        label, prediction, _ = _validate.binary_inputs(y_true, y_prob)
        return label, {"model": prediction}
    return _validate.models(y_true, y_prob)


@contextmanager
def _collected_warnings() -> Iterator[list[str]]:
    """Turn warnings about the data into notes of the report, each once."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield notes
    notes += dict.fromkeys(
        str(warning.message) for warning in caught if warning.category is UserWarning
    )


def _model(
    name: str,
    label: NDArray[np.uint8],
    prediction: Vector,
    confidence_level: float,
    options: dict[str, Any],
) -> ModelReport:
    weight = options["sample_weight"]
    joint = Joint.from_arrays(label, prediction, sample_weight=weight)
    quiet = {key: value for key, value in options.items() if key != "progress"}
    sample = distance_bracket(label, prediction, sample_weight=weight)
    population = distance_bracket(label, prediction, confidence_level=confidence_level, **quiet)
    tested = calibration_test(label, prediction, **options)
    regions = miscalibrated_regions(label, prediction, confidence_level=confidence_level, **quiet)
    return ModelReport(
        name=name,
        verdict=verdict(
            population.lower, population.upper, tested.pvalue, regions, confidence_level
        ),
        lower=sample.lower,
        upper=sample.upper,
        population_lower=population.lower,
        population_upper=population.upper,
        pvalue=tested.pvalue,
        mean_prediction=float(np.average(prediction, weights=weight)),
        regions=tuple(regions),
        measures=tuple(_measures(label, prediction, joint, confidence_level, options)),
    )


def _measures(
    label: NDArray[np.uint8],
    prediction: Vector,
    joint: Joint,
    confidence_level: float,
    options: dict[str, Any],
) -> Iterator[MeasureReport]:
    for name in _WITH_INTERVAL:
        found = confidence_interval(
            label, prediction, measure=name, confidence_level=confidence_level, **options
        )
        how = f"Interval for the population, method {found.method}."
        yield _measure(name, found.value, found.low, found.high, how)
    for name, evaluation in evaluate(joint, measures=_WITHOUT).items():
        yield _measure(name, evaluation.value, None, None, _NO_INTERVAL)


def _measure(
    name: str, value: float, low: float | None, high: float | None, note: str
) -> MeasureReport:
    known = MEASURES[name]
    return MeasureReport(name, known.symbol, known.summary, value, low, high, note)


def _pairs(
    label: NDArray[np.uint8],
    predictions: dict[str, Vector],
    confidence_level: float,
    options: dict[str, Any],
    notes: list[str],
) -> tuple[PairReport, ...]:
    """Compare all pairs of models, with as many resamples as their number asks for."""
    count = math.comb(len(predictions), 2)
    if not count:
        return ()
    needed = math.ceil(PARTS * count / (1 - confidence_level))
    if needed > max(_MOST_RESAMPLES, options["n_resamples"]):
        notes.append(
            f"The {count:,} pairs of models are not compared: one confidence for all of them would "
            f"take {needed:,} resamples. caldist.compare compares two models."
        )
        return ()
    if needed > options["n_resamples"]:
        notes.append(
            f"The differences between models are from {needed:,} resamples, since their confidence "
            f"holds for {count:,} pairs together."
        )
        options = options | {"n_resamples": needed}
    found = compare_all(label, predictions, confidence_level=confidence_level, **options)
    return tuple(
        PairReport(first, second, pair.difference, pair.low, pair.high, pair.pvalue)
        for (first, second), pair in found.pairs.items()
    )


def _subgroups(
    label: NDArray[np.uint8],
    predictions: dict[str, Vector],
    by: ArrayLike | None,
    confidence_level: float,
    options: dict[str, Any],
) -> tuple[GroupReport, ...]:
    if by is None:
        return ()
    rows = []
    for model, prediction in predictions.items():
        found = evaluate_groups(
            label,
            prediction,
            by=by,
            measures=["smooth_ce"],
            confidence_level=confidence_level,
            **options,
        )
        for group in found.groups:
            interval = group.intervals["smooth_ce"]
            rows.append(
                GroupReport(
                    model=model,
                    group=str(group.name),
                    n_rows=group.n_rows,
                    positives=group.n_positives,
                    smooth_ce=interval.value,
                    low=interval.low,
                    high=interval.high,
                    pvalue=group.pvalue,
                    note=group.note,
                )
            )
    return tuple(rows)


def _data(
    label: NDArray[np.uint8],
    predictions: dict[str, Vector],
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None,
    notes: list[str],
) -> DataReport:
    observed = []
    for name, prediction in predictions.items():
        for end in (0.0, 1.0):
            at_end = prediction == end
            wrong = int(np.count_nonzero(at_end & (label != end)))
            if wrong:
                observed.append(
                    f"{name} predicts exactly {end:.0f} for {np.count_nonzero(at_end):,} rows, and "
                    f"{wrong:,} of them turn out otherwise."
                )
        distinct = np.unique(prediction).size
        if distinct <= 20:
            observed.append(f"{name} has only {distinct} different predictions.")
    weight = None if sample_weight is None else np.asarray(sample_weight)
    return DataReport(
        n_rows=label.size,
        positives=int(label.sum()),
        share_of_ones=float(np.average(label, weights=weight)),
        weighted=weight is not None,
        n_clusters=None if groups is None else group_codes(groups, label.size)[1],
        notes=(*notes, *observed),
    )


def _versions() -> dict[str, str]:
    import scipy  # only its version is wanted

    return {
        "caldist": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
    }
