"""The ``repr`` of whatever is returned: short enough to be read at a glance at a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from dataclasses import fields
from typing import Any

import numpy as np

_LONGEST = 300  # letters of a repr
_VALUE = 60  # letters of one value in it
_FEW = 6  # values that are shown one by one


class Brief:
    """A class, as a rule a dataclass, whose ``repr`` has at most 300 letters.

    Fields come in their order, numbers with all digits; what is long is named by its type and
    size, and what does not fit is left out.
    """

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Keep ``dataclass`` from writing a ``repr`` of its own, which has no end."""
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # what it inherits

    def __repr__(self) -> str:
        shown = (item.name for item in fields(self) if item.repr)  # type: ignore[arg-type]
        return brief(type(self).__name__, {name: getattr(self, name) for name in shown})


class LongText(str):
    """A text that may be as long as a page: a prompt shows how it begins."""

    __slots__ = ()

    def __repr__(self) -> str:
        whole = str.__repr__(self)
        if len(whole) <= _LONGEST:
            return whole
        return f"<text of {len(self):,} characters: {shown_value(str(self))}>"


def brief(name: str, values: Mapping[str, object]) -> str:
    """Return ``name(key=value, …)`` in at most 300 letters."""
    return listed(name, (f"{key}={shown_value(value)}" for key, value in values.items()))


def listed(name: str, parts: Iterable[str]) -> str:
    """Return ``name(part, part, …)`` in at most 300 letters."""
    shown = ""
    room = _LONGEST - len(f"{name}(, …)")
    for part in parts:
        if len(shown) + len(part) + 2 > room:
            return f"{name}({shown}, …)" if shown else f"{name}(…)"
        shown += f", {part}" if shown else part
    return f"{name}({shown})"


def shown_value(value: object) -> str:
    """Return the ``repr`` of a value, or its type and size where that is long."""
    long = isinstance(value, Sized) and not isinstance(value, str) and len(value) > _FEW
    if not long and len(text := repr(value)) <= _VALUE and "\n" not in text:
        return text
    if isinstance(value, str):
        return repr(f"{value[: _VALUE - 3]}…")
    if isinstance(value, np.ndarray):
        return f"<array of {' × '.join(f'{size:,}' for size in value.shape)}>"
    if isinstance(value, Sized) and not isinstance(value, Brief):
        kind = "dict" if isinstance(value, Mapping) else type(value).__name__
        return f"<{kind} of {len(value):,}>"
    return f"{type(value).__name__}(…)"
