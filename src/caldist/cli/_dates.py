"""Dates as texts: ISO, or a format that is named; and how many are passed over."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from caldist.cli._missing_values import called
from caldist.cli._source import matches, may_be_read_again, open_source
from caldist.engines.files import quoted
from caldist.errors import InvalidInput

_ISO = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?"
_OFFSET = r"(Z|[+-]\d\d(:?\d\d)?)"  # from UTC
_IS_ISO = re.compile(f"{_ISO}{_OFFSET}?")
_SAMPLE = dt.date(2026, 11, 15)
_SEEN = (
    *("%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y%m%d"),
    *("%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%m-%y", "%y-%m-%d", "%d %b %Y", "%b %d, %Y", "%Y-%m"),
)
_FORMATS = [date + time for time, date in product(("", " %H:%M", " %H:%M:%S"), _SEEN)]
_EPOCHS = {10: "seconds", 13: "milliseconds", 16: "microseconds", 19: "nanoseconds"}
_FIRST_OF_CLOCKS, _LAST_OF_CLOCKS = dt.date(1969, 12, 31), dt.date(1970, 1, 31)
_NAMED = 3  # dates that a note names
_SHOWN = 1000  # different texts that are looked at to tell how dates are written
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_TEXTS = {"VARCHAR", *_WHOLE, *(f"U{kind}" for kind in _WHOLE)}  # 20261115 is a text, too
_NO_FOLDER = "__HIVE_DEFAULT_PARTITION__"  # of rows without a value


def check_format(date_format: str | None) -> str | None:
    """Return a format of dates that says year, month and day, or year and month, or the year."""
    if date_format is None:
        return None
    try:
        found = date_of(_SAMPLE.strftime(date_format), date_format)
    except ValueError:
        found = None
    if found not in {_SAMPLE, _SAMPLE.replace(day=1), _SAMPLE.replace(month=1, day=1)}:
        raise InvalidInput(
            argument="--date-format",
            value=date_format,
            reason="it does not say year, month and day as strptime does",
            remedy="For 31/12/2026 it is %d/%m/%Y.",
        )
    return date_format


def date_of(text: str, date_format: str | None) -> dt.date | None:
    """Return the date that a text says; in UTC, if it says how far from that its time is."""
    try:
        if date_format is not None:
            return dt.datetime.strptime(text, date_format).date()  # noqa: DTZ007 -- a date alone
        if _IS_ISO.fullmatch(text):
            found = dt.datetime.fromisoformat(text)
            return (found if found.tzinfo is None else found.astimezone(dt.UTC)).date()
    except (ValueError, OverflowError):
        pass
    return None


def date_in_sql(text: str, date_format: str | None) -> str:
    """Return an expression of DuckDB that is :func:`date_of` of a text, NULL if it says none."""
    if date_format is not None:
        found = f"CAST(try_strptime({text}, {text_in_sql(date_format)}) AS DATE)"
        return f"CASE WHEN {found} >= DATE '1000-01-01' THEN {found} END"  # %Y takes 26 for a year
    with_offset = text_in_sql(_ISO + _OFFSET)
    utc = f"TRY_CAST({text} AS TIMESTAMP WITH TIME ZONE) AT TIME ZONE 'UTC'"
    return (
        f"CASE WHEN regexp_full_match({text}, {text_in_sql(_ISO)}) "
        f"THEN CAST(TRY_CAST({text} AS TIMESTAMP) AS DATE) "
        f"WHEN regexp_full_match({text}, {with_offset}) THEN CAST({utc} AS DATE) END"
    )


def text_in_sql(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def literal(day: dt.date | None) -> str:
    """Return a date as SQL has it."""
    return f"DATE '{day}'"


def day_in_sql(kind: str, paths: Sequence[str], name: str, date_format: str | None) -> str:
    """Return the expression for the date of a row, NULL where a text is none."""
    column, folders = quoted(name), _folders(paths, name)
    if folders:
        found = {text: date_of(text, date_format) for text in folders}
        if wrong := [text for text, day in found.items() if day is None]:
            place = f"the folder of {folders[wrong[0]]}: {name!r}"
            raise refused(place, wrong, date_format)
        if kind == "DATE" and date_format is None:
            return column
        # DuckDB guesses types of folders: 05-01-26 would be a day in the year 5.
        texts = ", ".join(f"CAST({text_in_sql(text)} AS {kind})" for text in found)
        return f"MAP([{texts}], [{', '.join(map(literal, found.values()))}])[{column}]"
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        if date_format is not None:
            reason, remedy = f"holds {kind}, which is no text", "Leave --date-format out."
            raise InvalidInput(argument=called(name), reason=reason, remedy=remedy)
        utc = " AT TIME ZONE 'UTC'" if kind == "TIMESTAMP WITH TIME ZONE" else ""
        return f"CAST({column}{utc} AS DATE)"
    if kind not in _TEXTS and not kind.startswith("ENUM"):
        raise InvalidInput(
            argument=called(name),
            reason=f"holds {kind}, which names no days",
            remedy="--date takes a column of dates, times or texts.",
        )
    return date_in_sql(_text(name), date_format)


def refuse_others(
    table: Any, kind: str, paths: Sequence[str], name: str, date_format: str | None
) -> None:
    """Raise if a row has text that is not a date."""
    if (kind not in _TEXTS and not kind.startswith("ENUM")) or _folders(paths, name):
        return
    text, day = _text(name), date_in_sql(_text(name), date_format)
    others = table.filter(f"{text} IS NOT NULL AND {day} IS NULL").project(f"{text} AS found")
    first = others.limit(1).fetchall()
    if first:
        shown = [*first, *others.distinct().limit(_SHOWN).fetchall()]
        texts = dict.fromkeys(found for (found,) in shown)
        raise refused(_place(paths, name, first[0][0]), texts, date_format)


def _text(name: str) -> str:
    return f"NULLIF(trim(CAST({quoted(name)} AS VARCHAR)), '')"


def _folders(paths: Sequence[str], name: str) -> dict[str, Path]:
    """Return the values of the folders ``name=value`` that all files lie in, each with a file."""
    found: dict[str, Path] = {}
    for path in (match for file in paths for match in matches(file)):
        keys = [folder.partition("=") for folder in path.parent.parts]
        values = [unquote(value) for key, is_key, value in keys if is_key and key == name]
        if not values or "=" not in path.parent.name:
            return {}
        if values[-1] != _NO_FOLDER:
            found.setdefault(values[-1], path)
    return found


def _place(paths: Sequence[str], name: str, text: str) -> str:
    """Return the place of the first cell with a text, in words."""
    column = called(name)
    if not may_be_read_again(paths):
        return column
    source = open_source(paths)
    texts = [str(cell) for cell in source.read([], [name]).names[name]]
    return f"{source.cell(texts.index(text), name).where}: {column}" if text in texts else column


def refused(place: str, texts: Collection[str], date_format: str | None) -> InvalidInput:
    """Return the error for texts that are no dates; ``place`` is where the first one stands."""
    example = next(iter(texts))
    if date_format is not None:
        reason = f"it does not follow --date-format {date_format!r}"
        return InvalidInput(argument=place, value=example, reason=reason, remedy="Correct it.")
    fitting = [known for known in _FORMATS if all(date_of(text, known) for text in texts)]
    remedy = "Correct it, or pass the format of the dates, such as --date-format %d/%m/%Y."
    if len(fitting) == 1:
        remedy = f"It looks like {fitting[0]}: pass --date-format {fitting[0]!r}."
    elif fitting:
        remedy = f"It may be {' or '.join(fitting)}: say which with --date-format."
    elif all(text.isdecimal() for text in texts) and len(example) in _EPOCHS:
        remedy = f"It looks like {_EPOCHS[len(example)]} since 1970: make dates of them first."
    reason = f"it is not an ISO date such as {_SAMPLE}"
    return InvalidInput(argument=place, value=example, reason=reason, remedy=remedy)


@dataclass(frozen=True)
class Passed:
    """Dates that are not taken, since the state is past them, and dates that nobody can mean.

    Attributes
    ----------
    older
        The rows of dates that are not after the last one of the state; None of summaries.
    late
        Those of them that the state has never taken.
    epochs
        Dates of January 1970: the zero of clocks, or seconds that were read as milliseconds.
    """

    older: Mapping[dt.date, int | None] = field(default_factory=dict)
    late: Mapping[dt.date, int | None] = field(default_factory=dict)
    epochs: Mapping[dt.date, int | None] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        sizes: Mapping[dt.date, int | None],
        older: Iterable[dt.date],
        taken: Collection[object],
        since: dt.date | None,
    ) -> Passed:
        """Count, where the state was reset, only what is missing ``since``."""
        past = {date: sizes[date] for date in sorted(older)}
        return cls(
            past,
            {d: n for d, n in past.items() if d not in taken and (since is None or d >= since)},
            {d: n for d, n in sizes.items() if _FIRST_OF_CLOCKS <= d <= _LAST_OF_CLOCKS},
        )

    def to_dict(self) -> dict[str, dict[str, int | None]]:
        """Return the numbers of dates and of rows, for JSON."""
        return {
            name: {"dates": len(found), "rows": _rows(found)}
            for name, found in (("older", self.older), ("late", self.late), ("epochs", self.epochs))
        }

    def older_note(self) -> str | None:
        """Say what the state is past, which is so in each run on the same files."""
        if not self.older:
            return None
        return f"Skipped {_counted(self.older)}: not later than the last date in the state."

    def warnings(self) -> list[str]:
        """Say what should not be so."""
        found = []
        if self.late:
            named = ", ".join(map(str, list(self.late)[:_NAMED]))
            more = ", …" if len(self.late) > _NAMED else ""
            found.append(
                f"{_counted(self.late)} came too late, before the last date in the state, and were "
                f"never counted: {named}{more}. Start a new state to include them."
            )
        if self.epochs:
            found.append(
                f"{_counted(self.epochs)} in January 1970, the Unix epoch: are dates missing, "
                "or seconds read as milliseconds?"
            )
        return found


def _rows(sizes: Mapping[dt.date, int | None]) -> int | None:
    counts = [count for count in sizes.values() if count is not None]
    return sum(counts) if len(counts) == len(sizes) else None


def _counted(sizes: Mapping[dt.date, int | None]) -> str:
    dates = f"{len(sizes):,} date{'' if len(sizes) == 1 else 's'}"
    rows = _rows(sizes)
    return dates if rows is None else f"{rows:,} row{'' if rows == 1 else 's'} of {dates}"
