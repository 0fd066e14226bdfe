"""A property that is computed when it is first asked for, and then kept."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property  # noqa: TID251 -- which type checkers know
else:
    _NOTHING = object()

    class cached_property(functools.cached_property):  # noqa: N801, TID251
        """``functools.cached_property`` without a lock, as it is from Python 3.12 on.

        That of 3.11 has one lock for all objects of a class, held while it computes: calls that
        have nothing to do with each other wait, and a child forked meanwhile waits for ever. Where
        two threads compute the same property of one object, both get what is ready first.
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            kept = vars(instance)
            found = kept.get(self.attrname, _NOTHING)
            if found is _NOTHING:
                found = kept.setdefault(self.attrname, self.func(instance))
            return found


__all__ = ["cached_property"]
