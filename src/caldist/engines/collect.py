"""From the cells that an engine returns to joints, one per group."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from caldist.data import validate
from caldist.data.grid import Grid, empty
from caldist.data.joint import INVALID, Joint
from caldist.engines._query import DOUBLES, Query
from caldist.errors import InvalidInput

Numbers = NDArray[Any]

# Bytes at the peak for each row of (group, cell) that comes back, as measured with DuckDB and
# Polars: their own tables, the copy in NumPy, the sorted copy and the joints.
BYTES_PER_ROW = 448
BYTES_OF_WEIGHTS = 64  # more than that, where rows have weights
_OUT_OF_MEMORY = "OutOfMemory"  # in the names of exceptions of DuckDB and Java
_OVERFLOW = "value out of range: overflow"  # PostgreSQL; predictions are checked before
_UNSAFE = re.compile(r"Integer value (-?\d+) not in range")
_DENSE = 4  # times as many cells as rows of cells, up to which all cells are laid out


def collect(frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """Run a query; Polars in its streaming engine, which needs memory only for the result."""
    if frame.implementation.is_polars():
        return frame.collect(engine="streaming")
    return frame.collect()


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn exceptions of engines that people may meet into those of Python, with the remedy.

    They are too little memory, integers that are no float64, which PyArrow refuses to round, and
    sums of weights beyond the largest double, which PostgreSQL refuses.
    """
    try:
        yield
    except Exception as error:
        if _OUT_OF_MEMORY in type(error).__name__ or _OUT_OF_MEMORY in str(error):
            raise MemoryError(str(error)) from error
        if type(error).__name__ == "ArrowInvalid" and (found := _UNSAFE.search(str(error))):
            raise InvalidInput(
                argument="table",
                reason=f"holds the integer {found[1]}, which is beyond 2^53, where float64 rounds",
                remedy="Cast its column to float64 first.",
            ) from error
        if _OVERFLOW in str(error):
            raise InvalidInput(
                argument="sample_weight",
                reason="adds up to too much",
                remedy="Divide the weights by their maximum.",
            ) from error
        raise


def check_memory(query: Query, bits: int, limit: int) -> None:
    """Raise if the cells would not fit, before they come back.

    A group of m rows has at most min(m, codes) of them. Where that bound is too much, they are
    counted, which costs as much as the summary itself.
    """

    def codes(bits: int) -> int:
        return 2 * ((1 << bits) + 1 + len(INVALID))

    each = BYTES_PER_ROW + (0 if query.rows.weight is None else BYTES_OF_WEIGHTS)
    most = limit // each
    keys, frame = query.rows.keys, query.rows.frame
    if not keys and codes(bits) <= most:
        return
    if keys:
        # How many groups there are of each size: few numbers, however many groups.
        groups = frame.group_by(*keys).agg(nw.len().alias("size"))
    else:
        groups = frame.select(nw.len().alias("size"))
    sizes = collect(groups.group_by("size").agg(nw.len().alias("groups")))
    size, number = (sizes[name].to_numpy().astype(np.float64) for name in ("size", "groups"))

    def bound(bits: int) -> float:
        return float(number @ np.minimum(size, codes(bits)))

    if bound(bits) <= most:
        return
    found = int(collect(query.cells.select(nw.len().alias("n")))["n"][0])
    if found <= most:
        return
    fit = max((b for b in range(1, bits) if bound(b) <= most), default=None)
    remedy = (
        f"bits={fit} would fit"
        if fit is not None
        else "not even bits=1 would fit: summarize fewer groups at a time"
    )
    message = (
        f"the summary has {found:,} cells in {int(number.sum()):,} groups and needs about "
        f"{found * each / 1e9:.3g} GB, more than memory_limit={limit:,} bytes: {remedy}. Or pass "
        f"memory_limit={found * each}, where there is as much memory."
    )
    raise MemoryError(message)


def joints(query: Query, bits: int) -> dict[tuple[Any, ...], Joint]:
    """Run the query and return a joint for each group; without ``by`` its key is ()."""
    table = collect(query.cells)
    if query.in_doubles and len(table) and _numpy(table["rows"]).max() > DOUBLES:
        exact = Query.of(query.rows, bits, second_order=query.second_order, in_doubles=False)
        table = collect(exact.cells)
    if len(table) == 0:
        remedy = "At least one is needed."
        raise InvalidInput(argument="table", reason="has no rows", remedy=remedy)
    keys: list[tuple[Any, ...]] = [()]
    group = np.zeros(len(table), np.int64)
    if query.rows.keys:
        table, group, keys = _grouped(table, query.rows.keys)
    # The sums of a grid, and the columns that they come in.
    sources = {"count": "rows", "place": "place"}
    if query.second_order:
        sources["square"] = "square"
    if query.rows.weight is not None:
        sources |= {"count": "mass", "weight_square": "weight_square", "rows": "rows"}
    columns = list(sources.values())
    if query.by_cell:
        columns = [name + label for name in columns for label in "01"]
    code, *parts = (_numpy(table[name]) for name in ("code", *columns))
    label = None if query.by_cell else code & 1
    group, cell, parts = _by_cell(group, code if label is None else code >> 1, label, parts)
    names = [name + label for name in sources for label in "01"]
    bad = cell < 0
    invalid = {}
    if bad.any():
        rows = "rows" if "rows" in sources else "count"
        sides = [parts[names.index(rows + label)][bad] for label in "01"]
        lost = np.bincount(group[bad], sides[0] + sides[1])
        invalid = _count_invalid(query, {keys[at]: int(lost[at]) for at in np.flatnonzero(lost)})
    group, cell, *parts = (part[~bad] for part in (group, cell, *parts))
    edges = np.searchsorted(group, np.arange(len(keys) + 1))
    result = {}
    for key, start, end in zip(keys, edges[:-1], edges[1:], strict=True):
        sums = {name: part[start:end] for name, part in zip(names, parts, strict=True)}
        joint = _joint(cell[start:end], sums, bits)
        result[key] = replace(joint, invalid=invalid[key]) if key in invalid else joint
    return result


def _joint(cell: Numbers, sums: dict[str, Numbers], bits: int) -> Joint:
    """Return the joint of a group: ``count0`` and ``count1`` of rows, or sums of weights."""
    n_rows = 0
    if "rows0" in sums:  # with weights, which may all be 0
        n_rows = int(sums.pop("rows0").sum() + sums.pop("rows1").sum())
        mass = sums["count0"] + sums["count1"]
        if np.isnan(mass).any():
            raise InvalidInput(
                argument="sample_weight",
                reason="adds up to NaN, although each weight passed its check: the engine takes "
                "NaN for a number",
                remedy="Replace NaN in the column of weights by null.",
            )
        validate.check_masses("the weight of cells", mass)
        there = mass > 0
        cell, sums = cell[there], {name: part[there] for name, part in sums.items()}
    grid = Grid(bits, cell, **sums, n_rows=n_rows) if cell.size else empty(bits, n_rows)
    return Joint._from_grid(grid)  # noqa: SLF001 -- sums that need no other check


def _count_invalid(
    query: Query, expected: dict[tuple[Any, ...], int]
) -> dict[tuple[Any, ...], dict[str, int]]:
    """Return the number of invalid rows by group and reason: as many as expected in each group."""
    table = collect(query.reasons)
    found: dict[tuple[Any, ...], dict[str, int]] = {}
    reasons, rows = (_numpy(table[name]).tolist() for name in ("reason", "rows"))
    for key, reason, count in zip(_values(table, query.rows.keys), reasons, rows, strict=True):
        found.setdefault(key, {})[INVALID[reason]] = count
    if {key: sum(counts.values()) for key, counts in found.items()} != expected:
        again = sum(map(sum, (counts.values() for counts in found.values())))
        raise InvalidInput(
            argument="table",
            reason=f"changed while it was read: {sum(expected.values()):,} rows were not valid, "
            f"and {again:,} when they were counted by reason",
            remedy="Summarise a copy that stays the same; of a random sample, its rows.",
        )
    return found


def _numpy(column: nw.Series[Any]) -> Numbers:
    return column.to_numpy().astype(np.float64 if column.dtype.is_float() else np.int64)


def _grouped(
    table: nw.DataFrame[Any], keys: tuple[str, ...]
) -> tuple[nw.DataFrame[Any], Numbers, list[tuple[Any, ...]]]:
    """Sort rows by their keys; return them with the number of each row's group, and the keys."""
    table = table.sort(*keys)
    first = np.zeros(len(table), np.bool_)
    first[0] = True
    for key in keys:
        column = table[key]
        null = column.is_null().to_numpy().astype(np.bool_)
        first[1:] |= null[1:] != null[:-1]
        changed = (column != column.shift(1)).fill_null(value=False).to_numpy().astype(np.bool_)
        first[1:] |= changed[1:] & ~null[1:]
    heads = table[np.flatnonzero(first).tolist()]
    return table, np.cumsum(first) - 1, _values(heads, keys)


def _values(table: nw.DataFrame[Any], keys: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Return the keys of each row, with None for what is missing."""
    if not keys:
        return [()] * len(table)
    columns = (
        [None if null else value for value, null in zip(column, column.is_null(), strict=True)]
        for column in (table[key] for key in keys)
    )
    return list(zip(*columns, strict=True))


def _by_cell(
    group: Numbers, cell: Numbers, label: Numbers | None, sums: list[Numbers]
) -> tuple[Numbers, Numbers, list[Numbers]]:
    """Sort by group and cell, with the labels of a cell side by side: each sum for 0 and for 1.

    Without ``label`` they are so already.
    """
    lowest, width = int(cell.min()), int(cell.max()) - int(cell.min()) + 1
    where = group * width + (cell - lowest)
    size = (int(group[-1]) + 1) * width
    if size <= _DENSE * cell.size:
        # A place for every cell, with or without rows: no sort is needed.
        found, at = np.zeros(size, np.bool_), where
        found[where] = True
        kept = np.flatnonzero(found)
    else:
        kept, at = np.unique(where, return_inverse=True)
        size, found = kept.size, np.ones(kept.size, np.bool_)
    sides = []
    for part in sums:
        laid_out = np.zeros(size if label is None else (size, 2), part.dtype)
        laid_out[at if label is None else (at, label)] = part
        chosen = laid_out[found]
        sides += [chosen] if label is None else [chosen[:, 0].copy(), chosen[:, 1].copy()]
    return kept // width, kept % width + lowest, sides
