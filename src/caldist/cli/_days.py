"""Tables and summaries as days: which are to be taken, and the joints of each."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import unquote

import numpy as np

from caldist.cli import _dates
from caldist.cli._columns import check_names, positive_value
from caldist.cli._data import Data
from caldist.cli._missing_values import called
from caldist.cli._source import SomeRows, matches, may_be_read_again, open_source
from caldist.data.joint import INVALID, Joint
from caldist.engines import cells, open_files, summarize
from caldist.engines.collect import BYTES_OF_WEIGHTS, BYTES_PER_ROW
from caldist.engines.files import connect, reading
from caldist.engines.summaries import invalid_in_words
from caldist.errors import InvalidInput, InvalidType
from caldist.monitoring import Monitor
from caldist.monitoring.batch_names import DATE, BatchName, kind_of

BITS = 14  # of the grid of a new monitor
_MEMORY = 2**30  # bytes that the days of one query may take
_MISSING = ("missing label", "missing prediction")
_COUNTED = "Correct or filter them, or leave them out with --invalid count."

Groups = dict["str | None", Joint]  # the only key is None without sub-groups


class Wanted(NamedTuple):
    """Which days are wanted: those after a date, or from it on, that are old enough."""

    after: dt.date | None = None
    inclusive: bool = False
    until: dt.date | None = None
    since: dt.date | None = None  # the state was reset
    taken: frozenset[BatchName] = frozenset()

    @classmethod
    def of(cls, watched: Monitor | None, until: dt.date | None) -> Wanted:
        """Return what a monitor has not seen yet."""
        if watched is None:
            return cls(until=until)
        last = watched.last_batch
        after = watched.since if last is None else last
        if after is not None and kind_of(after) != DATE:
            raise InvalidInput(
                argument="the last date of the state",
                value=after,
                reason="it is no date",
                remedy="Go on in Python, with Monitor.update, or begin a new state.",
            )
        taken = frozenset(step.batch for step in watched.steps)
        return cls(after, last is None, until, watched.since, taken)  # type: ignore[arg-type]  # dates

    def is_past(self, day: dt.date) -> bool:
        """Whether the state is past a day."""
        if self.after is None:
            return False
        return day < self.after if self.inclusive else day <= self.after

    def has(self, day: dt.date) -> bool:
        """Whether a day is among them."""
        return not self.is_past(day) and (self.until is None or day <= self.until)

    def passed(self, sizes: Mapping[dt.date, int | None]) -> _dates.Passed:
        """Count what is not wanted."""
        return _dates.Passed.of(sizes, filter(self.is_past, sizes), self.taken, self.since)


class Days(Protocol):
    """Days that can be counted and read."""

    bits: int
    passed: _dates.Passed

    @property
    def groups(self) -> list[str]:
        """The sub-groups that occur."""
        ...

    def read(self) -> Iterator[tuple[dt.date, Groups]]:
        """Give the joints of each day, in increasing order."""
        ...


# -- summaries -----------------------------------------------------------------------------------


class SummaryDays:
    """Saved summaries, named by their days or in folders ``NAME=day``."""

    def __init__(
        self,
        data: Data,
        paths: Sequence[str],
        date: str | None,
        date_format: str | None,
        wanted: Wanted,
        state: Path,
    ) -> None:
        replace(data, by=None).refuse_columns()  # sub-groups are folders
        if "-" in data.files:
            raise InvalidInput(
                argument="a summary from standard input",
                reason="has no name that says its date",
                remedy="Pass its file.",
            )
        # A pattern may well match the state, which is no day.
        found = [path for name in paths for path in matches(name)]
        files = [path for path in found if path.resolve() != state.resolve()]
        twice = [path for path, times in Counter(files).items() if times > 1]
        if twice:
            reason = "is named twice, so that its rows would count twice"
            raise InvalidInput(argument=str(twice[0]), reason=reason, remedy="Name it once.")
        days = [_day_of_summary(path, date, date_format) for path in files]
        self.passed = wanted.passed(dict.fromkeys(days))
        self._days: dict[dt.date, dict[str | None, Joint]] = {}
        chosen = [
            (label, path) for label, path in zip(days, files, strict=True) if wanted.has(label)
        ]
        joints = [Joint.load(path) for _, path in chosen]
        self.bits = min([BITS, *(joint.grid.bits for joint in joints if joint.grid is not None)])
        for (label, path), joint in zip(chosen, joints, strict=True):
            group = None if data.by is None else _of_folder(path, data.by, "--by")
            parts = self._days.setdefault(label, {})
            gridded = joint.coarsen(self.bits)
            parts[group] = parts[group] + gridded if group in parts else gridded

    @property
    def groups(self) -> list[str]:
        found = {group for parts in self._days.values() for group in parts}
        return sorted(group for group in found if group is not None)

    def read(self) -> Iterator[tuple[dt.date, Groups]]:
        for label in sorted(self._days):
            yield label, self._days[label]


def _day_of_summary(path: Path, date: str | None, date_format: str | None) -> dt.date:
    text = path.stem if date is None else _of_folder(path, date, "--date")
    day = _dates.date_of(text, date_format)
    if day is not None:
        return day
    if date is not None or date_format is not None:
        place = f"the date of {path}"
        raise _dates.refused(place, [text], date_format)
    raise InvalidInput(
        argument=str(path),
        reason=f"is named {text!r}, which is no date",
        remedy="Name summaries by their dates, as 2026-11-15.npz, or say with --date-format how "
        "they are; or put them in folders as day=2026-11-15 and pass --date day.",
    )


def _of_folder(path: Path, name: str, option: str) -> str:
    """Return the value of the folder ``name=value`` that a file lies in."""
    for folder in path.parent.parts:
        key, is_key, value = folder.partition("=")
        if is_key and unquote(key) == name:
            return unquote(value)
    raise InvalidInput(
        argument=option,
        value=name,
        reason=f"{path} does not lie in a folder {name}=…, and a summary has no columns",
        remedy="Without --date its name is its date." if option == "--date" else "",
    )


# -- tables --------------------------------------------------------------------------------------


@dataclass
class _Part:
    """Days that are read by one query, and how much memory that takes at most."""

    first: dt.date
    last: dt.date
    size: int


class TableDays:
    """Rows of tables, with a column of dates; DuckDB groups them."""

    bits = BITS

    def __init__(
        self,
        data: Data,
        paths: Sequence[str],
        date: str | None,
        date_format: str | None,
        wanted: Wanted,
        invalid: Literal["raise", "count"],
    ) -> None:
        if data.label is None or len(data.scores) != 1 or date is None:
            raise InvalidInput(
                argument="a monitor",
                reason="has one label, one prediction and one date for each row",
                remedy="Name their columns with --label, --score and --date.",
            )
        self._data, self._date, self._format, self._wanted = data, date, date_format, wanted
        self._paths, self._label = list(paths), data.label
        self._allowed = INVALID if invalid == "count" else _MISSING if data.drop_missing else ()
        self._score, self._weight = data.scores[0], data.weight
        numbers = [name for name in (data.label, self._score, data.weight) if name is not None]
        others = [name for name in (date, data.by) if name is not None]
        table = self._opened(numbers, others, data.positive)
        types = dict(zip(table.columns, map(str, table.types), strict=True))
        with self._reading():
            day = _dates.day_in_sql(types[date], paths, date, date_format)
        columns = [*map(_quoted, dict.fromkeys(numbers)), f"{day} AS {_quoted(_DAY)}"]
        if data.positive is not None:
            with self._reading():
                one = _one_of_two(table, data.label, types[data.label], data.positive)
                columns[0] = f"{one} AS {columns[0]}"
        self._keys = [_DAY]
        if data.by is not None:
            _refuse_measurements(data.by, types[data.by])
            columns.append(f"CAST({_quoted(data.by)} AS VARCHAR) AS {_quoted(_GROUP)}")
            self._keys.append(_GROUP)
        clash = next((name for name in numbers if name.casefold() in {_DAY, _GROUP}), None)
        if clash is not None:
            reason = "has a name that is taken"
            raise InvalidInput(argument=called(clash), reason=reason, remedy="Rename it.")
        with self._reading():
            self._table = table.project(", ".join(columns))
            keys = ", ".join(map(_quoted, self._keys))
            counted = self._table.aggregate(f"{keys}, count(*)", keys).fetchall()
            if any(key is None for key, *_ in counted):
                _dates.refuse_others(table, types[date], paths, date, date_format)
        if not counted:
            files = ", ".join(map(str, paths))
            raise InvalidInput(argument=files, reason="has no rows")
        self._sizes: dict[dt.date, dict[str | None, int]] = {}
        every: Counter[dt.date] = Counter()
        for key, *group, rows in counted:
            if key is not None and not isinstance(key, dt.date):
                raise InvalidInput(
                    argument=called(date),
                    reason=f"has the date {key} in {rows:,} rows, which no calendar has",
                    remedy="Were seconds and milliseconds mixed up?",
                )
            if key is None or (None in group and wanted.has(key)):
                column = date if key is None else data.by
                assert column is not None  # noqa: S101 -- only that has groups
                raise InvalidInput(
                    argument=called(column),
                    reason=f"is missing in {rows:,} rows{self._first_gap(column)}",
                    remedy="Fill it, or leave those rows out.",
                )
            every[key] += rows
            if wanted.has(key):
                self._sizes.setdefault(key, {})[group[0] if group else None] = rows
        self.passed = wanted.passed(every)

    def _opened(self, numbers: Sequence[str], others: Sequence[str], positive: str | None) -> Any:
        """Return the files as a relation: as DuckDB reads them, or else as they are in memory."""
        source = open_source(self._paths)
        check_names(source.columns, [*numbers, *others])
        labels = [] if positive is None else [self._label]
        numbers = [name for name in numbers if name not in labels]
        if source.is_plain:
            return open_files(self._paths, numbers=numbers, names=[*labels, self._date])
        found = source.read(numbers, [*labels, *others])
        self._rows: dict[str, Any] = {**found.numbers}  # DuckDB reads them where they are
        for name, column in found.names.items():
            if name == self._date:
                texts = [None if cell is None else str(cell) for cell in column]
                self._rows[name] = np.array(texts, dtype=object)
            elif any(cell is None for cell in column):
                self._rows[name] = column
            else:
                self._rows[name] = cells.names(column)
        connection = connect()
        connection.register("rows_read", self._rows)
        return connection.table("rows_read")

    def _reading(self) -> AbstractContextManager[None]:
        return reading(self._paths)

    def _first_gap(self, column: str) -> str:
        """Return where a column has no value first, in words."""
        if not may_be_read_again(self._paths):
            return ""
        source = open_source(self._paths)
        gaps = [cell is None for cell in source.read([], [column]).names[column]]
        if True not in gaps:  # a folder that says so
            return ""
        return f", the first at {source.cell(gaps.index(True), column).where}"

    def _refuse_first(self, found: str) -> None:
        """Raise what the other commands raise for the first row that is not valid, and count all.

        Do nothing where files are too large to be read once more.
        """
        if not may_be_read_again(self._paths):
            return
        source = open_source(self._paths)
        days = source.read([], [self._date]).names[self._date]
        rows = np.array([at for at, day in enumerate(days) if self._wants(day)], dtype=np.intp)
        try:
            replace(self._data, by=None).table(SomeRows(source, rows))
        except InvalidInput as error:
            remedy = f"{error.remedy} Rows that are not valid: {found}. {_COUNTED}".strip()
            raise error.but(remedy=remedy) from None

    def _wants(self, cell: object) -> bool:
        """Whether a cell is a day that is wanted; one that cannot be understood may be."""
        day = _dates.date_of(str(cell).strip(), self._format)
        return day is None or self._wanted.has(day)

    @property
    def groups(self) -> list[str]:
        found = {group for sizes in self._sizes.values() for group in sizes}
        return sorted(group for group in found if group is not None)

    def _parts(self) -> list[_Part]:
        """Divide the days among as few queries as memory allows."""
        each = BYTES_PER_ROW + (0 if self._weight is None else BYTES_OF_WEIGHTS)
        parts: list[_Part] = []
        for label in sorted(self._sizes):
            cells = sum(min(rows, 2 << self.bits) for rows in self._sizes[label].values())
            if parts and parts[-1].size + cells * each <= _MEMORY:
                parts[-1].last = label
                parts[-1].size += cells * each
            else:
                parts.append(_Part(label, label, cells * each))
        return parts

    def read(self) -> Iterator[tuple[dt.date, Groups]]:
        day = _quoted(_DAY)
        for part in self._parts():
            between = f"{_dates.literal(part.first)} AND {_dates.literal(part.last)}"
            with self._reading():
                joints = summarize(
                    self._table.filter(f"{day} BETWEEN {between}"),
                    y_true=self._label,
                    y_prob=self._score,
                    sample_weight=self._weight,
                    by=self._keys,
                    bits=self.bits,
                    invalid="count",
                    memory_limit=None,
                )
            columns = {"label": [self._label], "prediction": [self._score]}
            columns["weight"] = [self._weight or ""]
            found = invalid_in_words(joints, columns, self._allowed)
            if found:
                self._refuse_first(found)
                files = ", ".join(map(str, self._paths))
                raise InvalidInput(
                    argument=files, reason=f"has rows that are not valid: {found}", remedy=_COUNTED
                )
            days: dict[Any, Groups] = {}
            for (label, *group), joint in joints.items():
                days.setdefault(label, {})[group[0] if group else None] = joint
            for label in sorted(days):
                yield label, days[label]


_DAY, _GROUP = "caldist day", "caldist group"  # columns of queries


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _one_of_two(table: Any, name: str, kind: str, positive: str) -> str:
    """Return the expression for a column of two labels: 1 where it is the positive one, else 0."""
    text = f"trim(CAST({_quoted(name)} AS VARCHAR), ' \t')"
    if kind in {"FLOAT", "DOUBLE"}:
        text = f"nullif({text}, 'nan')"
    found = table.project(f"{text} AS label").distinct().limit(5).fetchall()
    values = sorted(label for (label,) in found if label)
    one = positive_value(np.array(values, dtype=object), positive)
    if len(values) > 2 or (one not in values and len(values) > 1):
        raise InvalidInput(
            argument="--positive",
            value=positive,
            reason=f"{called(name)} has the labels {', '.join(map(repr, values))}, and it must be "
            "one of two",
        )
    return (
        f"CASE WHEN {text} IS NULL OR {text} = '' THEN NULL "
        f"WHEN {text} = {_dates.text_in_sql(str(one))} THEN 1.0 ELSE 0.0 END"
    )


def _refuse_measurements(name: str, kind: str) -> None:
    if kind in {"FLOAT", "DOUBLE"} or kind.startswith("DECIMAL"):
        raise InvalidType(
            argument=called(name),
            reason=f"holds {kind}, but sub-groups need a name for each, not a measurement",
            remedy="Cut it into ranges first.",
        )
