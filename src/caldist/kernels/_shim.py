"""What the kernels use of ``import cython``, for machines without Cython.

Annotations are never evaluated (``from __future__ import annotations``), so only decorators and
the ``nogil`` and ``gil`` blocks are needed.
"""

from __future__ import annotations

from typing import Any

compiled = False


def _same(function: Any) -> Any:
    return function


cclass = cfunc = inline = _same


def exceptval(*_arguments: Any, **_options: Any) -> Any:
    """Say how a compiled function reports errors; nothing to do here."""
    return _same


class _NoGil:
    """``@cython.nogil``, ``with cython.nogil:`` and ``with cython.gil:``, without effect."""

    def __call__(self, function: Any) -> Any:
        return function

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_error: object) -> None:
        return None


nogil = gil = _NoGil()
