"""The same data through general solvers and through other libraries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

import caldist
from benchmarks.families import FAMILIES, Sample
from benchmarks.tables import Table, number, size_name, verdict
from benchmarks.timing import ONCE, Effort, best_of, side_by_side

Vector = NDArray[np.float64]

FAMILY = "beta=3"
ROWS = 10**4  # targets hold from here on
LARGE_ROWS = 10**6
TIME_LIMIT = 600.0  # seconds for Clarabel on the large program
LOWER_TOLERANCE = 1e-6
_N_BINS = 20


@dataclass(frozen=True)
class Peer:
    """Another way to a number, beside our nearest one; ``target``: the least factor we want."""

    name: str
    module: str
    function: Callable[[Sample], float]
    nearest: str
    ours: Callable[[Sample], float]
    target: float | None = None


def _points(sample: Sample) -> tuple[Vector, Vector]:
    """Return the sorted distinct predictions and their residual masses, with NumPy alone."""
    prediction, where = np.unique(sample.y_prob, return_inverse=True)
    residual = np.bincount(where, sample.y_true - sample.y_prob) / sample.y_prob.size
    return prediction, residual


def _differences(n: int) -> Any:
    """Return the sparse matrix of w[i + 1] - w[i]."""
    from scipy import sparse

    return sparse.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(n - 1, n))


def highs(sample: Sample) -> float:
    """Solve the linear program of smCE with HiGHS: a Lipschitz constraint for all neighbours."""
    from scipy import sparse
    from scipy.optimize import linprog

    prediction, residual = _points(sample)
    step, gap = _differences(prediction.size), np.diff(prediction)
    solution = linprog(
        -residual,
        A_ub=sparse.vstack([step, -step], format="csc"),
        b_ub=np.concatenate((gap, gap)),
        bounds=(-1, 1),
        method="highs",
    )
    return -float(solution.fun)


def clarabel(sample: Sample) -> float:
    """Solve the same program with Clarabel, an interior point method; NaN if time is up."""
    import clarabel as solver
    from scipy import sparse

    prediction, residual = _points(sample)
    n = prediction.size
    step, gap, one = _differences(n), np.diff(prediction), sparse.eye_array(n)
    settings = solver.DefaultSettings()
    settings.verbose = False
    settings.time_limit = TIME_LIMIT
    solution = solver.DefaultSolver(
        sparse.csc_matrix((n, n)),
        -residual,
        sparse.csc_matrix(sparse.vstack([step, -step, one, -one])),
        np.concatenate((gap, gap, np.ones(2 * n))),
        [solver.NonnegativeConeT(2 * (n - 1) + 2 * n)],
        settings,
    ).solve()
    return -solution.obj_val if str(solution.status) == "Solved" else math.nan


def _lower_program(sample: Sample) -> tuple[Vector, Any, Vector]:
    """Return objective, matrix and right side of the reduced dual of ldCE.

    Nodes are the predictions, 0, 1 and a grid fine enough for an error of 1e-6.
    """
    from scipy import sparse

    prediction = np.unique(sample.y_prob)
    grid = np.arange(0, 1, math.sqrt(2 * LOWER_TOLERANCE))
    node = np.unique(np.concatenate((prediction, grid, [1.0])))
    k, gap = node.size, np.diff(node)
    step = sparse.block_diag([_differences(k)] * 2)
    fair = sparse.hstack([sparse.diags_array(1 - node), sparse.diags_array(node)])
    objective = np.zeros(2 * k)
    at = np.searchsorted(node, sample.y_prob) + k * sample.y_true
    np.add.at(objective, at, -1 / sample.y_prob.size)
    matrix = sparse.csc_matrix(sparse.vstack([step, -step, fair]))
    return objective, matrix, np.concatenate((gap, gap, gap, gap, np.zeros(k)))


def highs_lower(sample: Sample) -> float:
    """Solve the reduced dual of ldCE with HiGHS."""
    from scipy.optimize import linprog

    objective, matrix, right = _lower_program(sample)
    solution = linprog(
        objective, A_ub=matrix, b_ub=right, bounds=(None, None), method="highs",
        options={"time_limit": TIME_LIMIT},
    )  # fmt: skip
    return -float(solution.fun) if solution.status == 0 else math.nan


def clarabel_lower(sample: Sample) -> float:
    """Solve the reduced dual of ldCE with Clarabel, to the same gap."""
    import clarabel as solver
    from scipy import sparse

    objective, matrix, right = _lower_program(sample)
    settings = solver.DefaultSettings()
    settings.verbose = False
    settings.time_limit = TIME_LIMIT
    settings.tol_gap_abs = settings.tol_gap_rel = LOWER_TOLERANCE
    solution = solver.DefaultSolver(
        sparse.csc_matrix((objective.size, objective.size)),
        objective,
        matrix,
        right,
        [solver.NonnegativeConeT(right.size)],
        settings,
    ).solve()
    return -solution.obj_val if str(solution.status) == "Solved" else math.nan


def dense_kernel(sample: Sample) -> float:
    """Sum the Laplace kernel over all pairs of rows, a few hundred rows at a time."""
    residual = sample.y_true - sample.y_prob
    total = 0.0
    for start in range(0, residual.size, 256):
        rows = slice(start, start + 256)
        kernel = np.exp(-np.abs(sample.y_prob[rows, None] - sample.y_prob))
        total += float(residual[rows] @ kernel @ residual)
    return math.sqrt(max(0.0, total)) / residual.size


def relplot(sample: Sample) -> float:
    import relplot as peer

    return float(peer.smECE(sample.y_prob, sample.y_true))


def netcal(sample: Sample) -> float:
    from netcal.metrics import ECE

    return float(ECE(bins=_N_BINS).measure(sample.y_prob, sample.y_true))


def torchmetrics(sample: Sample) -> float:
    import torch
    from torchmetrics.classification import BinaryCalibrationError

    metric = BinaryCalibrationError(n_bins=_N_BINS, norm="l1")
    metric.update(torch.from_numpy(sample.y_prob), torch.from_numpy(sample.y_true))
    return float(metric.compute())


def scikit_learn(sample: Sample) -> float:
    """Average the gaps of the curve, in bins of equal mass because it comes without counts."""
    from sklearn.calibration import calibration_curve

    frequency, prediction = calibration_curve(
        sample.y_true, sample.y_prob, n_bins=_N_BINS, strategy="quantile"
    )
    return float(np.abs(frequency - prediction).mean())


def _smooth_ce(sample: Sample) -> float:
    return caldist.smooth_ce(sample.y_true, sample.y_prob)


def _lower_distance(sample: Sample) -> float:
    return caldist.lower_distance(sample.y_true, sample.y_prob, tol=LOWER_TOLERANCE)


def _kernel_ce(sample: Sample) -> float:
    return caldist.kernel_ce(sample.y_true, sample.y_prob)


def _binned_ece(sample: Sample) -> float:
    return caldist.binned_ece(sample.y_true, sample.y_prob, n_bins=_N_BINS)


def _quantile_ece(sample: Sample) -> float:
    return caldist.binned_ece(sample.y_true, sample.y_prob, n_bins=_N_BINS, strategy="quantile")


PEERS = (
    Peer("HiGHS, linear program of smCE", "scipy", highs, "smooth_ce", _smooth_ce, 200),
    Peer("HiGHS, dual of ldCE", "scipy", highs_lower, "lower_distance", _lower_distance, 100),
    Peer(
        "Clarabel, dual of ldCE", "clarabel", clarabel_lower, "lower_distance", _lower_distance, 20
    ),
    Peer("dense kernel sum, NumPy", "numpy", dense_kernel, "kernel_ce", _kernel_ce, 200),
    Peer("relplot.smECE", "relplot", relplot, "smooth_ce", _smooth_ce),
    Peer("netcal ECE", "netcal", netcal, "binned_ece", _binned_ece),
    Peer(
        "torchmetrics BinaryCalibrationError",
        "torchmetrics",
        torchmetrics,
        "binned_ece",
        _binned_ece,
    ),
    Peer(
        "scikit-learn calibration_curve",
        "sklearn",
        scikit_learn,
        "binned_ece, quantile",
        _quantile_ece,
    ),
)
LARGE_PEER = Peer(
    "Clarabel, linear program of smCE", "clarabel", clarabel, "smooth_ce", _smooth_ce, 200
)


def _row(peer: Peer, n: int, effort: Effort) -> list[str]:
    sample = FAMILIES[FAMILY].make(n)
    value = peer.ours(sample)
    timing = side_by_side(lambda: peer.function(sample), lambda: peer.ours(sample), effort)
    unfinished = math.isnan(timing.result)
    judgement = ""
    if peer.target is not None and n >= ROWS:
        judgement = verdict(timing.ratio >= peer.target)
    return [
        peer.name,
        size_name(n),
        number(1000 * timing.seconds),
        "none, time is up" if unfinished else f"{timing.result:.6f}",
        peer.nearest,
        number(1000 * timing.reference),
        f"{value:.6f}",
        f"{'> ' if unfinished else ''}{number(timing.ratio)}",
        "" if peer.target is None else f"{peer.target:g}",
        judgement,
    ]


def peer_table(n: int, large: int | None, effort: Effort) -> Table:
    """Return the table of peers at n rows, and of Clarabel at ``large`` rows if given."""
    runs = [(peer, n, effort) for peer in PEERS]
    if large is not None:
        runs.append((LARGE_PEER, large, ONCE))
    rows: list[list[str]] = []
    absent: list[str] = []
    for peer, size, repeats in runs:
        if find_spec(peer.module) is None:
            absent.append(peer.module)
        else:
            rows.append(_row(peer, size, repeats))
    note = (
        f"Family {FAMILY}. Both run in turn in one process, {best_of(effort)}; Clarabel once. "
        "relplot's smECE is another quantity than smCE; scikit-learn gives a curve, not a number: "
        "shown is the mean gap of its bins."
    )
    if absent:
        note += f" Not installed, so not measured: {', '.join(absent)}."
    header = [
        "peer",
        "rows",
        "ms",
        "value",
        "caldist",
        "ms",
        "value",
        "factor",
        "target",
        "verdict",
    ]
    return Table("Peers", header, rows, note)
