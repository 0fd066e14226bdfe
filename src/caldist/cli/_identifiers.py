"""Columns that look like identifiers and repeat: their rows may depend on each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from caldist.cli._data import Data
    from caldist.cli._source import Source

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_LAST_WORD = re.compile(
    "id|uid|uuid|guid|patient|subject|person|user|customer|client|account|member|player|game|match|"
    "session|household|family|student|pupil|employee|device"
)
_HEAD = 10_000  # rows: where each value has two rows of a hundred million, one of these repeats
_LEAST = 10  # different values; fewer are groups, and too few clusters


def doubts_of_columns(data: Data, source: Source) -> Iterator[str]:
    """Say which columns, of those that no option names, look like identifiers and repeat."""
    if data.clusters is not None:
        return
    named = {data.label, *data.scores, data.weight, data.by, *data.by_columns}
    names = [
        name for name in source.columns if name not in named | source.twice and _is_identifier(name)
    ]
    if not names:
        return
    for name, values in source.read([], names, rows=_HEAD).names.items():
        known = [value for value in values.tolist() if value is not None]
        different = len(set(known))
        if _LEAST <= different < len(known):
            yield (
                f"column {name} has {different:,} different values in the first {len(known):,} "
                "rows, and rows are taken as independent: if rows with the same value belong "
                f"together, pass --clusters {name}."
            )


def _is_identifier(name: str) -> bool:
    """Whether the last word of a name, as in game_id, gameId or Patient, is one for identifiers."""
    words = _WORD.findall(name)
    return bool(words) and _LAST_WORD.fullmatch(words[-1].lower()) is not None
