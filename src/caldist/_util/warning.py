"""Warnings that point at the line of whoever called the package."""

from __future__ import annotations

import sys
import warnings

_OURS = __name__.partition(".")[0]


def warn(message: str) -> None:
    """Warn as of the nearest caller outside of this package, however deep in it one is."""
    level, frame = 2, sys._getframe(1)  # noqa: SLF001 -- as warnings.warn looks at it
    while _is_ours(frame.f_globals) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def _is_ours(names: dict[str, object]) -> bool:
    return str(names.get("__name__", "")).partition(".")[0] == _OURS
