"""Tables of so many rows that a report is made of their summary, as an engine makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from caldist.cli._columns import HEAD, check_names, guess
from caldist.cli._data import Data, Models
from caldist.cli._dropped import Dropped
from caldist.cli._source import Source
from caldist.cli._streams import say
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.reading import cells

MANY = 10_000_000  # rows from which on a report is of their summary
_BITS, _FEWEST_BITS = 16, 10  # of a summary, and of that of one sub-group among many
_CELLS = 20  # the logarithm of how many cells the summaries of all sub-groups may have
_MISSING = ("missing label", "missing prediction")


def summary_of_many(data: Data, source: Source, paths: Sequence[str]) -> Models | None:
    """Return a model as the summary of many rows; None where rows are few, or are needed.

    Clusters, several models on the same rows and weights of sub-groups need the rows. What is wrong
    with a table is said by the reader of rows, too.
    """
    rows = source.n_rows
    needed = data.clusters is not None or data.positive is not None or len(data.scores) > 1
    if rows is None or rows < MANY or needed or (data.weight is not None and data.by_columns):
        return None
    taken = [name for name in (data.weight, *data.by_columns) if name is not None]
    check_names(source.columns, [*filter(None, (data.label, *data.scores)), *taken])
    label, scores = data.label, list(data.scores)
    try:
        if label is None or not scores:
            label, scores = guess(source, label, scores, taken, HEAD)
        (score,) = scores
        asked = replace(data, label=label, scores=(score,))
        joint = _summarized(asked, paths, None, _BITS)
        groups = {name: _groups(asked, paths, name) for name in dict.fromkeys(data.by_columns)}
    except (TypeError, ValueError):
        return None
    dropped = _dropped(joint, label, score)
    reasons = set(joint.invalid) - set(_MISSING if data.drop_missing else ())
    if reasons or joint.total == 0 or None in groups.values():
        return None
    say(
        f"{rows:,} rows: the report is of their summary, on {2**_BITS:,} cells. --rows reads them "
        "all, which takes longer and more memory.",
        err=True,
    )
    head = {"files": list(data.files), "label": label, "weight": data.weight}
    head |= {"clusters": None, "by": None}
    return Models(
        {score: Rows.of(replace(joint, invalid={}))},
        named_by="score",
        head=head | ({"dropped": dropped.to_dict()} if data.drop_missing else {}),
        by=groups,
        dropped=dropped if data.drop_missing else None,
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
        "second_order": True,  # as of rows that are put on a grid
    }
    return summarize(open_files(paths, numbers=numbers, names=[] if by is None else [by]), **asked)


def _groups(data: Data, paths: Sequence[str], by: str) -> dict[Any, Joint] | None:
    """Return the joint of each sub-group; None where they are too many, or rows have none."""
    from caldist.engines import open_files
    from caldist.engines._files import quoted

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
        if joint.total > 0:
            joints[name] = joints[name] + joint if name in joints else joint
    return joints or None


def _dropped(joint: Joint, label: str, score: str) -> Dropped:
    """Return what was left out: rows that lack a label, and others that lack a prediction."""
    counts = [joint.invalid.get(reason, 0) for reason in _MISSING]
    reasons = {name: count for name, count in zip((label, score), counts, strict=True) if count}
    return Dropped(sum(counts), (joint.n_rows or 0) + sum(counts), reasons)
