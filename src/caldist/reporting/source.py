"""Where the rows of a report come from, as far as the caller says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from caldist._util.invalid import show
from caldist.errors import InvalidInput, InvalidType
from caldist.reporting.model import DataReport, SourceReport

_DROPPED = "rows_dropped"


@dataclass(frozen=True)
class Origin:
    """What was said of the source: lines of text, and how many rows were dropped."""

    lines: tuple[SourceReport, ...]
    dropped: int


def check_source(source: Mapping[str, object] | None) -> Origin:
    """Check what a caller says, and put it into words."""
    if source is None:
        return Origin((), 0)
    if not isinstance(source, Mapping):
        raise InvalidType(
            argument="source",
            value=source,
            reason="it must be a dict",
            remedy="For example {'file': 'scores.csv', 'date': '2024-05-01', 'rows_dropped': 3}.",
        )
    lines, total = [], 0
    for name, value in source.items():
        if not isinstance(name, str):
            reason = f"has the key {show(name)}, but its keys must be strings"
            raise InvalidType(argument="source", reason=reason)
        if value is None:
            continue
        words = _text(value)
        if name == _DROPPED:
            total, words = _dropped(value)
        lines.append(SourceReport(name, words))
    return Origin(tuple(lines), total)


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def _dropped(value: object) -> tuple[int, str]:
    """Return how many rows were dropped, and why, in words."""
    counts = value if isinstance(value, Mapping) else {"": value}
    for reason, count in counts.items():
        place = f"source[{_DROPPED!r}]" + (f"[{reason!r}]" if reason else "")
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            wrong = "it must be a number of rows"
            raise InvalidInput(argument=place, value=count, reason=wrong)
    why = ", ".join(f"{count:,} {reason}" for reason, count in counts.items() if reason and count)
    total = sum(counts.values())
    return total, f"{total:,} ({why})" if why else f"{total:,}"


def with_source(data: DataReport, origin: Origin) -> DataReport:
    """Add where the rows come from to what is known of them."""
    return replace(data, source=origin.lines, left_out=data.left_out + origin.dropped)
