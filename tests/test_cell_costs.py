"""The cost of cells, its error and the limit made of both, recomputed row by row."""

import math
from itertools import combinations

import numpy as np
import pytest

from caldist.data.rows import Rows
from caldist.inference import _cells
from caldist.inference._dealing import deal, ordered_units


def sample(n, seed, *, tied):
    rng = np.random.default_rng(seed)
    v = np.round(rng.random(n), 1) if tied else rng.random(n)
    y = (rng.random(n) < np.clip(v**1.5 + 0.1, 0, 1)).astype(int)
    return rng, y, v


def by_hand(y, v, share, cell, group, dependence):
    """Return the cost and its error; rows of one group are left out of their mean together."""
    cost, psi, own, more = (np.zeros(y.size) for _ in range(4))
    for i in range(y.size):
        inside = cell == cell[i]
        mean = share[inside] @ y[inside] / share[inside].sum()
        others = inside & (group != group[i])
        without = share[others] @ y[others] / share[others].sum()
        cost[i] = share[i] * abs(v[i] - without)
        slopes = [
            share[inside] @ np.where(below, 1.0, -1.0) / share[inside].sum()
            for below in (v[inside] <= mean, v[inside] < mean)
        ]
        slope = max(slopes, key=abs)
        psi[i] = abs(v[i] - mean) + slope * (y[i] - mean)
        rows = share[inside].sum() ** 2 / (share[inside] @ share[inside])  # of equal weight
        rate = (rows * mean + 1) / (rows + 2)
        more[i] = (share[i] * slope) ** 2 * max(0.0, rate * (1 - rate) - mean * (1 - mean))
        own[i] = share[i] * abs(slope) * math.sqrt(max(rate * (1 - rate), v[i] * (1 - v[i])))
    psi = share * (psi - share @ psi)
    numbers = range(group.max() + 1)
    squares = sum(psi[group == g].sum() ** 2 for g in numbers)
    if np.unique(group).size == group.size:
        return cost.sum(), math.sqrt(squares + more.sum())
    together = sum(own[group == g].sum() ** 2 for g in numbers)
    alone = own @ own
    labels = alone + dependence * max(0.0, together - alone)
    return cost.sum(), math.sqrt(max(squares, labels))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("clusters", [0, 7, 25])
@pytest.mark.parametrize("seed", range(3))
def test_cost_and_error(tied, weighted, clusters, seed):
    rng, y, v = sample(60, seed, tied=tied)
    weight = rng.integers(1, 4, 60) if weighted else None
    share = np.full(60, 1 / 60) if weight is None else weight / weight.sum()
    group = rng.integers(0, clusters, 60) if clusters else np.arange(60)
    options = {"sample_weight": weight, "clusters": group if clusters else None}
    units = ordered_units(Rows.of(y, v, **options))
    support = np.unique(v)
    start = np.searchsorted(support, [0.0, 0.35, 0.7])
    cell = np.searchsorted([0.35, 0.7], v, side="right")
    dependence = units.dependence if clusters else 0.0
    expected = by_hand(y, v, share, cell, np.unique(group, return_inverse=True)[1], dependence)
    assert _cells._cost(units, start) == pytest.approx(expected, rel=1e-12)


def test_the_upper_limit_of_one_partition(monkeypatch):
    """It is the cost, a quantile of its error, and Bernstein's term for the heaviest row."""
    monkeypatch.setattr(_cells.Cells, "_merged", lambda *_: (math.inf, 0.0))
    rng, y, v = sample(200, 0, tied=False)
    units = ordered_units(Rows.of(y, v, sample_weight=rng.integers(1, 4, 200)))
    cells = _cells.cells_of(units)
    cost, error = _cells._cost(units, cells.start)
    expected = cost + 1.5 * error + math.log(20) / 3 * units.share.max()
    assert cells.upper(0.05, 1.5, None) == pytest.approx(expected)
    assert cells.upper(1e-300, 1.5, None) == 1


@pytest.mark.parametrize("narrow", [False, True])
def test_the_upper_limit_of_merged_partitions(narrow):
    """Cells merged on two fifths of the rows and paid for on the others, over all such pairs."""
    rng = np.random.default_rng(0)
    v = 0.45 + rng.random(300) / 10 if narrow else rng.random(300)
    units = ordered_units(Rows.of((rng.random(300) < v).astype(int), v))
    cells, dealt = _cells.cells_of(units), deal(units, np.random.default_rng(0))
    costs, errors = [], []
    for pair in combinations(range(5), 2):
        train, (test, factor) = dealt.halves(pair)
        start = _cells._merge(train[0], np.append(cells.start, units.prediction.size))
        cost, error = _cells._cost(test, start)
        costs.append(cost)
        errors.append(error * math.sqrt(factor))
    assert len(costs) == 10
    merged = np.mean(costs) + 1.5 * np.mean(errors)
    cost, error = _cells._cost(units, cells.start)
    expected = min(merged, cost + 1.5 * error) + math.log(20) / 3 / 300
    assert (merged < cost + 1.5 * error) == narrow
    assert cells.upper(0.05, 1.5, dealt) == pytest.approx(expected)
