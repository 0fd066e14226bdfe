"""Choose between the compiled kernels and the same files as plain Python.

The compiled ones are used where installation could build them; where it could not, the first use of
a kernel warns. Set ``CALDIST_PURE_PYTHON=1``
before the first import to run the plain ones instead: for debugging, or as a reference.
"""

from __future__ import annotations

import os
import warnings
from functools import cache, wraps
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from caldist.kernels import (
        bets,
        chain,
        coupling,
        crossings,
        experts,
        flow,
        gaussian,
        grouping,
        interior_point,
        interval,
        ladder,
        laplace,
        partition,
        recalibration,
        replicates,
        shifts,
        simplex,
        smooth,
        support,
    )

__all__ = [
    "COMPILED",
    "bets",
    "chain",
    "coupling",
    "crossings",
    "experts",
    "flow",
    "gaussian",
    "grouping",
    "interior_point",
    "interval",
    "ladder",
    "laplace",
    "partition",
    "recalibration",
    "replicates",
    "shifts",
    "simplex",
    "smooth",
    "support",
]


def _plain_is_wanted() -> bool:
    return os.environ.get("CALDIST_PURE_PYTHON", "") not in {"", "0"}


def _is_compiled() -> bool:
    if _plain_is_wanted():
        return False
    try:
        import_module("caldist._compiled.support")
    except ImportError:
        return False
    return True


COMPILED: bool = _is_compiled()


@cache
def _warn_if_slow() -> None:
    if not COMPILED and not _plain_is_wanted():
        warnings.warn(
            "caldist runs its kernels as plain Python, a hundred times slower, because they were "
            "not compiled when it was installed. Install a C compiler, then reinstall caldist; "
            "or set CALDIST_PURE_PYTHON=1 to accept this and silence the warning.",
            RuntimeWarning,
            stacklevel=3,
        )


def _with_memoryviews(function: Callable[..., Any]) -> Callable[..., Any]:
    """Hand arrays to a plain kernel as memoryviews: Python numbers, and faster."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return function(*(a.data if isinstance(a, np.ndarray) else a for a in arguments))

    return call


def plain(name: str) -> Any:
    """Return the kernel module as plain Python, compiled or not."""
    module = import_module(f"caldist.kernels.{name}")
    return SimpleNamespace(
        **{
            key: _with_memoryviews(value)
            for key, value in vars(module).items()
            if getattr(value, "__module__", None) == module.__name__
        }
    )


def __getattr__(name: str) -> Any:
    """Load a kernel module when it is first used, so that importing caldist stays cheap."""
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    _warn_if_slow()
    module = import_module(f"caldist._compiled.{name}") if COMPILED else plain(name)
    globals()[name] = module
    return module
