"""The smooth calibration error as a loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from caldist._util.types import Vector
from caldist.errors import answering
from caldist.kernels.loader import smooth
from caldist.torch import _checks
from caldist.torch._operators import UNSAFE, sort_rows


@answering
def smooth_ce_loss(
    y_prob: Tensor,
    y_true: Tensor,
    *,
    sample_weight: Tensor | None = None,
) -> Tensor:
    r"""Return the smooth calibration error of a batch, to be minimised.

    .. math:: \mathrm{smCE} = \sup_w \sum_i c_i\, w(v_i), \qquad c_i = (y_i - v_i)/n

    over all 1-Lipschitz functions :math:`w : [0, 1] \to [-1, 1]`.

    **What it means.** Within a factor of two the lower distance to calibration; see
    :func:`caldist.smooth_ce`. Unlike kCE² it is of the first order: its gradient does not fade as
    predictions come close to calibrated.

    **What it estimates.** The population's value, at rate 1/√n. A calibrated model shows about
    0.4/√n, and the gradient of a small batch chases that noise: use large batches.

    **Gradient.** With w the best function, the gradient is :math:`-w(v_i)/n + c_i w'(v_i)`. Where
    the error has a gradient, this is it. Where w has a kink at a prediction, w' is the value
    between its two slopes that the error's own change gives when all equal predictions move
    together; where several w are best, one close to 0 is taken. There are no second derivatives.

    **Cost.** O(n log n) time and O(n) memory. The sort runs where the tensors are; the rest is a
    sequential pass on the CPU, so that tensors on a GPU cost a transfer there and back.

    Parameters
    ----------
    y_prob : floating-point tensor in [0, 1]
        The predicted probability of label 1, not logits: apply the sigmoid first.
    y_true : tensor of 0 and 1, of any real type
    sample_weight : tensor, optional

    Returns
    -------
    scalar tensor
        Of the type of ``y_prob``; float32 for types below it.

    References
    ----------
    Kakade and Foster, "Deterministic calibration and Nash equilibrium", 2008. Błasiok, Gopalan, Hu
    and Nakkiran, "A Unifying Theory of Distance from Calibration", 2023, section 7.

    Examples
    --------
    >>> import torch
    >>> from caldist.torch import smooth_ce_loss
    >>> y_prob = torch.tensor([0.25, 0.5, 0.5, 0.75], requires_grad=True)
    >>> loss = smooth_ce_loss(y_prob, torch.tensor([0, 1, 0, 1]))
    >>> loss.item()
    0.03125
    >>> loss.backward()
    >>> y_prob.grad
    tensor([ 0.0625,  0.1875, -0.0625,  0.0625])
    """
    return smooth_losses(*_checks.binary(y_prob, y_true, sample_weight)).squeeze(0)


def smooth_losses(prob: Tensor, label: Tensor, weight: Tensor | None) -> Tensor:
    """Return the loss of each row of a matrix of problems that share their weights."""
    with_gradient = torch.is_grad_enabled() and prob.requires_grad
    value: Tensor = smooth_ce(prob, label, weight, with_gradient)[0]
    return value


def _smooth_ce(
    prob: Tensor,
    label: Tensor,
    weight: Tensor | None,
    with_gradient: bool,  # noqa: FBT001 -- an operator's arguments are positional
) -> tuple[Tensor, Tensor]:
    """Return smCE of each problem, and the gradient where it is wanted."""
    _checks.check_binary_values(prob, label, weight)
    rows = sort_rows(prob, label, weight)
    mass = torch.as_tensor(rows.mass * rows.unit).expand_as(rows.prediction)
    on_cpu = (rows.prediction, mass, rows.residual * rows.unit)
    problems = zip(*(part.cpu().numpy() for part in on_cpu), strict=True)
    solved = [_solve(*problem, with_gradient=with_gradient) for problem in problems]
    value = prob.new_tensor([value for value, _ in solved])
    if not with_gradient:
        return value, prob.new_empty(0)
    gradient = torch.from_numpy(np.stack([gradient for _, gradient in solved]))
    return value, rows.restore(gradient.to(prob.dtype).to(prob.device), prob.dtype)


def _solve(v: Vector, mass: Vector, c: Vector, *, with_gradient: bool) -> tuple[float, Vector]:
    """Return smCE and its gradient from sorted rows."""
    first = np.flatnonzero(np.diff(v, prepend=-1.0))  # of each run of equal predictions
    knot, residual = v[first], np.add.reduceat(c, first)
    if not with_gradient:
        return smooth.smooth_ce(knot, residual, np.empty(0)), np.empty(0)
    curve, witness = np.empty_like(knot), np.empty_like(knot)
    value = smooth.smooth_ce(knot, residual, curve)
    smooth.witness(knot, residual, curve, witness)
    size = np.diff(first, append=v.size)
    slope = _slopes(residual, curve)
    return value, c * np.repeat(slope, size) - mass * np.repeat(witness, size)


def _slopes(residual: Vector, curve: Vector) -> Vector:
    """Return the slope that the best function shows to each distinct prediction.

    A gap wider by one unit is worth |S - x|, the distance of the prefix sum of the residuals from
    the dual curve there. So moving a prediction up is worth the left gap's worth minus the right
    one's, and the slope is that over the residual. It lies between the slopes of the two sides,
    -sign(S - x) up to the sign of the total; with no residual both are the same.
    """
    apart = np.cumsum(residual) - curve
    apart[-1] = 0.0  # nothing lies beyond the last prediction
    worth = np.abs(apart)
    moved = np.concatenate(([0.0], worth[:-1])) - worth
    slope = -np.sign(apart)
    np.divide(moved, residual, out=slope, where=residual != 0)
    return np.clip(slope, -1.0, 1.0)  # a quotient of tiny numbers may pass 1 by rounding


smooth_ce = torch.library.custom_op(
    "caldist::smooth_ce",
    _smooth_ce,
    mutates_args=(),
    schema="(Tensor prob, Tensor label, Tensor? weight, bool with_gradient) -> (Tensor, Tensor)",
    tags=UNSAFE,
)


@smooth_ce.register_fake
def _shapes(prob: Tensor, *inputs: Any) -> tuple[Tensor, Tensor]:
    value = prob.new_empty(prob.shape[0])
    return value, prob.new_empty(prob.shape if inputs[-1] else 0)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    del inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(output[1])


def _backward(ctx: Any, d_value: Tensor | None, d_gradient: Tensor | None) -> tuple[Any, ...]:
    if d_gradient is not None:
        message = "smooth_ce_loss has no second derivatives: its gradient jumps."
        raise NotImplementedError(message)
    if d_value is None:
        return None, None, None, None
    (gradient,) = ctx.saved_tensors
    return d_value[:, None] * gradient, None, None, None


smooth_ce.register_autograd(_backward, setup_context=_keep)
