"""The kernel calibration error, kCE."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.products import dot
from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.residuals import Residuals
from caldist.data.rows import Rows
from caldist.kernels.loader import gaussian, laplace
from caldist.measures import _kernel_estimators as estimators
from caldist.measures import _second_order
from caldist.measures._counted_rows import counted_joint
from caldist.measures._passes import laplace_squared
from caldist.measures._rounding import around, better_of, moves_in_cells, residual_rounding
from caldist.measures.base import Entries, Worst, measure
from caldist.measures.norms import Norm

KernelFunction = Callable[[Vector, Vector], Any]
Kernel = Literal["laplace", "gaussian"] | KernelFunction
Method = Literal["exact", "subsample", "fourier", "binning"]

_FEATURES = ("fourier", "binning")  # the methods that average draws of features
# What other options than kernel and bandwidth are where kCE is a norm; rng does nothing there.
_OF_NORM = {
    "method": "exact",
    "squared": False,
    "unbiased": False,
    "n_terms": None,
    "n_features": None,
}
_PROVED = {"kernel": "laplace", "bandwidth": 1.0, **_OF_NORM}  # the effect of rounding


class KernelNorm(Norm):
    """kCE: the unit ball of the Hilbert space of the Laplace or the Gaussian kernel."""

    noise = 1.0

    def __init__(
        self, prediction: Vector, *, kernel: str = "laplace", bandwidth: float = 1.0, **others: Any
    ) -> None:
        super().__init__(prediction)
        for name, value in others.items():
            if name != "rng" and value != _OF_NORM[name]:
                message = f"{name} is {value!r}: with it kernel_ce is not the norm that this needs."
                raise ValueError(message)
        if callable(kernel):
            message = (
                "kernel is a function; replicates are fast and proved for kernel='laplace' and "
                "kernel='gaussian' only."
            )
            raise ValueError(message)  # noqa: TRY004 -- kernel_ce itself takes functions
        validate.check_choice("kernel", kernel, ("laplace", "gaussian"))
        self.kernel = kernel
        self.bandwidth = validate.check_positive("bandwidth", bandwidth)

    def __call__(self, masses: Vector) -> float:
        """Return the norm of masses on the support."""
        square = laplace_squared if self.kernel == "laplace" else gaussian.squared
        return math.sqrt(max(0.0, square(self.prediction, masses, self.bandwidth)))

    def witness(self, masses: Vector) -> Vector:
        """Return Kc/‖c‖, or 0 where ‖c‖ is 0."""
        potential, none = np.empty_like(masses), np.empty(0)
        sums = laplace.sums if self.kernel == "laplace" else gaussian.sums
        sums(self.prediction, masses, self.bandwidth, potential, none, none)
        norm = self(masses)
        return potential / norm if norm > 0 else np.zeros_like(masses)

    def candidates(self, masses: Vector, noise: float) -> Vector | None:
        """Trust the witness once the norm stands out of the noise."""
        return None if self(masses) < 2 * noise else super().candidates(masses, noise)


def _rounding_bounds(joint: Joint, value: float, **options: Any) -> tuple[float, float] | None:
    """Bound the Laplace kCE of bandwidth 1; of no other option is a bound known.

    Gridded: the moves within the cells are a measure of total 0 whose primitive M vanishes outside
    them. Its squared norm is at most 2 times the integral of M^2, and within a cell |M| is at most
    the sum A of |e| on either side of the centre, so at most 2 max(left, right) A^2 a cell. The
    integral of |M| is at most that of |e| |v - v'|, so at most 2 A times this as well.
    Otherwise the paper's Lemma: kCE moves by at most 2 sqrt(2 E|v - v'|).
    """
    if any(name != "rng" and option != _PROVED[name] for name, option in options.items()):
        return None
    if joint.grid is None:
        return around(value, 2 * math.sqrt(2 * joint.radius))
    grid = joint.grid
    low = grid.cell * grid.width
    high = low + grid.width
    side = np.maximum(joint.prediction - low, high - joint.prediction)
    size = (joint.mass0 * high + joint.mass1 * (1 - low)) / joint.total  # of |e|, from above
    moved = math.sqrt(2 * dot(np.minimum(side * size, moves_in_cells(joint)), size))
    bounds = around(value, moved + residual_rounding(joint))
    if grid.within_cells is None:
        return bounds
    return better_of(bounds, _second_order.laplace(grid.within_cells, grid.width))


def _properties() -> Entries:
    from caldist.paper import claims, evidence

    of_laplace, of_gaussian = math.sqrt(8), 1 + math.sqrt(2)
    yield claims.Entry(
        claims.of_joints("kernel_ce (Laplace)", kernel_ce),
        claims.modulus("It moves by at most 2√(2 E|f - g|) (section 8).", of_laplace, 0.5),
        claims.complete(),
        claims.sound("From kCE ≥ ⅓ smCE."),
        claims.above(
            "1/2", "kCE ≤ 2√(2 ldCE): the constant that section 8 proves; it states 1.", of_laplace
        ),
        claims.below("2", "kCE ≥ ⅓ smCE (section 8), smCE ≥ ½ ldCE and dCE ≤ 4√ldCE.", 1 / 96),
        paper=(True, True, True),
    )
    yield claims.Entry(
        claims.of_joints("kernel_ce (Gaussian)", kernel_ce.using(kernel="gaussian")),
        claims.modulus(
            "(1 + √2)-Lipschitz: from ‖φ(u) - φ(v)‖ ≤ √2|u - v|. Appendix C states O(√E|f - g|).",
            of_gaussian,
        ),
        claims.complete(),
        claims.sound("kCE ≥ exp(-O(smCE^-4)) > 0 (appendix C)."),
        claims.above(
            "1",
            "From its being (1 + √2)-Lipschitz in every coupling, ldCE's included.",
            of_gaussian,
        ),
        claims.refuted(
            "Exponentially small at polynomially large smCE (section 8, appendix C).",
            evidence.vanishes,
        ),
    )


def _encloses(joint: Joint, **options: Any) -> tuple[float, float | None, float | None]:
    """Return the value, which is certain itself unless it was estimated."""
    value = kernel_ce(joint, **options)
    certain = value if options.get("method", "exact") == "exact" else None
    return value, certain, certain


@measure(
    symbol="kCE",
    summary="largest correlation of the residuals with the unit ball of the {kernel} kernel",
    position=20,
    shown_in=("evaluate", "measure", "report"),
    encloses=_encloses,
    rounding=_rounding_bounds,
    norm=KernelNorm,
    worst=Worst(bias=KernelNorm.noise, reach=2.0),
    properties=_properties,
)
def kernel_ce(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    kernel: Kernel = "laplace",
    bandwidth: float = 1.0,
    method: Method = "exact",
    squared: bool = False,
    unbiased: bool = False,
    n_terms: int | None = None,
    n_features: int | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    rng: validate.Rng = 0,
) -> float:
    r"""Return the kernel calibration error.

    .. math:: \mathrm{kCE}^2 = E[(y - v)(y' - v')\,K(v, v')]

    for two independent rows, with the Laplace kernel :math:`K = e^{-|v - v'|/h}`, the Gaussian
    kernel :math:`K = e^{-((v - v')/h)^2}` or one of your own. It is the largest correlation of the
    residuals with any function in the unit ball of the kernel's Hilbert space.

    **What it means.** With the Laplace kernel at bandwidth 1 it bounds the lower distance to
    calibration from both sides: :math:`\mathrm{smCE}/\sqrt2 \le \mathrm{kCE}` and
    :math:`\mathrm{kCE} \le \sqrt{2\,\mathrm{ldCE}}`. The Gaussian kernel has no such bound below:
    it can be exponentially small for predictions far from calibrated.

    Twice its square is the squared kernel calibration error (SKCE) of the probability vectors
    p = (1 - v, v), :math:`E[(e_y - p)^\top K(p, p')\,(e_{y'} - p')]` with the unit vector
    :math:`e_y` of the label and the kernel times the identity, because
    :math:`e_y - p = (y - v)\,(-1, 1)`. The unbiased estimator of the SKCE is
    ``2 * kernel_ce(y_true, y_prob, squared=True, unbiased=True)``. There the kernel is a function
    of the total variation distance, \|v - v'\|; with the Euclidean distance
    :math:`\sqrt2\,|v - v'|` the same kernels have the bandwidth :math:`\sqrt2\,h`.

    **What it estimates.** The population's value, at rate 1/√n, with an upward bias that
    ``unbiased=True`` takes off the square.

    **Cost.** Laplace and Gaussian O(n log n), a sort and one pass, at any bandwidth. The Gaussian
    sum is exact to 1e-13 for bandwidths of at least 0.001; below, rounding grows like
    1e-16/bandwidth. A callable costs O(n²) time in blocks of bounded memory.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    kernel : "laplace", "gaussian" or callable
        A callable K(u, v) takes two arrays that broadcast and returns the kernel's values; it must
        be symmetric and positive definite. The bandwidth is not passed on to it.
    bandwidth : float
        h above.
    method : "exact", "subsample", "fourier" or "binning"
        The exact sum, or one of the paper's unbiased estimators of the square: random pairs of
        rows; random Fourier features (Laplace and Gaussian); random bins (Laplace).
    squared : bool
        Return kCE², which may be negative for an estimate. Otherwise its root, 0 if negative.
    unbiased : bool
        The U-statistic: leave out the pairs of a row with itself. Only exact, without weights, and
        not of a joint on a grid.
    n_terms : int, optional
        Only for "subsample": pairs; by default the paper's 10 n.
    n_features : int, optional
        Only for "fourier" and "binning": draws to average; by default one, as in the paper.
        :func:`caldist.kernel_ce_draws` gives both for a wanted precision.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    rng : int, numpy.random.Generator or None
        For the estimators. The same rows give the same answer; None draws a fresh seed.

    References
    ----------
    Kumar, Sarawagi and Jain, "Trainable calibration measures for neural networks from kernel mean
    embeddings", 2018. Widmann, Lindsten and Zachariah, "Calibration tests in multi-class
    classification: a unifying framework", 2019. Błasiok, Gopalan, Hu and Nakkiran, "A Unifying
    Theory of Distance from Calibration", 2023, section 8.

    Examples
    --------
    >>> import caldist
    >>> round(caldist.kernel_ce([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]), 12)
    0.055443477714
    """
    if not callable(kernel):
        validate.check_choice("kernel", kernel, ("laplace", "gaussian"))
    bandwidth = validate.check_positive("bandwidth", bandwidth)
    validate.check_choice("method", method, ("exact", "subsample", "fourier", "binning"))
    squared = validate.check_flag("squared", squared)
    unbiased = validate.check_flag("unbiased", unbiased)
    if n_terms is not None:
        n_terms = validate.check_count("n_terms", n_terms)
        validate.check_goes_with("n_terms", n_terms, "method", method, ("subsample",))
    if n_features is not None:
        n_features = validate.check_count("n_features", n_features)
        validate.check_goes_with("n_features", n_features, "method", method, _FEATURES)
    if unbiased:
        validate.check_goes_with("unbiased", unbiased, "method", method, ("exact",))
    generator = validate.generator(rng)
    if unbiased:
        why = "unbiased=True is for rows that count one each (unbiased=False takes any)"
        joint = counted_joint(y_true, y_prob, sample_weight, why, pos_label)
        value = _exact(Residuals.of(joint), kernel, bandwidth)
        value = _without_diagonal(joint, value, _function(kernel, bandwidth))
        return _finish(value, squared=squared)
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    if method == "exact":
        return _finish(_exact(rows.residuals, kernel, bandwidth), squared=squared)
    joint = rows.joint
    if method == "subsample":
        terms = 10 * (joint.n_rows or 1) if n_terms is None else n_terms
        value = estimators.subsample(joint, _function(kernel, bandwidth), terms, generator)
    elif method == "fourier":
        if callable(kernel):
            message = "method='fourier' knows the frequencies of 'laplace' and 'gaussian' only."
            raise ValueError(message)
        value = estimators.fourier(joint, kernel, bandwidth, n_features or 1, generator)
    else:
        if kernel != "laplace":
            message = f"method='binning' is for kernel='laplace' only; kernel is {kernel!r}."
            raise ValueError(message)
        value = estimators.binning(joint, bandwidth, n_features or 1, generator)
    return _finish(value, squared=squared)


def _exact(residuals: Residuals, kernel: Kernel, bandwidth: float) -> float:
    if kernel == "laplace":
        return laplace_squared(*residuals, bandwidth)
    if kernel == "gaussian":
        return float(gaussian.squared(*residuals, bandwidth))
    return float(estimators.dense(*residuals, _function(kernel, bandwidth)))


def _finish(value: float, *, squared: bool) -> float:
    return float(value) if squared else math.sqrt(max(0.0, value))


def _function(kernel: Kernel, bandwidth: float) -> KernelFunction:
    if kernel == "laplace":
        return lambda u, v: np.exp(-np.abs(u - v) / bandwidth)
    if kernel == "gaussian":
        # Beyond 40 bandwidths the kernel is 0, and the square must not overflow.
        return lambda u, v: np.exp(-(np.minimum(np.abs(u - v) / bandwidth, 40.0) ** 2))
    return kernel


def _without_diagonal(joint: Joint, value: float, function: KernelFunction) -> float:
    """Return the U-statistic from the V-statistic ``value`` of unweighted rows."""
    n = joint.total
    if n < 2:
        message = "unbiased=True needs at least two rows; y_prob has 1."
        raise ValueError(message)
    v = joint.prediction
    own = joint.mass1 * (1 - v) ** 2 + joint.mass0 * v**2
    diagonal = estimators.evaluate_kernel(function, v, v)
    return (n * n * value - dot(own, diagonal)) / (n * (n - 1))
