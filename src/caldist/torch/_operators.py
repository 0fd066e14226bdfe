r"""kCE² of many problems at once as a PyTorch operator, with its gradient and its Hessian.

Notation: v predictions, y labels, m masses that sum to 1, c = m (y - v) residuals, K the kernel.
With P, D, M the sums of c times the kernel, its slope and its curvature around every row,

    kCE² = Σ c P,    gradient = 2 (c D - m P).

The unbiased estimate leaves the pair of a row with itself out of P, as P - c since K(v, v) = 1, and
scales all by n/(n - 1).

The gradient costs little more than the value, so the forward pass computes both, and keeps nothing
else. It is a second output of the operator: its own derivative along a direction is a product with
the Hessian, which makes double backward work. ``torch.compile`` sees one opaque operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from caldist.torch import _checks
from caldist.torch._kernel_sums import kernel_sums

# Values are checked on the host, which a CUDA graph cannot wait for.
UNSAFE = (torch.Tag.cudagraph_unsafe,)

# From the bits of a float in [0, 1], which order like integers and leave the sign bit free.
KEYS = {torch.float32: torch.int32, torch.float64: torch.int64}


@dataclass(frozen=True)
class SortedRows:
    """The rows of each problem in the order of their predictions, in float64.

    Masses, and residuals with them, sum to 1 when they are multiplied by ``unit``: equal masses
    are 1, and cost no pass over the rows.
    """

    prediction: Tensor
    mass: Tensor | float
    residual: Tensor
    order: Tensor
    unit: float

    def restore(self, values: Tensor, dtype: torch.dtype, factor: float = 1.0) -> Tensor:
        """Put multiples of values, one for each sorted row, into the order the rows came in."""
        multiple = torch.mul(values, factor, out=torch.empty_like(values, dtype=dtype))
        return torch.empty_like(multiple).scatter_(-1, self.order, multiple)


def sorted_labels(prob: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    """Sort integer keys, the bits of a prediction and the label as the last one; with the order.

    Integers sort several times faster than floats, and no label needs to be fetched afterwards.
    """
    prob = prob.contiguous()
    integer = KEYS[prob.dtype]
    # The shift drops the sign bit, which only -0.0 has.
    key, order = ((prob.view(integer) << 1) | label.to(integer)).sort(dim=-1)
    return key, order


def sort_rows(prob: Tensor, label: Tensor, weight: Tensor | None) -> SortedRows:
    """Sort by prediction."""
    if prob.device.type == "cpu":
        key, order = sorted_labels(prob, label)
        prediction, label = (key >> 1).view(prob.dtype).double(), key & 1
    else:  # where floats sort as fast, and a launch costs more than a pass
        prediction, order = prob.sort(dim=-1)
        label = label.view(torch.uint8) if label.dtype == torch.bool else label  # to subtract from
        prediction, label = prediction.double(), label.gather(-1, order)
    residual = label - prediction
    if weight is None:
        return SortedRows(prediction, 1.0, residual, order, 1 / prob.shape[-1])
    mass = weight.double()
    mass = (mass / mass.sum())[order]
    return SortedRows(prediction, mass, residual.mul_(mass), order, 1.0)


def _squared(
    prob: Tensor,
    label: Tensor,
    weight: Tensor | None,
    kernel: str,
    bandwidth: float,
    unbiased: bool,  # noqa: FBT001 -- an operator's arguments are positional
    with_gradient: bool,  # noqa: FBT001
) -> tuple[Tensor, Tensor]:
    """Return kCE² of each problem, or of vectors, and the gradient where it is wanted."""
    _checks.check_binary_values(prob, label, weight)
    rows = sort_rows(prob, label, weight)
    sums = kernel_sums(kernel, rows.prediction, rows.residual, bandwidth, int(with_gradient))
    potential = sums[0] - rows.residual if unbiased else sums[0]
    value = torch.linalg.vecdot(rows.residual, potential).mul_(_scale(rows, unbiased=unbiased))
    if not with_gradient:
        return value.to(prob.dtype), prob.new_empty(0)
    pull = potential if isinstance(rows.mass, float) else potential * rows.mass
    against = torch.addcmul(pull, rows.residual, sums[1], value=-1)
    factor = -2 * _scale(rows, unbiased=unbiased)
    return value.to(prob.dtype), rows.restore(against, prob.dtype, factor)


def _scale(rows: SortedRows, *, unbiased: bool) -> float:
    """Return what turns sums of products of two residuals into those of residuals that sum to 1."""
    n = rows.order.shape[-1]
    return rows.unit**2 * (n / (n - 1) if unbiased else 1.0)


def _hessian(
    prob: Tensor,
    label: Tensor,
    weight: Tensor | None,
    kernel: str,
    bandwidth: float,
    unbiased: bool,  # noqa: FBT001
    direction: Tensor,
) -> Tensor:
    """Return the Hessian of each kCE², or of that of vectors, times a direction x.

    Moving v along x moves c by -m x, P by P[-m x] + x D[c] - D[c x] and D by
    D[-m x] + x M[c] - M[c x].
    """
    rows = sort_rows(prob, label, weight)
    v, m, c = rows.prediction, rows.mass, rows.residual
    x = direction.double().gather(-1, rows.order)
    _, slope, curvature = kernel_sums(kernel, v, c, bandwidth, 2)
    potential_moved, slope_moved = kernel_sums(kernel, v, -m * x, bandwidth, 1)
    _, slope_x, curvature_x = kernel_sums(kernel, v, c * x, bandwidth, 2)
    potential_moved = potential_moved + x * slope - slope_x
    slope_moved = slope_moved + x * curvature - curvature_x
    if unbiased:
        potential_moved += m * x
    result = c * slope_moved - m * x * slope - m * potential_moved
    return rows.restore(result, prob.dtype, 2 * _scale(rows, unbiased=unbiased))


_INPUTS = "Tensor prob, Tensor label, Tensor? weight, str kernel, float bandwidth, bool unbiased"
squared_operator = torch.library.custom_op(
    "caldist::kernel_squared",
    _squared,
    mutates_args=(),
    schema=f"({_INPUTS}, bool with_gradient) -> (Tensor, Tensor)",
    tags=UNSAFE,
)
kernel_hessian = torch.library.custom_op(
    "caldist::kernel_hessian",
    _hessian,
    mutates_args=(),
    schema=f"({_INPUTS}, Tensor direction) -> Tensor",
    tags=UNSAFE,
)


@squared_operator.register_fake
def _squared_shapes(prob: Tensor, *inputs: Any) -> tuple[Tensor, Tensor]:
    value = prob.new_empty(prob.shape[:-1])
    return value, prob.new_empty(prob.shape if inputs[-1] else 0)


@kernel_hessian.register_fake
def _hessian_shape(prob: Tensor, *_inputs: Any) -> Tensor:
    return prob.new_empty(prob.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    prob, label, weight, *ctx.options, _ = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(prob, label, weight, output[1])


def _backward(ctx: Any, d_value: Tensor | None, d_gradient: Tensor | None) -> tuple[Any, ...]:
    prob, label, weight, gradient = ctx.saved_tensors
    result = None
    if d_value is not None:
        result = d_value[..., None] * gradient
    if d_gradient is not None:
        product = kernel_hessian(prob, label, weight, *ctx.options, d_gradient)
        result = product if result is None else result + product
    return result, None, None, None, None, None, None


squared_operator.register_autograd(_backward, setup_context=_keep)


class _Eager(torch.autograd.Function):
    """The operator again, without the dispatcher: a third of the time of a small batch."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        output = _squared(*inputs)
        _keep(ctx, inputs, output)
        return output

    @staticmethod
    def backward(ctx: Any, d_value: Tensor | None, d_gradient: Tensor | None) -> tuple[Any, ...]:
        return _backward(ctx, d_value, d_gradient)


def kernel_squared(*inputs: Any) -> Tensor:
    """Return kCE² of each problem, or of vectors, from the operator's inputs."""
    call: Any = squared_operator if torch.compiler.is_compiling() else _Eager.apply
    value: Tensor = call(*inputs)[0]
    return value
