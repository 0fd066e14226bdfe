"""Names of batches: strings, numbers or dates, one kind in a monitor, in increasing order."""

from __future__ import annotations

import datetime as dt
import math
import numbers
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np

from caldist.errors import InvalidInput

BatchName: TypeAlias = str | int | float | dt.date

STRING, NUMBER, DATE, TIME = "string", "number", "date", "time"
_MEANING = {
    STRING: "a string",
    NUMBER: "a number",
    DATE: "a date",
    TIME: "a date with a time of day",
}


def clean_name(name: object) -> BatchName:
    """Return a name as a plain Python value."""
    value: Any = name.item() if isinstance(name, np.generic) and name.dtype.kind != "M" else name
    if isinstance(value, np.datetime64):
        if np.isnat(value):
            _fail(name)
        days = np.datetime_data(value.dtype)[0] in {"Y", "M", "W", "D"}
        value = value.astype("M8[D]" if days else "M8[us]").item()
    if hasattr(value, "to_pydatetime"):  # of pandas
        if value != value:  # noqa: PLR0124 -- NaT alone differs from itself
            _fail(name)
        value = value.to_pydatetime(warn=False)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and not math.isfinite(value):
        _fail(name)
    if not (is_number or isinstance(value, str | dt.date)):
        if isinstance(value, numbers.Real) and not isinstance(value, bool):
            return float(value)
        _fail(name)
    return cast("BatchName", value)


def _fail(name: object) -> NoReturn:
    raise InvalidInput(
        argument="batch",
        value=name,
        reason="the name of a batch is a string, a finite number or a date",
        remedy="Each must be larger than the one before.",
    )


def kind_of(name: BatchName) -> str:
    """Return which kind of name it is."""
    if isinstance(name, str):
        return STRING
    if isinstance(name, dt.date):
        return TIME if isinstance(name, dt.datetime) else DATE
    return NUMBER


def check_after(name: BatchName, last: BatchName, *, allow_equal: bool = False) -> None:
    """Raise unless a name comes after the last one."""
    kind, before = kind_of(name), kind_of(last)
    if kind != before:
        raise InvalidInput(
            argument="batch",
            value=name,
            reason=f"this is {_MEANING[kind]}, and the one before was {last!r}, {_MEANING[before]}",
            remedy="The names of a monitor's batches are all of one kind.",
        )
    try:
        comes_after = name > last or (allow_equal and name == last)  # type: ignore[operator]
    except TypeError as error:  # with a time zone and without
        reason = f"it cannot be compared with the batch before, {last!r} ({error})"
        raise InvalidInput(argument="batch", value=name, reason=reason) from None
    if not comes_after:
        raise InvalidInput(
            argument="batch",
            value=name,
            reason=f"the last one was {last!r}",
            remedy="A batch is counted once: a job that is run again must leave it out."
            if name == last
            else "Pass batches in increasing order of their names.",
        )


def to_plain(name: BatchName) -> str | int | float:
    """Return what JSON can hold of a name."""
    return name.isoformat() if isinstance(name, dt.date) else name


def from_plain(value: Any, kind: str) -> BatchName:
    """Return the name that :func:`to_plain` was given."""
    if kind in {DATE, TIME}:
        return (dt.date if kind == DATE else dt.datetime).fromisoformat(value)
    name = clean_name(value)
    if kind_of(name) != kind:
        raise InvalidInput(argument="batches", value=value, reason=f"this is not {_MEANING[kind]}")
    return name
