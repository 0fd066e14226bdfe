"""The classwise distance to calibration, CW, and what each class has to do with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.escaping import for_line
from caldist._util.numbers import down, least, number, signed
from caldist._util.results import Result
from caldist._util.text_tables import aligned
from caldist._util.threads import thread_count
from caldist.certificates import LowerCertificate
from caldist.data import validate
from caldist.data.class_rows import Classes, ClassJoints, ClassRows, class_source
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import ToleranceError, answering
from caldist.inference.folds import ordered_units
from caldist.inference.limits import Limits
from caldist.inference.resampling import Resampler
from caldist.measures.lower_distance import TOLERANCE, certify_lower, lower_distance
from caldist.measures.smooth_ce import smooth_ce as binary_smooth_ce

Item = TypeVar("Item")
Value = TypeVar("Value")

NULL = 0.45  # times σ_j/√n: what half of ldCE or smCE of a calibrated class shows, on average
_CLASS_ARRAYS = 12  # vectors of all rows that are in use while one class is solved, at most
_LARGEST_KEPT = 4_000_000  # numbers in the largest block that the GNU library would ever keep
_THREADED = 20_000  # rows from which a second thread repays its start


@answering
def classwise_distance(
    y_true: ArrayLike | dict[Any, Joint] | list[Joint],
    y_prob: ArrayLike | None = None,
    *,
    tol: float | None = None,
    classes: Classes | None = None,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the classwise distance to calibration.

    .. math:: \mathrm{CW} = \tfrac12 \sum_j \mathrm{ldCE}(v_j, 1[y = j])

    half the sum of the lower distances of each class against the rest.

    **What it means.** At least this share of each prediction's probability mass has to move, on
    average, before the predictions can be calibrated: CW is at most the distance to calibration
    in total variation, whatever is behind the predictions. With two classes it *is* the lower
    distance, to the bit. It says which class accounts for how much
    (:func:`caldist.multiclass.classwise_table`). It does not see errors that cancel in every class,
    rotations for example; :func:`caldist.multiclass.smooth_ce` and
    :func:`caldist.multiclass.kernel_ce` do.

    **What it estimates.** The population's value, with a bias of about
    :math:`0.45 \sum_j \sigma_j/\sqrt n`, :math:`\sigma_j^2 = E[v_j(1 - v_j)]`, where predictions
    are calibrated. Do not divide it by the number of classes: a mean over classes vanishes as they
    become many.

    **Cost.** A sort and an interior-point solver for each class, on all cores; columns are taken
    one after the other, so the matrix is never copied.

    Parameters
    ----------
    y_true : array-like of classes, or a Joint for each class
        Numbers 0, 1, …, or names listed in ``classes``. A dict from class to joint, or a list as
        :func:`caldist.engines.summarize_one_vs_rest` returns it, stands for rows of any number.
    y_prob : matrix
        A row per example and a column per class. Rows sum to 1 within 0.0075, and are divided by
        their sum where that is not 1.
    tol : float, optional
        How wide the certified interval may be, whose lower end is returned. By default 1e-6 with
        two classes, and with more 1e-5 for each class, but at most 1e-3.
    classes : sequence, optional
        The labels in the order of the columns, where they are not 0, 1, … or the names of a
        frame's columns.
    normalize : bool
        Divide each row by its sum, where rounding keeps rows from summing to 1.
    sample_weight : array-like, optional

    Returns
    -------
    float

    Raises
    ------
    caldist.errors.ToleranceError
        If the interval stays wider than ``tol``; it carries the valid bounds.

    Examples
    --------
    >>> from caldist import multiclass
    >>> y_prob = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]
    >>> round(multiclass.classwise_distance([0, 2, 2, 1], y_prob), 4)
    0.1875
    >>> multiclass.classwise_distance(["a", "c", "c", "b"], y_prob, classes=["a", "b", "c"]) > 0.16
    True
    """
    if tol is not None:
        tol = validate.check_positive("tol", tol)
    source = class_source(
        y_true, y_prob, classes=classes, normalize=normalize, sample_weight=sample_weight
    )
    lower, upper, tol = distance_ends(source, tol)
    if upper - lower > tol * (1 + 1e-9):
        message = (
            f"the classwise distance is between {lower!r} and {upper!r}, but tol={tol!r} could not "
            "be reached: use a larger tol."
        )
        raise ToleranceError(message, lower, upper)
    return lower


def distance_ends(source: ClassRows | ClassJoints, tol: float | None) -> tuple[float, float, float]:
    """Return the certified ends of CW, and the tolerance that was meant."""
    if isinstance(source, ClassRows):
        _keep_pages(source.n_rows)
    found = list(in_threads(_ends, _tolerances(source, tol), source))
    factor = 0.5 if source.n_classes > 2 else 1.0
    lower, upper = (factor * math.fsum(ends) for ends in zip(*found, strict=True))
    return lower, upper, default_tolerance(source, tol)


def _keep_pages(rows: int) -> None:
    """Let the C library keep the memory that one class frees for the next one.

    The GNU one returns large blocks to the system as soon as they are free, until it has seen one
    freed that is larger; fetching the pages anew for each class took a quarter of the time.
    """
    np.empty(min(_CLASS_ARRAYS * rows, _LARGEST_KEPT))


def enclosed(source: ClassJoints) -> tuple[float, float, float]:
    """Return CW of summaries, and what it lies between on the rows behind them."""
    found = [
        lower_distance.using(tol=tol).enclosed(rows.joint)
        for rows, tol in _tolerances(source, None)
    ]
    factor = 0.5 if source.n_classes > 2 else 1.0
    value, lower, upper = (factor * math.fsum(ends) for ends in zip(*found, strict=True))
    return value, lower, upper


def default_tolerance(source: ClassRows | ClassJoints, tol: float | None) -> float:
    """Return the tolerance, or what stands for it: far below the noise of any sample."""
    if tol is not None:
        return tol
    return TOLERANCE if source.n_classes == 2 else min(1e-3, 1e-5 * source.n_classes)


def certificates(
    source: ClassRows | ClassJoints, tol: float | None
) -> Iterator[tuple[Rows, LowerCertificate]]:
    """Give each class's binary problem with the proof of its lower distance."""
    for rows, part in _tolerances(source, tol, every_class=True):
        yield rows, certify_lower(rows.joint, tol=part)


def _tolerances(
    source: ClassRows | ClassJoints, tol: float | None, *, every_class: bool = False
) -> Iterator[tuple[Rows, float]]:
    """Give the binary problems, and the tolerance of each: in proportion to E|y_j - v_j|."""
    tol = default_tolerance(source, tol)
    if source.n_classes == 2 and not every_class:  # both are the same number
        yield source.binary, tol
        return
    if isinstance(source, ClassRows):
        away = source.share * (1 - 2 * source.own)
        seen = np.bincount(source.label, source.share, source.n_classes)
        error = np.bincount(source.label, away, source.n_classes) + seen - source.mean_residual
    else:
        error = np.array([_mean_error(joint) for joint in source.joints])
    error = np.maximum(error, 1e-3 * max(float(error.sum()), 1e-12) / error.size)
    for rows, part in zip(source.problems(), 2 * tol * error / error.sum(), strict=True):
        yield rows, float(part)


def _mean_error(joint: Joint) -> float:
    mass0, mass1 = joint.normalized()
    return float(mass0 @ joint.prediction + mass1 @ (1 - joint.prediction))


def _ends(problem: tuple[Rows, float]) -> tuple[float, float]:
    rows, tol = problem
    proof = certify_lower(rows.joint, tol=tol)
    return proof.lower, proof.upper


def in_threads(
    function: Callable[[Item], Value], items: Iterable[Item], source: ClassRows | ClassJoints
) -> Iterator[Value]:
    """Apply a function to an item of each class, in their order, a few at a time."""
    rows = source.n_rows if isinstance(source, ClassRows) else source.joints[0].prediction.size
    threads = thread_count() if rows >= _THREADED else 1
    if threads == 1:
        yield from map(function, items)
        return
    from collections import deque
    from concurrent.futures import Future, ThreadPoolExecutor  # slow to import

    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Value]] = deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@dataclass(frozen=True)
class ClassLine(Result):
    """What one class has to do with the classwise distance.

    Attributes
    ----------
    name
        The class.
    share
        Half of its lower distance against the rest. The shares add up to the classwise distance.
    smooth_ce
        Its smooth calibration error against the rest.
    frequency, mean_prediction, mean_residual
        How often it is true, its mean probability, and the first less the second.
    noise
        What ``share`` would be, on average, if its probabilities were calibrated; None where the
        number of rows is not known.
    lower
        The lower limit of the population's share, at the table's confidence level; or None.
    """

    name: Any
    share: float
    smooth_ce: float
    frequency: float
    mean_prediction: float
    mean_residual: float
    noise: float | None
    lower: float | None

    def __str__(self) -> str:
        beside = "" if self.noise is None else f", {self.noise:.4g} if calibrated"
        limit = "" if self.lower is None else f", at least {least(self.lower)} in the population"
        return for_line(
            f"{self.name}: share {self.share:.4g}{beside}{limit}; true for {self.frequency:.4g} of "
            f"the rows, mean probability {self.mean_prediction:.4g}"
        )


@dataclass(frozen=True)
class ClassTable(Result):
    """The classwise distance and its parts.

    Attributes
    ----------
    lines
        A :class:`ClassLine` for each class, in the order of the columns.
    value
        The classwise distance, the sum of the shares.
    noise
        What it would be, on average, if all probabilities were calibrated.
    confidence_level
        That of each lower limit by itself; None where there are none.
    """

    lines: tuple[ClassLine, ...]
    value: float
    noise: float | None
    confidence_level: float | None

    def _lines(self) -> list[dict[str, Any]]:
        return [
            {"class": content.pop("name"), **content}
            for content in (line.to_dict() for line in self.lines)
        ]

    def __str__(self) -> str:
        """Return an aligned table."""
        head = ("class", "share", "lower", "noise", "smCE", "E[y - v]", "frequency")
        rows: list[tuple[str, ...]] = [head]
        for line in self.lines:
            lower = "" if line.lower is None else down(line.lower, 4)
            noise = "" if line.noise is None else number(line.noise)
            cells = (number(line.share), lower, noise, number(line.smooth_ce))
            rows.append(
                (str(line.name), *cells, signed(line.mean_residual), number(line.frequency))
            )
        beside = "" if self.noise is None else f"; calibrated predictions show {number(self.noise)}"
        return "\n".join(
            [*aligned(rows, left={0}), f"classwise distance {number(self.value)}{beside}"]
        )


@answering
def classwise_table(
    y_true: ArrayLike | dict[Any, Joint] | list[Joint],
    y_prob: ArrayLike | None = None,
    *,
    tol: float | None = None,
    classes: Classes | None = None,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
    confidence_level: float | None = 0.95,
    rng: validate.Rng = 0,
) -> ClassTable:
    r"""Return what each class has to do with the classwise distance.

    .. math:: \mathrm{CW} = \sum_j s_j, \quad s_j = \tfrac12 \mathrm{ldCE}(v_j, 1[y = j])

    **What it means.** A line for each class: its share :math:`s_j`, its smooth calibration error,
    its mean residual, the level :math:`0.45\,\sigma_j/\sqrt n` that noise alone would show, and the
    lower limit of the share that survives the noise. A share below its level of noise says nothing
    against the class.

    **What it estimates.** The shares are the sample's, biased upwards by about their noise; each
    lower limit holds for the population by itself, with the given confidence, by duals found on
    one fifth of the rows and evaluated on the others (see :func:`caldist.confidence_interval`).

    **Cost.** As :func:`caldist.multiclass.classwise_distance`, and ten times the solver on a fifth
    of the rows for the limits.

    Parameters
    ----------
    y_true : array-like of classes, or a Joint for each class
    y_prob : matrix
        A row per example and a column per class.
    tol : float, optional
        How precise the sum of the shares shall be; by default as there.
    classes : sequence, optional
        The labels in the order of the columns, where they are not 0, 1, … or the names of a
        frame's columns.
    normalize : bool
        Divide each row by its sum, where rounding keeps rows from summing to 1.
    sample_weight : array-like, optional
    confidence_level : float or None
        That of the lower limits; None leaves them out.
    rng : int, numpy.random.Generator or None
        How the rows are dealt into fifths. The same rows give the same answer; None draws a fresh
        seed.

    Returns
    -------
    ClassTable

    Examples
    --------
    >>> from caldist import multiclass
    >>> y_prob = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]
    >>> table = multiclass.classwise_table([0, 2, 2, 1], y_prob, confidence_level=None)
    >>> [round(line.share, 3) for line in table.lines], round(table.value, 3)
    ([0.062, 0.031, 0.094], 0.188)
    >>> print(table)
    class   share  lower   noise    smCE  E[y - v]  frequency
    0      0.0625         0.1052  0.1250   -0.1250     0.2500
    1      0.0312         0.1014  0.0781   -0.0625     0.2500
    2      0.0938         0.1014  0.1875   +0.1875     0.5000
    classwise distance 0.1875; calibrated predictions show 0.3080
    """
    if tol is not None:
        tol = validate.check_positive("tol", tol)
    if confidence_level is not None:
        confidence_level = validate.check_fraction("confidence_level", confidence_level)
    resampler = Resampler.of(rng, n_resamples=1)
    source = class_source(
        y_true, y_prob, classes=classes, normalize=normalize, sample_weight=sample_weight
    )

    def line(problem: tuple[Any, tuple[Rows, float]]) -> ClassLine:
        name, (rows, part) = problem
        return _class_line(name, rows, part, confidence_level, resampler)

    problems = zip(source.names, _tolerances(source, tol, every_class=True), strict=True)
    lines = tuple(in_threads(line, problems, source))
    noises = [line.noise for line in lines if line.noise is not None]
    return ClassTable(
        lines=lines,
        value=math.fsum(line.share for line in lines),
        noise=math.fsum(noises) if len(noises) == len(lines) else None,
        confidence_level=confidence_level,
    )


def _class_line(
    name: Any, rows: Rows, tol: float, confidence_level: float | None, resampler: Resampler
) -> ClassLine:
    joint = rows.joint
    mass0, mass1 = joint.normalized()
    frequency = float(mass1.sum())
    prediction = float((mass0 + mass1) @ joint.prediction)
    noise = lower = None
    if rows.n_rows is not None:
        units = ordered_units(rows)
        v = units.prediction
        noise = NULL * math.sqrt(float(units.squares @ (v * (1 - v))))
        if confidence_level is not None:
            limits = Limits(units, 2 * (1 - confidence_level), resampler, "cross_fit")
            limit = limits.split_lower(lower_distance)
            if joint.radius > 0:  # of the rows behind rounded predictions
                value = lower_distance.using(tol=tol).of(joint)
                ends = lower_distance.rounding(joint, value)
                limit -= value - ends[0] if ends is not None else joint.radius
            lower = 0.5 * max(0.0, limit)
    return ClassLine(
        name=name,
        share=0.5 * certify_lower(joint, tol=tol).lower,
        smooth_ce=binary_smooth_ce(joint),
        frequency=frequency,
        mean_prediction=prediction,
        mean_residual=frequency - prediction,
        noise=noise,
        lower=lower,
    )
