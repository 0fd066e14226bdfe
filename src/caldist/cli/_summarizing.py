"""Tables to joints on a grid: by DuckDB, or in memory where it is not there or finds a fault.

What is wrong with a table is said by one reader, whoever found it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from caldist._util.invalid import Invalid
from caldist.cli._data import Data, Models
from caldist.cli._source import Source, open_source
from caldist.cli._streams import say
from caldist.data.joint import INVALID, Joint
from caldist.engines import cells
from caldist.errors import InvalidInput

_MISSING = {"missing label", "missing prediction"}


def summarized(
    data: Data, paths: Sequence[str], bits: int, invalid: Literal["raise", "count"]
) -> Mapping[str | None, Joint]:
    """Return the joint of each sub-group, or of all rows with the key None."""
    if data.label is None or len(data.scores) != 1:
        raise InvalidInput(
            argument="a summary",
            reason="has one label and one prediction",
            remedy="Name them with --label and --score.",
        )
    if invalid == "count" and (data.drop_missing or data.positive is not None):
        other = "--drop-missing" if data.drop_missing else "--positive"
        raise InvalidInput(
            argument="--invalid count",
            reason=f"was given with {other}, and leaves out what is missing and what is wrong, "
            "where labels are 0 and 1",
            remedy="Leave one of them out.",
        )
    source = open_source(paths)
    data.check_columns(source)
    if find_spec("duckdb") is not None and source.is_plain and data.positive is None:
        found = _by_duckdb(data, paths, bits)
        if found is not None and _are_good(found, data, invalid):
            return found
    if invalid == "count":
        return _counted(data, source, bits)
    models = data.table(source)
    for note in models.notes:  # rows without a sub-group are counted nowhere else
        say(note, err=True)
    (rows,) = models.rows.values()
    if models.groups is None:
        parts = {None: rows}
    else:
        names, code = models.groups
        parts = dict(zip(map(str, names), rows.split(code, len(names)), strict=True))  # type: ignore[assignment]
    return {
        group: _with_dropped(part.round_to_grid(bits), models, data, group)
        for group, part in parts.items()
    }


def _by_duckdb(data: Data, paths: Sequence[str], bits: int) -> dict[str | None, Joint] | None:
    from caldist.engines import open_files, summarize
    from caldist.engines.files import reading

    asked: dict[str, Any] = {
        "y_true": data.label,
        "y_prob": data.scores[0],
        "sample_weight": data.weight,
        "bits": bits,
        "invalid": "count",
    }
    numbers = [name for name in (data.label, data.scores[0], data.weight) if name is not None]
    try:
        with reading(paths):
            if data.by is None:
                return {None: summarize(open_files(paths, numbers=numbers), **asked)}
            table = open_files(paths, numbers=numbers, names=[data.by])
            found = summarize(table, by=data.by, **asked)
    except Invalid:
        return None  # the other reader says why
    keys = [cells.name(key) for key in found]
    names = cells.names(keys)
    if None in keys or names.dtype.kind == "f":
        return None
    groups = [str(name) for name in names]
    joints: dict[str | None, Joint] = {}
    for group, joint in zip(groups, found.values(), strict=True):
        joints[group] = joints[group] + joint if group in joints else joint
    return dict(sorted(joints.items()))


def _are_good(joints: Mapping[str | None, Joint], data: Data, invalid: str) -> bool:
    """Whether what was left out may be."""
    reasons = {reason for joint in joints.values() for reason in joint.invalid}
    allowed = set(INVALID) if invalid == "count" else _MISSING if data.drop_missing else set()
    return reasons <= allowed


def _with_dropped(joint: Joint, models: Models, data: Data, group: str | None) -> Joint:
    """Return a joint that says how many rows were left out."""
    if models.dropped is None:
        return joint
    columns = {data.label: "missing label", data.scores[0]: "missing prediction"}
    invalid = dict.fromkeys(INVALID, 0)
    for (name, column), count in models.dropped.firsts.items():
        if name == group:
            invalid[columns.get(column, "bad weight")] += count
    return replace(joint, invalid=invalid)


def _counted(data: Data, source: Source, bits: int) -> dict[str | None, Joint]:
    """Leave out rows that are not valid, and count them by reason."""
    assert data.label is not None  # noqa: S101 -- checked above
    weighted = [] if data.weight is None else [data.weight]
    named = [] if data.by is None else [data.by]
    found = source.read([data.label, data.scores[0], *weighted], named)
    label, score = found.numbers[data.label], found.numbers[data.scores[0]]
    weight = found.numbers[data.weight] if data.weight is not None else np.ones(label.size)
    wrong = (
        np.isnan(label),
        ~np.isin(label, (0, 1)),
        np.isnan(score),
        ~((score >= 0) & (score <= 1)),
        ~((weight >= 0) & (weight < np.inf)),
    )
    reason = np.select(wrong, range(len(INVALID)), -1)
    groups = np.full(label.size, None, dtype=object)
    if data.by is not None:
        if any(name is None for name in found.names[data.by]):
            data.table(source)  # raises
        groups = cells.names(found.names[data.by]).astype(object)
    joints: dict[str | None, Joint] = {}
    for group in dict.fromkeys(groups.tolist()):
        here = groups == group if data.by is not None else np.ones(label.size, dtype=bool)
        kept = here & (reason < 0)
        counts = {name: int((here & (reason == at)).sum()) for at, name in enumerate(INVALID)}
        joint = Joint.empty(bits)
        if kept.any():
            own = weight[kept] if data.weight is not None else None
            joint = Joint.from_arrays(label[kept], score[kept], sample_weight=own).coarsen(bits)
        joints[None if data.by is None else str(group)] = replace(joint, invalid=counts)
    return joints
