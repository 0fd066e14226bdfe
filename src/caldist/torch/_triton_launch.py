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
_compiled: dict[tuple[Any, ...], tuple[Any, ...] | None] = {}
_NO_SCRATCH = (None, None)
_NO_HOOKS = (None, None, None)


class Span:
    """A piece of a tensor's memory, as a kernel takes it: where it begins, and what is in it."""

    __slots__ = ("address", "dtype")

    def __init__(self, address: int, dtype: torch.dtype) -> None:
        self.address = address
        self.dtype = dtype

    def data_ptr(self) -> int:
        """Return where it begins, as Triton asks for it."""
        return self.address


class Launches:
    """Launches one kernel after the other, on the GPU and the stream that are current.

    ``kind`` stands for all that the kernels are compiled for: types of their arguments, whether 16
    divides addresses and numbers, and the values of constants, as far as these differ from call to
    call. Arguments are not looked at again. Memory that was just asked for is always aligned.
    """

    def __init__(self, *kind: Any) -> None:
        self._device = torch.cuda.current_device()
        self._kind = kind
        self._stream: Any = None
        if _CAN_SKIP and not _watched():
            self._stream = triton.runtime.driver.active.get_current_stream(self._device)

    def __call__(
        self, kernel: Any, grid: tuple[int, ...], *arguments: Any, num_warps: int = 4
    ) -> None:
        """Launch a kernel with all its arguments, those that are constant included, in order."""
        if self._stream is None:
            kernel[grid](*arguments, num_warps=num_warps)
            return
        key = id(kernel), self._device, num_warps, self._kind  # a kernel's own hash is its source's
        known = _compiled.get(key)
        if known is None:
            _compiled[key] = _prepared(kernel[grid](*arguments, num_warps=num_warps))
            return
        run, handle, metadata = known
        size = grid + (1,) * (3 - len(grid))
        given = [value.address if type(value) is Span else value for value in arguments]
        run(*size, self._stream, *handle, *_NO_SCRATCH, metadata, *_NO_HOOKS, *given)


def span(tensor: Tensor) -> Span:
    """Return all of a tensor's memory."""
    return Span(tensor.data_ptr(), tensor.dtype)


def kind_of(n: int, *inputs: Span) -> tuple[Any, ...]:
    """Return what kernels that read n rows of inputs are compiled for."""
    kinds = ((given.dtype, given.address & 15 == 0) for given in inputs)
    return n & 15 == 0, n == 1, *kinds


def _watched() -> bool:
    """Return whether a profiler of Triton wants to hear of launches."""
    hooks = triton.knobs.runtime
    return bool(hooks.launch_enter_hook.calls or hooks.launch_exit_hook.calls)


def _prepared(compiled: Any) -> tuple[Any, ...] | None:
    """Return the function that launches a kernel, and what it takes; None if only Triton can."""
    launcher = compiled.run
    if launcher.global_scratch_size or launcher.profile_scratch_size:
        return None
    handle = compiled.function, launcher.launch_cooperative_grid, launcher.launch_pdl
    return launcher.launch, handle, compiled.packed_metadata
