"""Which errors are about the input, and which are mistakes of the package itself."""

from __future__ import annotations

import dis
from types import TracebackType

from caldist._util.errors import ToleranceError

_REFUSED = (ValueError, TypeError, OSError, ImportError, ToleranceError)
_OURS = __name__.partition(".")[0]
_COMPUTING = {"numpy", "scipy"}  # what they refuse was computed here
_RAISE = dis.opmap["RAISE_VARARGS"]


def is_refusal(error: Exception) -> bool:
    """Whether an error was raised because of the input.

    The package refuses input by a statement ``raise``. A TypeError or ValueError that an expression
    of it raises, such as ``1 + "a"`` or two arrays of different sizes, is a mistake of its own.
    What others raise while they read files is about these.
    """
    if type(error) not in {TypeError, ValueError}:
        return isinstance(error, _REFUSED)
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return True
    package = str(last.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
    if package == _OURS:
        return _is_raising(last)
    return type(error) is ValueError and package not in _COMPUTING


def _is_raising(last: TracebackType) -> bool:
    """Whether a statement ``raise`` was run; compiled code has none that is seen."""
    code = last.tb_frame.f_code.co_code
    return 0 <= last.tb_lasti < len(code) and code[last.tb_lasti] == _RAISE
