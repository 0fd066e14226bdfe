"""Where predictions err since a batch, as the experts see it: the mean of their curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caldist._util.types import Vector
from caldist.monitoring import experts
from caldist.monitoring.labels import Label
from caldist.monitoring.monitor import Monitor
from caldist.monitoring.streams import EXPERTS

_TREE = experts.LEAVES * experts.SHIFTS.size  # sums of leaves, before those of single experts


@dataclass(frozen=True, eq=False)
class ErrorCurve:
    """What labels are like at each prediction since a batch.

    ``frequency`` is the mean of what the experts claim, each counted by its wealth since then: an
    estimate that is drawn towards the predictions. ``share`` is that of the predictions in the
    cell, recent ones counted more.
    """

    prediction: Vector
    frequency: Vector
    share: Vector


def errors_since(monitor: Monitor, onset: Label, group: str | int | None = None) -> ErrorCurve:
    """Return the curve of all rows, or of a sub-group, since a batch whose start is kept."""
    state = monitor._state  # noqa: SLF001 -- of its own package
    stream = state.streams[0 if group is None else 1 + monitor.by.index(group)]
    window = int(np.searchsorted(stream.start, state.labels.index(onset)))
    bits = int(stream.recent.size - 1).bit_length() - 1
    table, there = experts.table(bits), np.flatnonzero(stream.recent)
    sums = (stream.total - stream.starts[window])[EXPERTS]
    leaves = sums[:_TREE].reshape(experts.LEAVES, -1)
    single = np.append(leaves[:, : experts.LEVELS].sum(axis=0), sums[_TREE:])
    log_tree, belief = _tree(leaves)
    logs = np.append(
        single + experts._LOG_PRIOR,  # noqa: SLF001 -- of its own package
        log_tree + np.log(experts._SHARES[3]),  # noqa: SLF001
    )
    weight = np.exp(logs - np.logaddexp.reduce(logs))
    # The last line of the table is that of nobody.
    frequency = np.einsum("i,ij->j", weight[:-1], table.curves[:-1, there])
    v = table.point[there]
    shift = np.append(0.0, experts.SHIFTS)
    moved = 1 / (1 + (1 - v) / v * np.exp(-shift[:, None]))
    frequency += weight[-1] * np.einsum("ji,ij->j", belief[table.leaf[there]], moved)
    return ErrorCurve(v, frequency, stream.recent[there] / stream.recent.sum())


def _tree(leaves: Vector) -> tuple[float, Vector]:
    """Return the log value of the tree, and what it believes of each leaf.

    That is the posterior probability of no shift and of each shift, a line for each leaf: upwards
    the values of all nodes, downwards the probability that the partition goes on below each.
    """
    sums = [leaves]
    while sums[-1].shape[0] > 1:
        sums.append(sums[-1][::2] + sums[-1][1::2])
    values: list[Vector] = []
    stops: list[Vector] = []
    beliefs: list[Vector] = []
    for depth, node in enumerate(sums):
        root = depth == len(sums) - 1
        idle = experts._ROOT_IDLE if root else experts._IDLE  # noqa: SLF001
        parts = np.column_stack(
            (
                np.full(node.shape[0], np.log(idle)),
                node + np.log((1 - idle) / node.shape[1]),
            )
        )
        local = np.logaddexp.reduce(parts, axis=1)
        beliefs.append(np.exp(parts - local[:, None]))
        if depth == 0:
            values.append(local)
            stops.append(np.ones_like(local))
            continue
        stay = local + np.log(experts._STOP)  # noqa: SLF001
        split = values[-1][::2] + values[-1][1::2] + np.log1p(-experts._STOP)  # noqa: SLF001
        values.append(np.logaddexp(stay, split))
        stops.append(np.exp(stay - values[-1]))
    reached = np.ones(1)
    found = np.zeros((1, beliefs[0].shape[1]))
    for stop, belief in zip(stops[::-1], beliefs[::-1], strict=True):
        if reached.size < stop.size:
            reached, found = np.repeat(reached, 2), np.repeat(found, 2, axis=0)
        found = found + (reached * stop)[:, None] * belief
        reached = reached * (1 - stop)
    return float(values[-1][0]), found
