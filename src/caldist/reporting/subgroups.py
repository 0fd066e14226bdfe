"""Sub-groups of a report: one or several columns, numbers in bins, dates in the order of time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.invalid import show
from caldist._util.types import Integers, Vector
from caldist.data.categories import bin_numbers, is_measured, number_labels
from caldist.data.joint import Joint
from caldist.data.rows import Rows, refuse_beside_joint
from caldist.errors import InvalidInput
from caldist.groups.evaluation import evaluate_groups
from caldist.measures.smooth_ce import smooth_ce
from caldist.reporting.model import GroupReport

Order = Literal["evidence", "label"]
By = ArrayLike | Mapping[str, ArrayLike] | Mapping[str, Mapping[Any, Joint]]

_TIME = re.compile(r"(19|20)\d\d([-/]?(Q[1-4]|W?\d\d)([-/]?\d\d)?([ T]\d\d:\d\d.*)?)?")


@dataclass(frozen=True, eq=False)
class Column:
    """One column of sub-groups: labels in their own order, and the number of each row's.

    ``ordered`` says that this order is worth more than that of the evidence: time, or bins.
    ``joints`` stand for the rows of the sub-groups, where there are no rows.
    """

    name: str
    labels: Sequence[str]
    code: Integers
    ordered: bool
    joints: Sequence[Joint] = ()


def columns_of(by: By | None, size: int) -> list[Column]:
    """Return the columns that ``by`` names; it is an array, a mapping of names to such, or a frame.

    A mapping calls its columns by their names; a single array has none.
    """
    if by is None:
        return []
    given = _named(by)
    if given is None:
        return [_column("", by, size, "by")]
    if not given:
        remedy = "Name at least one column, or leave it out."
        raise InvalidInput(argument="by", reason="is empty", remedy=remedy)
    return [
        _column(str(name), values, size, f"by[{name!r}]" if len(given) > 1 else "by")
        for name, values in given.items()
    ]


def columns_of_joints(by: Any, models: Mapping[str, Rows]) -> list[Column]:
    """Return the columns of ``{column: {group: joint}}`` beside the joint of all rows."""
    if by is None:
        return []
    columns = by if isinstance(by, Mapping) and all(map(_are_joints, by.values())) else {}
    if not columns:
        refuse_beside_joint(by=by)
    if len(models) > 1:
        reason = f"was given with {len(models)} joints, each of rows of its own"
        raise InvalidInput(argument="by", reason=reason, remedy="Report on one at a time.")
    found = [_column_of_joints(str(name), groups) for name, groups in columns.items()]
    (whole,) = (rows.joint for rows in models.values())
    for name, groups in columns.items():
        rows = sum(joint.total for joint in groups.values())
        if whole.counts_rows and rows != whole.total:
            raise InvalidInput(
                argument=f"by[{str(name)!r}]",
                reason=f"has joints of {rows:,.0f} rows, and the joint of all has "
                f"{whole.total:,.0f}",
                remedy="Pass those of all sub-groups of the same rows.",
            )
    return found


def _are_joints(groups: object) -> bool:
    if not isinstance(groups, Mapping) or not groups:
        return False
    return all(isinstance(joint, Joint) for joint in groups.values())


def _column_of_joints(name: str, groups: Mapping[Any, Joint]) -> Column:
    """Return a column whose labels stand for all rows of a joint, those of one bin merged."""
    for label, joint in groups.items():
        if joint.total == 0 or not joint.counts_rows:
            reason, remedy = "has no rows", "Leave it out."
            if joint.total != 0:
                reason = "has sums of weights, which do not say how many rows have label 1"
                remedy = "Pass the rows."
            place = f"by[{name!r}][{show(label)}]"
            raise InvalidInput(argument=place, reason=reason, remedy=remedy)
    labels, joints = list(groups), list(groups.values())
    rows = np.array([joint.total for joint in joints])
    column = _column(name, labels, len(labels), f"by[{name!r}]", rows)
    merged: dict[int, Joint] = {}
    for at, joint in zip(column.code.tolist(), joints, strict=True):
        merged[at] = merged[at] + joint if at in merged else joint
    return replace(column, joints=[merged[at] for at in range(len(column.labels))])


def _named(by: Any) -> dict[Any, Any] | None:
    """Return the columns of a mapping or a frame by name; None for an array."""
    if isinstance(by, Mapping):
        return dict(by)
    names = getattr(by, "column_names", None) or getattr(by, "columns", None)
    return None if names is None else {name: by[name] for name in names}


def _column(name: str, values: Any, size: int, called: str, rows: Vector | None = None) -> Column:
    if is_measured(values, repeated=rows is not None):
        labels, code = bin_numbers(values, size, called, rows)
        return Column(name, labels, code, ordered=True)
    found, code = number_labels(values, size, called)
    order = _order(found, values)
    place = np.empty(len(found), dtype=np.int64)
    place[order] = np.arange(len(found))
    texts = _texts([found[at] for at in order])
    timed = all(_TIME.fullmatch(text) for text in texts)
    return Column(name, texts, place[code], ordered=timed)


def _order(labels: list[Any], values: Any) -> list[int]:
    """Return the order of labels: that of ordered categories, else their own, else as text."""
    kinds = getattr(getattr(values, "dtype", None), "categories", None)
    if kinds is not None:
        rank = {kind: at for at, kind in enumerate(list(kinds))}
        return sorted(range(len(labels)), key=lambda at: rank[labels[at]])
    try:
        return sorted(range(len(labels)), key=labels.__getitem__)
    except TypeError:  # of several kinds
        return sorted(range(len(labels)), key=lambda at: str(labels[at]))


def _texts(labels: Sequence[Any]) -> list[str]:
    """Return labels as text; times at midnight are dates."""
    times = [item for item in labels if isinstance(item, datetime)]
    if times and all((item.hour, item.minute, item.second) == (0, 0, 0) for item in times):
        return [str(item.date() if isinstance(item, datetime) else item) for item in labels]
    return [item.isoformat() if isinstance(item, date) else str(item) for item in labels]


def groups_of_models(
    models: Mapping[str, Rows],
    by: Sequence[Column],
    order: Order | None,
    options: dict[str, Any],
) -> Iterator[GroupReport]:
    """Evaluate every model on the sub-groups of each column.

    p-values of a column are adjusted for its sub-groups, and multiplied by the number of columns.
    """
    for model, rows in models.items():
        for column in by:
            # Rows are checked, which the public types do not speak of.
            parts: Any = dict(enumerate(column.joints)) if column.joints else rows
            by_row = None if column.joints else column.code
            found = evaluate_groups(parts, by=by_row, measures=[smooth_ce], **options).groups
            if order == "label" or (order is None and column.ordered):
                found = tuple(sorted(found, key=lambda group: cast("int", group.name)))
            for group in found:
                [interval] = group.intervals.values()
                yield GroupReport(
                    model=model,
                    group=column.labels[group.name],
                    n_rows=cast("int", group.n_rows),  # rows that were given are counted
                    positives=cast("int", group.n_positives),
                    smooth_ce=cast("float", interval.value),
                    lower=interval.lower,
                    upper=interval.upper,
                    pvalue=min(1.0, len(by) * group.pvalue),
                    note=group.note,
                    by=column.name,
                )
