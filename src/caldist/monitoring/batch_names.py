"""Labels of batches: texts, numbers or dates, one kind in a monitor, in increasing order."""

from __future__ import annotations

import datetime as dt
import math
import numbers
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np

from caldist._util.invalid import show

Label: TypeAlias = str | int | float | dt.date

TEXT, NUMBER, DATE, TIME = "text", "number", "date", "time"
_MEANING = {
    TEXT: "a text",
    NUMBER: "a number",
    DATE: "a date",
    TIME: "a date with a time of day",
}


def clean_label(label: object) -> Label:
    """Return a label as a plain Python value."""
    value: Any = (
        label.item() if isinstance(label, np.generic) and label.dtype.kind != "M" else label
    )
    if isinstance(value, np.datetime64):
        if np.isnat(value):
            _fail(label)
        days = np.datetime_data(value.dtype)[0] in {"Y", "M", "W", "D"}
        value = value.astype("M8[D]" if days else "M8[us]").item()
    if hasattr(value, "to_pydatetime"):  # of pandas
        if value != value:  # noqa: PLR0124 -- NaT alone differs from itself
            _fail(label)
        value = value.to_pydatetime(warn=False)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and not math.isfinite(value):
        _fail(label)
    if not (is_number or isinstance(value, str | dt.date)):
        if isinstance(value, numbers.Real) and not isinstance(value, bool):
            return float(value)
        _fail(label)
    return cast("Label", value)


def _fail(label: object) -> NoReturn:
    message = (
        f"label is {show(label)}; the label of a batch is a text, a finite number or a "
        "date, larger than that of the batch before."
    )
    raise ValueError(message)


def kind_of(label: Label) -> str:
    """Return which kind of label it is."""
    if isinstance(label, str):
        return TEXT
    if isinstance(label, dt.date):
        return TIME if isinstance(label, dt.datetime) else DATE
    return NUMBER


def check_after(label: Label, last: Label, *, allow_equal: bool = False) -> None:
    """Raise unless a label comes after the last one."""
    kind, before = kind_of(label), kind_of(last)
    if kind != before:
        message = (
            f"label is {label!r}, {_MEANING[kind]}, and the one before was {last!r}, "
            f"{_MEANING[before]}: the labels of a monitor are all of one kind."
        )
        raise ValueError(message)
    try:
        comes_after = label > last or (allow_equal and label == last)  # type: ignore[operator]
    except TypeError as error:  # with a time zone and without
        message = f"label is {label!r} and the one before was {last!r}: {error}."
        raise ValueError(message) from None
    if not comes_after:
        why = (
            "a batch is counted once, so a job that is run again must leave it out"
            if label == last
            else "batches come in increasing order of their labels"
        )
        message = f"label is {label!r}, and the last one was {last!r}: {why}."
        raise ValueError(message)


def to_plain(label: Label) -> str | int | float:
    """Return what JSON can hold of a label."""
    return label.isoformat() if isinstance(label, dt.date) else label


def from_plain(value: Any, kind: str) -> Label:
    """Return the label that :func:`to_plain` was given."""
    if kind in {DATE, TIME}:
        return (dt.date if kind == DATE else dt.datetime).fromisoformat(value)
    label = clean_label(value)
    if kind_of(label) != kind:
        message = f"the label {value!r} is not {_MEANING[kind]}."
        raise ValueError(message)
    return label
