"""The losses for several classes, by an explicit reduction to binary problems."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from caldist.data import validate
from caldist.errors import answering
from caldist.torch import _checks
from caldist.torch._kernel_loss import KernelName, in_power, kernel_losses
from caldist.torch._operators import UNSAFE
from caldist.torch._smooth import smooth_losses

Reduction = Literal["top_label", "classwise"]


@answering
def multiclass_kernel_ce_loss(
    preds: Tensor,
    target: Tensor,
    *,
    from_logits: bool,
    reduction: Reduction = "classwise",
    kernel: KernelName = "laplace",
    bandwidth: float = 1.0,
    sample_weight: Tensor | None = None,
    squared: bool = True,
    unbiased: bool = False,
) -> Tensor:
    r"""Return the kernel calibration error of predictions over several classes.

    .. math:: \tfrac12 \sum_j \mathrm{kCE}(v_j, 1[y = j])^2

    with ``reduction="classwise"``, the default.

    **What it means.** ``"classwise"`` asks of every class whether it comes true as often as its
    probability says: half the sum over the classes of kCE² of each against the rest. The factor
    is ½ whatever the number of classes, so that with two classes it is
    :func:`caldist.torch.kernel_ce_loss` of the second, to the bit, and with more it is
    :func:`caldist.multiclass.kernel_ce` with ``structure="classwise"``. It is not divided by the
    number of classes: a mean over many classes vanishes. ``"top_label"`` asks it of the most
    probable class alone, with factor 1, as :func:`caldist.multiclass.top_label` does; of equally
    probable classes the first counts, and only its probability has a gradient.

    **What it estimates**, its gradient and its cost are those of
    :func:`caldist.torch.kernel_ce_loss`, for each binary problem.

    Parameters
    ----------
    preds : floating-point matrix
        A row per example, a column per class.
    target : tensor of class numbers 0, 1, …
    from_logits : bool
        Whether ``preds`` are logits, which get a softmax, or probabilities, whose rows must sum to
        1. There is no default, because a wrong guess would go unnoticed.
    reduction : "classwise" or "top_label"
    kernel, bandwidth, sample_weight, unbiased
        As in :func:`caldist.torch.kernel_ce_loss`.
    squared : bool
        Return what is above. Otherwise its root, 0 if an unbiased estimate is negative.

    Returns
    -------
    scalar tensor

    Examples
    --------
    >>> import torch
    >>> from caldist.torch import multiclass_kernel_ce_loss
    >>> logits = torch.tensor([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0]], requires_grad=True)
    >>> loss = multiclass_kernel_ce_loss(logits, torch.tensor([0, 2]), from_logits=True)
    >>> round(loss.item(), 4)
    0.2168
    """
    prob, label, weight = _problems(preds, target, sample_weight, reduction, from_logits)
    losses = kernel_losses(
        prob, label, weight, kernel=kernel, bandwidth=bandwidth, unbiased=unbiased
    )
    return in_power(_total(losses), squared=squared)


@answering
def multiclass_smooth_ce_loss(
    preds: Tensor,
    target: Tensor,
    *,
    from_logits: bool,
    reduction: Reduction = "classwise",
    sample_weight: Tensor | None = None,
) -> Tensor:
    r"""Return the smooth calibration error of predictions over several classes.

    .. math:: \tfrac12 \sum_j \mathrm{smCE}(v_j, 1[y = j])

    with ``reduction="classwise"``, the default.

    **What it means.** As for :func:`caldist.torch.multiclass_kernel_ce_loss`, with
    :func:`caldist.torch.smooth_ce_loss` for each binary problem: half the sum over the classes,
    and with two classes the binary loss of the second, to the bit.

    Parameters
    ----------
    preds : floating-point matrix
        A row per example, a column per class.
    target : tensor of class numbers 0, 1, …
    from_logits : bool
        Whether ``preds`` are logits or probabilities.
    reduction : "classwise" or "top_label"
    sample_weight : tensor, optional

    Returns
    -------
    scalar tensor

    Examples
    --------
    >>> import torch
    >>> from caldist.torch import multiclass_smooth_ce_loss
    >>> preds = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    >>> target = torch.tensor([0, 2])
    >>> multiclass_smooth_ce_loss(preds, target, from_logits=False)
    tensor(0.3906)
    """
    problems = _problems(preds, target, sample_weight, reduction, from_logits)
    return _total(smooth_losses(*problems))


def _total(losses: Tensor) -> Tensor:
    """Return half the sum over classes; a binary problem by itself counts in full."""
    return losses.squeeze(0) if losses.shape[0] == 1 else 0.5 * losses.sum()


def _problems(
    preds: object, target: object, sample_weight: object, reduction: object, from_logits: object
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the binary problems as rows of matrices of predictions and labels, and the weights."""
    validate.check_choice("reduction", reduction, ("top_label", "classwise"))
    from_logits = validate.check_flag("from_logits", from_logits)
    matrix, chosen, weight = _checks.classes(preds, target, sample_weight)
    prob = matrix.softmax(dim=1) if from_logits else matrix
    number = class_numbers(prob.detach(), chosen, from_logits)
    if reduction == "classwise":
        columns = torch.arange(prob.shape[1], device=prob.device)
        first = 1 if prob.shape[1] == 2 else 0  # of two classes the second says it all
        return prob.T[first:], columns[first:, None] == number, weight
    best = prob.argmax(dim=1, keepdim=True)
    return prob.gather(1, best).T, number == best.T, weight


def _class_numbers(
    prob: Tensor,
    target: Tensor,
    from_logits: bool,  # noqa: FBT001 -- an operator's arguments are positional
) -> Tensor:
    """Return the targets as integers, after a check of all values."""
    _checks.check_class_values(prob, target, from_logits=from_logits)
    return target.to(torch.int64, copy=True)


class_numbers = torch.library.custom_op(
    "caldist::class_numbers",
    _class_numbers,
    mutates_args=(),
    schema="(Tensor prob, Tensor target, bool from_logits) -> Tensor",
    tags=UNSAFE,
)


@class_numbers.register_fake
def _shape(prob: Tensor, target: Tensor, *_inputs: Any) -> Tensor:
    del prob
    return torch.empty_like(target, dtype=torch.int64)
