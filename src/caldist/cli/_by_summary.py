"""Tables of so many rows that a command reads their summary, as an engine makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from caldist._util.invalid import Invalid
from caldist.cli._columns import HEAD, check_names, guess
from caldist.cli._data import Data, Models
from caldist.cli._dropped import Dropped
from caldist.cli._source import Source, may_be_read_again
from caldist.cli._streams import say
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.engines import cells
from caldist.engines.files import reading
from caldist.engines.summaries import invalid_in_words
from caldist.errors import InvalidInput

MANY = 10_000_000  # rows from which on commands read a summary of them
_BITS, _FEWEST_BITS = 16, 10  # of a summary, and of that of one sub-group among many
_CELLS = 20  # the logarithm of how many cells the summaries of all sub-groups may have
_MISSING = ("missing label", "missing prediction")


def summary_of_many(data: Data, source: Source, paths: Sequence[str]) -> Models | None:
    """Return a model as the summary of many rows; None where rows are few, or are needed.

    Clusters, several models on the same rows and weights of sub-groups need the rows. The reader of
    rows also names the cell that is wrong, unless the files are too large to be read once more.
    """
    rows = source.n_rows
    needed = data.clusters is not None or data.positive is not None or len(data.scores) > 1
    if rows is None or rows < MANY or needed or (data.weight is not None and data.by_columns):
        return None
    columns = data.by_columns if data.by is None else (data.by,)
    taken = [name for name in (data.weight, *columns) if name is not None]
    check_names(source.columns, [*filter(None, (data.label, *data.scores)), *taken])
    label, scores = data.label, list(data.scores)
    try:
        if label is None or not scores:
            label, scores = guess(source, label, scores, taken, HEAD)
        (score,) = scores
        asked = replace(data, label=label, scores=(score,))
        with reading(paths):
            joint = _summarized(asked, paths, None, _BITS)
            groups = {name: _groups(asked, paths, name) for name in dict.fromkeys(columns)}
    except Invalid:
        return None
    dropped = _dropped(joint, label, score)
    allowed = _MISSING if data.drop_missing else ()
    named = {"label": [label], "prediction": [score], "weight": [data.weight or ""]}
    if found := invalid_in_words({(): joint}, named, allowed):
        if may_be_read_again(paths):
            return None
        remedy = "Correct or filter these rows."
        files = ", ".join(data.files)
        raise InvalidInput(
            argument=files, reason=f"has rows that are not valid: {found}", remedy=remedy
        )
    if joint.total == 0 or None in groups.values():
        return None
    say(f"{rows:,} rows: summarised first, on {2**_BITS:,} cells.", err=True)
    head = {"files": list(data.files), "label": label, "weight": data.weight}
    head |= {"clusters": None, "by": data.by}
    parts = {} if data.by is None else groups[data.by] or {}
    counts = {name: _count_missing(part) for name, part in parts.items()}
    return Models(
        {score: Rows.of(replace(joint, invalid={}))},
        named_by="score",
        head=head | ({"dropped": dropped.to_dict()} if data.drop_missing else {}),
        by=groups,
        dropped=replace(dropped, groups=counts) if data.drop_missing else None,
        parts={name: Rows.of(replace(part, invalid={})) for name, part in parts.items()},
    )


def _summarized(data: Data, paths: Sequence[str], by: str | None, bits: int) -> Any:
    """Return the joint of all rows, or of each value of a column."""
    from caldist.engines import open_files, summarize

    numbers = [name for name in (data.label, *data.scores, data.weight) if name is not None]
    asked: dict[str, Any] = {
        "y_true": data.label,
        "y_prob": data.scores[0],
        "sample_weight": data.weight,
        "by": by,
        "bits": bits,
        "invalid": "count",
        "second_order": True,  # for narrower bounds
    }
    return summarize(open_files(paths, numbers=numbers, names=[] if by is None else [by]), **asked)


def _groups(data: Data, paths: Sequence[str], by: str) -> dict[Any, Joint] | None:
    """Return the joint of each sub-group; None where they are too many, or rows have none."""
    from caldist.engines import open_files
    from caldist.engines.files import quoted

    most = 2 ** (_CELLS - _FEWEST_BITS)
    distinct = open_files(paths, names=[by]).project(quoted(by)).distinct().limit(most + 1)
    count = len(distinct.fetchall())
    if count > most:
        return None
    bits = min(_BITS, _CELLS - (count - 1).bit_length())
    found = _summarized(data, paths, by, bits)
    keys = [cells.name(key) for key in found]
    if None in keys:
        return None
    joints: dict[Any, Joint] = {}
    for name, joint in zip(cells.names(keys).tolist(), found.values(), strict=True):
        if joint.n_rows:
            joints[name] = joints[name] + joint if name in joints else joint
    if any(joint.total == 0 for joint in joints.values()):  # the reader of rows says what to do
        return None
    return joints or None


def _count_missing(joint: Joint) -> int:
    return sum(joint.invalid.get(reason, 0) for reason in _MISSING)


def _dropped(joint: Joint, label: str, score: str) -> Dropped:
    """Return what was left out: rows that lack a label, and others that lack a prediction."""
    counts = [joint.invalid.get(reason, 0) for reason in _MISSING]
    reasons = {name: count for name, count in zip((label, score), counts, strict=True) if count}
    missing = _count_missing(joint)
    return Dropped(missing, (joint.n_rows or 0) + missing, reasons)
