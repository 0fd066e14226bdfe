"""Measures that are sums over rows, and smECE, beside every library that gives the same number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

import caldist
from benchmarks.families import FAMILIES, Sample
from benchmarks.memory import extra_memory
from benchmarks.tables import Table, number, size_name, verdict
from benchmarks.timing import Effort, best_of, processor_time

FAMILY = "beta=3"
SIZES = (10**3, 10**4, 10**5, 10**6, 10**7)
MEMORY_ROWS = 10**6  # from which on memory counts; below, pages do
_N_BINS = 20
_EDGES = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 1.0])
_SOFT_BINS, _TEMPERATURE = 15, 0.01
_MEMORY = 1.5  # times NumPy's may be taken
_LIMITED = ("brier_score", "log_loss", "binned_ece")  # that NumPy is to be no faster than
_FEW, _CALL = 10**4, 3.5  # rows up to which a call may take as many times as long as NumPy's


@dataclass(frozen=True)
class Rival:
    """A library's way to a number, with the module that it needs."""

    name: str
    module: str
    function: Callable[[Sample], object]


def _check(sample: Sample) -> None:
    """Check what caldist checks, with NumPy."""
    y, p = sample.y_true, sample.y_prob
    if not (p.min() >= 0 and p.max() <= 1 and ((y == 0) | (y == 1)).all()):
        message = "invalid rows"
        raise ValueError(message)


def _numpy_brier(sample: Sample) -> float:
    _check(sample)
    return float(((sample.y_true - sample.y_prob) ** 2).mean())


def _numpy_log(sample: Sample) -> float:
    _check(sample)
    p = sample.y_prob
    return -float(np.log(np.where(sample.y_true == 1, p, 1 - p)).mean())


def _numpy_bins(sample: Sample) -> float:
    _check(sample)
    y, p = sample.y_true, sample.y_prob
    place = np.minimum((p * _N_BINS).astype(np.intp), _N_BINS - 1)
    return float(np.abs(np.bincount(place, y - p, _N_BINS)).sum() / p.size)


def _numpy_entropy(sample: Sample) -> float:
    loss, rate = _numpy_log(sample), float(sample.y_true.mean())
    entropy = -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)
    return (entropy - loss) / entropy


def _numpy_edges(sample: Sample) -> float:
    _check(sample)
    y, p = sample.y_true, sample.y_prob
    last = _EDGES.size - 2
    place = np.minimum(np.searchsorted(_EDGES, p, side="right") - 1, last)
    return float(np.abs(np.bincount(place, y - p, last + 1)).sum() / p.size)


def _numpy_soft(sample: Sample) -> float:
    _check(sample)
    y, p = sample.y_true, sample.y_prob
    centre = (np.arange(_SOFT_BINS) + 0.5) / _SOFT_BINS
    share = np.exp(-((p[:, None] - centre) ** 2) / _TEMPERATURE)
    share /= share.sum(axis=1, keepdims=True)
    gap, mass = (y - p) @ share, share.sum(axis=0)
    return math.sqrt(float((gap * gap / mass).sum() / p.size))


def _probcal(name: str) -> Callable[[Sample], object]:
    def function(sample: Sample) -> object:
        from probcal import metrics

        return getattr(metrics, name)(sample.y_true, sample.y_prob)

    return function


def _sklearn(name: str) -> Callable[[Sample], object]:
    def function(sample: Sample) -> object:
        from sklearn import metrics

        return getattr(metrics, name)(sample.y_true, sample.y_prob)

    return function


def _scoringrules(sample: Sample) -> object:
    import scoringrules

    return scoringrules.brier_score(sample.y_true, sample.y_prob).mean()


def _calibre_brier(sample: Sample) -> object:
    from calibre import metrics

    return metrics.brier_score(sample.y_true, sample.y_prob)


def _calibre_bins(sample: Sample) -> object:
    from calibre import metrics

    return metrics.expected_calibration_error(sample.y_true, sample.y_prob, n_bins=_N_BINS)


def _relplot_bins(sample: Sample) -> object:
    from relplot import metrics

    return metrics.binnedECE(sample.y_prob, sample.y_true, _N_BINS)


def _relplot_smooth(sample: Sample) -> object:
    import relplot

    return relplot.smECE(sample.y_prob, sample.y_true)


def _torchmetrics(sample: Sample) -> object:
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    return binary_calibration_error(
        torch.from_numpy(sample.y_prob), torch.from_numpy(sample.y_true), n_bins=_N_BINS
    )


MEASURES: dict[str, tuple[Callable[..., float], tuple[Rival, ...]]] = {
    "brier_score": (
        caldist.brier_score,
        (
            Rival("NumPy", "numpy", _numpy_brier),
            Rival("probcal", "probcal", _probcal("brier_score")),
            Rival("scoringrules", "scoringrules", _scoringrules),
            Rival("scikit-learn", "sklearn", _sklearn("brier_score_loss")),
            Rival("calibre", "calibre", _calibre_brier),
        ),
    ),
    "log_loss": (
        caldist.log_loss,
        (
            Rival("NumPy", "numpy", _numpy_log),
            Rival("probcal", "probcal", _probcal("log_loss")),
            Rival("scikit-learn", "sklearn", _sklearn("log_loss")),
        ),
    ),
    "binned_ece": (
        caldist.binned_ece,
        (
            Rival("NumPy", "numpy", _numpy_bins),
            Rival("relplot", "relplot", _relplot_bins),
            Rival("torchmetrics", "torchmetrics", _torchmetrics),
            Rival("calibre", "calibre", _calibre_bins),
        ),
    ),
    "normalized_cross_entropy": (
        caldist.measures.normalized_cross_entropy,
        (Rival("NumPy", "numpy", _numpy_entropy),),
    ),
    "binned_ece, own edges": (
        caldist.binned_ece.using(edges=_EDGES),
        (Rival("NumPy", "numpy", _numpy_edges),),
    ),
    "soft_binned_ece": (
        caldist.measures.soft_binned_ece,
        (Rival("NumPy", "numpy", _numpy_soft),),
    ),
    "kernel_smoothed_ece": (
        caldist.measures.kernel_smoothed_ece,
        (
            Rival("relplot", "relplot", _relplot_smooth),
            Rival("probcal", "probcal", _probcal("smooth_ece")),
        ),
    ),
}


def sums_table(sizes: Sequence[int], effort: Effort) -> Table:
    """Return the times of each measure, of np.sort and of its peers, by number of rows."""
    names = list(dict.fromkeys(rival.name for _, rivals in MEASURES.values() for rival in rivals))
    rows: list[list[str]] = []
    lost: list[str] = []
    for name, (measure, rivals) in MEASURES.items():
        for n in sizes:
            sample = FAMILIES[FAMILY].make(n)
            times = {
                rival.name: processor_time(lambda r=rival, s=sample: r.function(s), effort)
                for rival in rivals
                if find_spec(rival.module) is not None
            }
            ours = processor_time(lambda m=measure, s=sample: m(s.y_true, s.y_prob), effort)
            sort = processor_time(lambda s=sample: np.sort(s.y_prob), effort)
            faster = [rival for rival, seconds in times.items() if seconds < ours]
            if faster:
                lost.append(f"{name} at {size_name(n)} ({', '.join(faster)})")
            cells = [number(1000 * times[key]) if key in times else "" for key in names]
            judged = ["", "", ""]
            if "NumPy" in times:
                ratio, limit = ours / times["NumPy"], _CALL if n <= _FEW else 1.0
                judged[0] = number(ratio)
                if name in _LIMITED:
                    judged[1:] = [number(limit), verdict(ratio <= limit)]
            rows.append(
                [name, size_name(n), number(1000 * ours), *judged, number(1000 * sort), *cells]
            )
    absent = sorted(
        {
            rival.module
            for _, rivals in MEASURES.values()
            for rival in rivals
            if find_spec(rival.module) is None
        }
    )
    note = (
        f"Processor time of all threads in ms, from raw unsorted arrays, {best_of(effort)}; family "
        f"{FAMILY}. The ratio is that to NumPy on whole arrays, which checks what caldist checks; "
        "relplot checks nothing. relplot's and probcal's smECE are approximations on a grid, which "
        f"differ from the third digit on. Rows that a peer wins: {'; '.join(lost) or 'none'}."
    )
    if absent:
        note += f" Not installed, so not measured: {', '.join(absent)}."
    header = ["measure", "rows", "caldist", "ratio", "target", "verdict", "np.sort", *names]
    return Table("Sums over rows, and smECE", header, rows, note)


def sums_memory_table(n: int) -> Table:
    """Return the memory that each measure takes beyond its input, beside NumPy's."""
    rows: list[list[str]] = []
    for name, (_, rivals) in MEASURES.items():
        beside = [k for k, rival in enumerate(rivals) if rival.module == "numpy"]
        if not beside:
            continue
        entry = f"from benchmarks.sums import MEASURES\nmeasure, rivals = MEASURES[{name!r}]\n"
        ours = extra_memory(
            f"{entry}call = lambda sample: measure(sample.y_true, sample.y_prob)", n
        )
        theirs = extra_memory(f"{entry}call = rivals[{beside[0]}].function", n)
        if ours is None or theirs is None:
            rows.append([name, "not measured", "", "1.5", ""])
        else:
            judged = verdict(ours <= _MEMORY * theirs) if n >= MEMORY_ROWS else ""
            rows.append([name, number(ours), number(theirs), f"{_MEMORY} of NumPy", judged])
    note = (
        f"Rise of the peak of resident memory over a call on {size_name(n)} rows, int64 labels and "
        "float64 predictions, in multiples of these; each in a fresh process that has called it on "
        "three rows. NumPy is the straightforward code with the same checks."
    )
    header = ["measure", "caldist", "NumPy", "target", "verdict"]
    return Table("Memory of sums over rows", header, rows, note)
