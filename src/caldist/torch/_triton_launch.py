"""Launching kernels of Triton, of which the same one is launched again and again.

Triton looks at every argument, and at the environment, to find what it has compiled: 70 µs of a
slow host's time for each launch, which is longer than what is launched for a million rows. What it
has compiled can be launched again without that, in a way that differs between versions of Triton:
only the one is used where it was seen to work.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

_CAN_SKIP = triton.__version__.startswith("3.6.")
_compiled: dict[tuple[Any, ...], Any] = {}


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, num_warps: int = 4) -> None:
    """Launch a kernel with all its arguments, those that are constant included, in their order."""
    if not _CAN_SKIP:
        kernel[grid](*arguments, num_warps=num_warps)
        return
    key = (
        id(kernel),  # its own hash is of its source
        num_warps,
        torch.cuda.current_device(),
        *(
            value if parameter.is_constexpr else _kind(value)
            for parameter, value in zip(kernel.params, arguments, strict=True)
        ),
    )
    known = _compiled.get(key)
    if known is None:
        _compiled[key] = kernel[grid](*arguments, num_warps=num_warps)
    else:
        known[grid + (1,) * (3 - len(grid))](*arguments)


def _kind(value: Tensor | int) -> tuple[Any, ...]:
    """Return what Triton compiles a kernel for, of an argument that is not constant."""
    if isinstance(value, Tensor):
        return value.dtype, value.data_ptr() % 16 == 0
    return value == 1, value % 16 == 0, -(2**31) <= value < 2**31
