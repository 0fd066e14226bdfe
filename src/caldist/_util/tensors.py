"""PyTorch's tensors as NumPy can read them, without importing PyTorch."""

from __future__ import annotations

import sys
from typing import Any

from caldist._util.invalid import InvalidType

_NUMPY_HAS = ("float16", "float32", "float64")


def readable(values: object, name: str) -> object:
    """Return a tensor without its gradient, in a precision that NumPy has; all else as it is.

    ``name`` is the argument it came as. Tensors of a GPU are refused: a copy of all rows to the
    host is not made unasked.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(values, torch.Tensor):
        return values
    if values.device.type != "cpu":
        raise InvalidType(
            argument=name,
            reason=f"is a tensor on {values.device}",
            remedy=f"Pass {name}.cpu(), or use caldist.torch, whose measures, losses and metrics "
            "compute where the tensors are.",
        )
    tensor: Any = values.detach()
    if tensor.is_floating_point() and str(tensor.dtype).removeprefix("torch.") not in _NUMPY_HAS:
        tensor = tensor.float()  # exact: bfloat16 and the formats of eight bits are parts of it
    return tensor
