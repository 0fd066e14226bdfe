"""From what users pass for a batch to grids of one kind, with weights of at most 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from caldist._util.invalid import show
from caldist.data import grid as _grid
from caldist.data import validate
from caldist.data.categories import number_labels
from caldist.data.grid import Grid
from caldist.data.joint import Joint
from caldist.data.rows import Rows, refuse_beside_joint
from caldist.errors import InvalidInput, InvalidType


class Batch(NamedTuple):
    """Rows on a grid, and how many were left out of the table that they came from."""

    grid: Grid
    invalid: Mapping[str, int]


def read_batch(
    y_true: Any,
    y_prob: Any,
    sample_weight: Any,
    pos_label: object,
    by: Any,
    groups: Sequence[Any],
    bits: int,
) -> list[Batch]:
    """Return all rows, then those of each declared sub-group.

    Weights are divided by the largest of the batch, or by a bound of it where a joint does not tell
    single rows apart: so that it depends on no label.
    """
    if isinstance(y_true, Mapping):
        refuse_beside_joint(y_prob=y_prob, sample_weight=sample_weight, pos_label=pos_label, by=by)
        parts = _of_mapping(y_true, groups, bits)
        return [_total(parts, bits), *parts]
    if isinstance(y_true, Joint):
        refuse_beside_joint(y_prob=y_prob, sample_weight=sample_weight, pos_label=pos_label, by=by)
        if groups:
            raise InvalidInput(
                argument="y_true",
                reason="is a Joint, which does not say which rows belong to which of the declared "
                "sub-groups",
                remedy="Pass a joint of each, {group: joint}.",
            )
        return _scaled([_round_to_grid(y_true, bits, "y_true")])
    if by is None and groups:
        raise InvalidInput(
            argument="by",
            value=None,
            reason="sub-groups were declared",
            remedy="Pass the sub-group of each row as by=…, or a joint of each, {group: joint}.",
        )
    if by is not None and not groups:
        raise InvalidInput(
            argument="by",
            reason="was given, but no sub-groups were declared",
            remedy="Make the monitor with Monitor(by=(…)), because shares of the false alarm rate "
            "cannot be handed out later.",
        )
    if _is_empty(y_true) and _is_empty(y_prob):
        for name, values in (("sample_weight", sample_weight), ("by", by)):
            if values is not None and not _is_empty(values):
                validate.check_size(name, len(values), "y_prob", 0)
        return [Batch(_grid.empty(bits), {}) for _ in range(1 + len(groups))]
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    if rows.weight is not None:
        rows = Rows(rows.label, rows.prediction, rows.weight / rows.weight.max())
    if not groups:
        return [Batch(_grid.from_rows(rows.label, rows.prediction, rows.weight, bits), {})]
    parts = _of_groups(rows, by, groups, bits)
    return [_total(parts, bits), *parts]


def _is_empty(values: Any) -> bool:
    return not isinstance(values, str) and hasattr(values, "__len__") and len(values) == 0


def _of_groups(rows: Rows, by: Any, groups: Sequence[Any], bits: int) -> list[Batch]:
    names, code = number_labels(by, rows.label.size, "by")
    known = {name: at for at, name in enumerate(groups)}
    for first, name in enumerate(names):
        if name not in known:
            at, reason = validate.first(code == first), "this sub-group was not declared"
            _fail_undeclared(groups, reason, argument="by", index=at, value=name)
    number = np.array([known[name] for name in names])[code]
    parts = []
    for at in range(len(groups)):
        here = number == at
        weight = None if rows.weight is None else rows.weight[here]
        grid = _grid.from_rows(rows.label[here], rows.prediction[here], weight, bits)
        parts.append(Batch(grid, {}))
    return parts


def _of_mapping(joints: Mapping[Any, Any], groups: Sequence[Any], bits: int) -> list[Batch]:
    if not groups:
        raise InvalidInput(
            argument="y_true",
            reason="is a dict of joints, but no sub-groups were declared",
            remedy="Pass one joint, or make the monitor with Monitor(by=(…)).",
        )
    for name, joint in joints.items():
        if name not in groups:
            reason = "belongs to a sub-group that was not declared"
            _fail_undeclared(groups, reason, argument=f"y_true[{name!r}]")
        if not isinstance(joint, Joint):
            raise InvalidType(
                argument=f"y_true[{name!r}]",
                value=joint,
                reason="a dict in place of the rows holds a caldist.Joint for each sub-group",
            )
    return _scaled(
        [
            _round_to_grid(joints[name], bits, f"y_true[{name!r}]")
            if name in joints
            else Joint.empty(bits)
            for name in groups
        ]
    )


def _fail_undeclared(groups: Sequence[Any], reason: str, **where: Any) -> NoReturn:
    listed = ", ".join(show(group) for group in groups[:5])
    more = f", … ({len(groups)} in all)" if len(groups) > 5 else ""
    raise InvalidInput(
        reason=f"{reason}; the monitor knows {listed}{more}",
        remedy="Leave its rows out and look at them elsewhere, or begin a new monitor with it.",
        **where,
    )


def _round_to_grid(joint: Joint, bits: int, name: str) -> Joint:
    if joint.n_rows is None:
        raise InvalidInput(
            argument=name,
            reason="does not say how many rows it was made of, so nothing can be said about the "
            "population",
            remedy="Make it with Joint.from_arrays, summarize or an Accumulator.",
        )
    if joint.grid is not None and joint.grid.bits < bits:
        raise InvalidInput(
            argument=name,
            reason=f"has cells of {joint.grid.bits} bits, and the monitor of {bits}",
            remedy=f"Make the monitor with bits={joint.grid.bits}, or summarise with more bits.",
        )
    return joint.coarsen(bits)


def _scaled(joints: list[Joint]) -> list[Batch]:
    """Divide weights by a bound of the largest one that depends on no label."""
    largest, batches = 0.0, []
    for joint in joints:
        grid = joint.grid
        assert grid is not None  # noqa: S101 -- they are on a grid
        batches.append(Batch(grid, joint.invalid))
        if grid.cell.size == 0:
            continue
        if grid.is_integer or joint.counts_rows:
            largest = max(largest, 1.0)
        elif grid.weight_square0 is None or grid.weight_square1 is None:
            raise InvalidInput(
                argument="y_true",
                reason="is a joint with weights, but without the sums of their squares",
                remedy="Make it with Joint.from_arrays, summarize or an Accumulator.",
            )
        else:
            most = float((grid.weight_square0 + grid.weight_square1).max())
            largest = max(largest, float(np.sqrt(most)))
    if largest in {0.0, 1.0}:
        return batches
    return [Batch(_divided(grid, largest), invalid) for grid, invalid in batches]


def _divided(grid: Grid, largest: float) -> Grid:
    grid = grid._weighted()  # noqa: SLF001 -- rows without weights have weight 1
    sums = grid.arrays()
    cell = sums.pop("cell")
    scaled = {
        name: part / (largest * largest if name.startswith("weight_square") else largest)
        for name, part in sums.items()
    }
    return Grid(grid.bits, cell, **scaled, n_rows=grid.n_rows)


def _total(parts: Sequence[Batch], bits: int) -> Batch:
    grid, invalid = _grid.empty(bits), Counter[str]()
    for part in parts:
        grid = grid + part.grid
        invalid.update(part.invalid)
    return Batch(grid, dict(invalid))
