"""Errors about what a user passed: fields for programs, one sentence made of them for people."""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np

Index = int | tuple[int, ...]

_LONGEST = 60  # characters of a value in a sentence
_ABSENT: Final[Any] = object()


def show(value: object) -> str:
    """Return a value as it stands in messages."""
    number = isinstance(value, np.generic) and not isinstance(value, np.str_ | np.bytes_)
    if isinstance(value, np.str_ | np.bytes_):
        value = value.item()
    text = str(value) if number else repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


class Invalid(Exception):  # noqa: N818 -- as in "invalid input"
    """The fields that :class:`InvalidInput` and :class:`InvalidType` share.

    Attributes
    ----------
    argument
        The argument, column, option or file that was refused.
    index
        The position of the value in it, from 0: a number, or a tuple in a matrix; None where the
        argument is refused as a whole.
    value
        What was found there; None where no single value is to blame.
    reason
        What is wrong with it, as a clause without a full stop.
    remedy
        What to do, as a sentence; empty where the reason says it.
    place
        Where to look: ``y_prob[3]``, or of a cell of a file its line and column.
    """

    argument: str
    index: Index | None
    value: Any
    reason: str
    remedy: str
    place: str

    def __init__(
        self,
        *,
        argument: str,
        reason: str,
        remedy: str = "",
        value: Any = _ABSENT,
        index: Index | None = None,
        place: str | None = None,
    ) -> None:
        self._fields = {"argument": argument, "reason": reason, "remedy": remedy, "index": index}
        if value is not _ABSENT:
            self._fields["value"] = value
        if place is not None:
            self._fields["place"] = place
        absent = {"value": None, "place": _place(argument, index)}
        for name, field in (absent | self._fields).items():
            setattr(self, name, field)
        super().__init__(str(self))

    def __str__(self) -> str:
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"{self.clause}.{remedy}"

    @property
    def clause(self) -> str:
        """The sentence without its full stop and without the remedy."""
        found = f" is {show(self.value)}:" if "value" in self._fields else ""
        return f"{self.place}{found} {self.reason}"

    def but(self, **fields: Any) -> Self:
        """Return the error with other fields: what Python calls y_true a shell calls --label."""
        return type(self)(**(self._fields | fields))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self._fields)


def _place(argument: str, index: Index | None) -> str:
    """Return an argument with the index, as in ``y_prob[3]``."""
    if index is None:
        return argument
    numbers = index if isinstance(index, tuple) else (index,)
    return f"{argument}[{', '.join(map(str, numbers))}]"


def clause_of(error: Exception) -> str:
    """Return what an error says, for the reason of another: of a file with what is wrong in it."""
    return error.clause if isinstance(error, Invalid) else str(error).rstrip(".")


def _unpickled(kind: type[Invalid], fields: dict[str, Any]) -> Invalid:
    return kind(**fields)


class InvalidInput(Invalid, ValueError):  # noqa: N818
    """A value that cannot be used; the fields say where it stands, why, and what to do.

    Examples
    --------
    >>> import caldist
    >>> try:
    ...     caldist.smooth_ce([0, 1], [0.2, 70])
    ... except caldist.InvalidInput as error:
    ...     print(error.argument, error.index, error.value, error.remedy, sep=" | ")
    y_prob | 1 | 70.0 | If these are percentages, divide by 100; if they are logits, apply the ...
    """


class InvalidType(Invalid, TypeError):  # noqa: N818
    """An argument of a type that cannot be used, with the fields of :class:`InvalidInput`."""


InvalidInput.__module__ = InvalidType.__module__ = "caldist.errors"  # where people import them from
