"""The kernel calibration error as a loss."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from caldist.data import validate
from caldist.errors import InvalidInput, answering
from caldist.torch import _checks
from caldist.torch._operators import kernel_squared

KernelName = Literal["laplace", "gaussian"]

NARROWEST_GAUSSIAN = 1e-6


@answering
def kernel_ce_loss(
    y_prob: Tensor,
    y_true: Tensor,
    *,
    kernel: KernelName = "laplace",
    bandwidth: float = 1.0,
    sample_weight: Tensor | None = None,
    squared: bool = True,
    unbiased: bool = False,
) -> Tensor:
    r"""Return the kernel calibration error of a batch, to be minimised.

    .. math:: \mathrm{kCE}^2 = \sum_{i, j} c_i c_j K(v_i, v_j), \qquad c_i = (y_i - v_i)/n

    with the Laplace kernel :math:`K = e^{-|v - v'|/h}` or the Gaussian kernel
    :math:`K = e^{-((v - v')/h)^2}`: the square of :func:`caldist.kernel_ce`, exactly.

    **What it means.** It is 0 if and only if the batch is perfectly calibrated. Its gradient moves
    the predictions towards the labels seen around them, and has no part that rewards accuracy: add
    it, times a weight, to a proper loss.

    **What it estimates.** The population's kCE², with an upward bias of order 1/n that
    ``unbiased=True`` takes off. In training the bias pulls like a Brier score of weight 1/n.

    **Gradient.** Exact, in the predictions, equal ones included: there :math:`|v - v'|` counts with
    slope 0, as in automatic differentiation of the double sum. Second derivatives work too
    (``create_graph=True``), third ones do not. The root has no derivative at 0; its gradient there
    is set to 0. There is no gradient in labels and weights.

    **Cost.** O(n log n) time and O(n) memory, sorting included; the Gaussian kernel on a GPU takes
    all pairs of up to 8,192 rows. All sums are in float64 whatever the input. Half precision is
    computed as float32. Values are checked: on a GPU the loss waits for its inputs once, not for
    its result. Works under autocast and ``torch.compile``, but not under the transforms of
    ``torch.func``, nor inside a CUDA graph captured by hand, which cannot check anything.

    Parameters
    ----------
    y_prob : floating-point tensor in [0, 1]
        The predicted probability of label 1, not logits: apply the sigmoid first.
    y_true : tensor of 0 and 1, of any real type
    kernel : "laplace" or "gaussian"
    bandwidth : float
        h above. The Gaussian gradient has a rounding error of 1e-16/h, so h is at least 1e-6
        there; the Laplace kernel takes any.
    sample_weight : tensor, optional
    squared : bool
        Return kCE². Otherwise its root, 0 if an unbiased estimate is negative.
    unbiased : bool
        The U-statistic: leave out the pairs of a row with itself. Only without weights.

    Returns
    -------
    scalar tensor
        Of the type of ``y_prob``; float32 for types below it.

    References
    ----------
    Kumar, Sarawagi and Jain, "Trainable calibration measures for neural networks from kernel mean
    embeddings", 2018. Błasiok, Gopalan, Hu and Nakkiran, "A Unifying Theory of Distance from
    Calibration", 2023, section 8.

    Examples
    --------
    >>> import torch
    >>> from caldist.torch import kernel_ce_loss
    >>> y_prob = torch.tensor([0.25, 0.5, 0.5, 0.75], dtype=torch.float64, requires_grad=True)
    >>> loss = kernel_ce_loss(y_prob, torch.tensor([0, 1, 0, 1]), squared=False)
    >>> round(loss.item(), 12)
    0.055443477714
    >>> loss.backward()
    >>> y_prob.grad is None
    False
    """
    prob, label, weight = _checks.vectors(y_prob, y_true, sample_weight)
    loss = kernel_losses(
        _checks.working_precision(prob), label, weight,
        kernel=kernel, bandwidth=bandwidth, unbiased=unbiased,
    )  # fmt: skip
    return in_power(loss, squared=squared)


def kernel_losses(
    prob: Tensor,
    label: Tensor,
    weight: Tensor | None,
    *,
    kernel: str,
    bandwidth: float,
    unbiased: bool,
) -> Tensor:
    """Return kCE² of each row of a matrix of problems that share their weights, or of vectors."""
    validate.check_choice("kernel", kernel, ("laplace", "gaussian"))
    bandwidth = validate.check_positive("bandwidth", bandwidth)
    if kernel == "gaussian" and bandwidth < NARROWEST_GAUSSIAN:
        raise InvalidInput(
            argument="bandwidth",
            value=bandwidth,
            reason=f"for kernel='gaussian' it must be at least {NARROWEST_GAUSSIAN}, because below "
            "rounding hides the gradient",
        )
    unbiased = validate.check_flag("unbiased", unbiased)
    if unbiased:
        if weight is not None:
            raise InvalidInput(
                argument="unbiased",
                value=True,
                reason="it is defined for rows of equal weight, but sample_weight was given",
                remedy="Leave one of the two out.",
            )
        if prob.shape[-1] < 2:
            reason = "it needs at least two rows, and there is one"
            raise InvalidInput(argument="unbiased", value=True, reason=reason)
    with_gradient = torch.is_grad_enabled() and prob.requires_grad
    return kernel_squared(prob, label, weight, kernel, bandwidth, unbiased, with_gradient)


def in_power(value: Tensor, *, squared: bool) -> Tensor:
    """Return a square as it is, or its root."""
    if validate.check_flag("squared", squared):
        return value
    if not value.requires_grad:
        return value.clamp(min=0).sqrt_()
    # Where the value is 0 the root is taken of 1 instead, so that no gradient is infinite.
    positive = value > 0
    return torch.where(positive, torch.where(positive, value, 1.0).sqrt(), 0.0)
