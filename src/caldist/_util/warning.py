"""Warnings that point at the line of whoever called the package."""

from __future__ import annotations

import sys
import warnings

_OURS = __name__.partition(".")[0]


def warn(message: str, category: type[Warning] = UserWarning, *, through: str = _OURS) -> None:
    """Warn as of the nearest caller outside of this package, however deep in it one is.

    ``through`` is another package that calls this one on behalf of its caller.
    """
    level, frame = 2, sys._getframe(1)  # noqa: SLF001 -- as warnings.warn looks at it
    while _package(frame.f_globals) in {_OURS, through} and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
