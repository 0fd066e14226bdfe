"""Where predictions err since an onset: the experts' mean curve."""

import itertools

import numpy as np
import pytest

import caldist
from caldist.monitoring import curves, experts


def watched(change, days=30, rows=400, by=None, seed=0):
    rng = np.random.default_rng(seed)
    monitor = caldist.Monitor(tolerance=0.01, by=by)
    for day in range(days):
        p = rng.random(rows)
        truth = change(p) if day >= days // 2 else p
        groups = rng.choice(by, rows) if by else None
        monitor.update(rng.random(rows) < truth, p, label=day, by=groups)
    return monitor


@pytest.mark.parametrize(
    "change",
    [
        lambda p: np.clip(p + 0.12, 0, 1),
        lambda p: p**1.6,
        lambda p: np.where((p > 0.6) & (p < 0.75), p - 0.3, p),  # none but the tree sees it
    ],
)
def test_the_curve_is_near_the_truth(change):
    monitor = watched(change, days=60)
    found = curves.errors_since(monitor, monitor.steps[-1].onset)
    off = np.abs(found.frequency - change(found.prediction))
    assert float(off @ found.share) < 0.03
    assert found.share.sum() == pytest.approx(1)
    assert ((found.frequency >= 0) & (found.frequency <= 1)).all()


def test_a_sub_group_has_its_own():
    rng = np.random.default_rng(1)
    monitor = caldist.Monitor(by=("a", "b"))
    for day in range(20):
        p, by = rng.random(400), rng.choice(["a", "b"], 400)
        off = np.where(by == "b", 0.2, 0.0)
        monitor.update(rng.random(400) < np.clip(p + off, 0, 1), p, label=day, by=by)
    shift = {}
    for name in ("a", "b"):
        found = curves.errors_since(monitor, monitor.steps[-1].by[name].onset, name)
        shift[name] = float((found.frequency - found.prediction) @ found.share)
    assert abs(shift["a"]) < 0.03
    assert shift["b"] > 0.1


def test_the_value_of_the_tree_is_that_of_the_kernel():
    monitor = watched(lambda p: np.clip(p + 0.12, 0, 1))
    stream = monitor._state.streams[0]
    for window, start in enumerate(stream.starts):
        sums = (stream.total - start)[: curves._TREE].reshape(experts.LEAVES, -1)
        value, belief = curves._tree(sums)
        assert value + np.log(0.3) == pytest.approx(stream.families[window][3], abs=1e-9)
        assert belief.sum(axis=1) == pytest.approx(1)


def test_what_the_tree_believes_against_all_partitions():
    """Four leaves: the trees are the ways to stop at the root, at a half, or at the leaves."""
    rng = np.random.default_rng(2)
    sums = rng.normal(0, 1.5, (4, 3))

    def local(total, idle):
        return np.append(idle, (1 - idle) / 3 * np.exp(total))

    def halves(pair):
        whole = 0.4 * local(sums[pair].sum(axis=0), 0.7)
        apart = [local(sums[at], 0.7) for at in pair]
        stay = (whole.sum(), [whole / whole.sum()] * 2)
        split = 0.6 * apart[0].sum() * apart[1].sum(), [part / part.sum() for part in apart]
        return stay, split

    root = 0.4 * local(sums.sum(axis=0), 0.1)
    cases = [(root.sum(), [root / root.sum()] * 4)]
    for (a, left), (b, right) in itertools.product(halves([0, 1]), halves([2, 3])):
        cases.append((0.6 * a * b, [*left, *right]))
    total = sum(weight for weight, _ in cases)
    expected = sum(weight / total * np.array(parts) for weight, parts in cases)
    value, belief = curves._tree(sums)
    assert value == pytest.approx(np.log(total))
    assert belief == pytest.approx(expected)
