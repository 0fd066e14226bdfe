"""Accumulator: batches in any order, from several threads, to the joint of one pass."""

import copy
import pickle
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caldist import Joint
from caldist.data.accumulator import Accumulator
from caldist.data.grid import ROWS_PER_CELL
from strategies import family, samples


@given(samples(min_size=4, weighted=False), st.integers(1, 30), st.data())
def test_batches_in_any_order_give_the_bits_of_one_pass(sample, bits, data):
    y, p, _ = sample
    whole = Joint.from_arrays(y, p).coarsen(bits)
    batch = np.array(data.draw(st.lists(st.integers(0, 4), min_size=y.size, max_size=y.size)))
    order = data.draw(st.permutations(sorted(set(batch.tolist()))))
    running = Accumulator(bits)
    parts = []
    for number in order:
        rows = batch == number
        assert running.update(y[rows], p[rows]) is running
        parts.append(Accumulator(bits).update(y[rows], p[rows]).joint)
    assert running.joint == whole
    while len(parts) > 1:  # merge neighbours in a drawn order
        at = data.draw(st.integers(0, len(parts) - 2))
        parts[at : at + 2] = [parts[at + 1] + parts[at]]
    assert parts[0] == whole


@given(samples(min_size=2, weighted=True), st.integers(1, 20))
def test_weighted_batches_agree_to_rounding(sample, bits):
    y, p, weight = sample
    weight = weight + 0.3
    whole = Joint.from_arrays(y, p, sample_weight=weight).coarsen(bits)
    running = Accumulator(bits)
    for at in range(y.size):
        running.update(y[at : at + 1], p[at : at + 1], sample_weight=weight[at : at + 1])
    assert running.joint.n_rows == whole.n_rows
    arrays = whole.grid.arrays()
    assert running.joint.grid.arrays().keys() == arrays.keys()
    for name, array in running.joint.grid.arrays().items():
        assert array == pytest.approx(arrays[name], rel=1e-12)


@given(samples(min_size=2, weighted=True), st.integers(1, 20), st.randoms())
def test_weights_whose_sums_are_exact_give_the_same_bits(sample, bits, random):
    y, p, weight = sample
    weight = np.array([random.choice([0, 0.5, 1, 2, 1000]) for _ in weight])
    weight[0] = 1.0
    whole = Joint.from_arrays(y, p, sample_weight=weight).coarsen(bits)
    assert Accumulator(bits).update(y, p, sample_weight=weight).joint == whole
    running = Accumulator(bits)
    for rows in (weight > 1, weight == 1, (weight < 1) & (weight > 0)):
        if rows.any():
            running.update(y[rows], p[rows], sample_weight=weight[rows])
    nothing = int((weight == 0).sum())
    assert running.joint.n_rows == whole.n_rows - nothing
    assert running.joint.grid.arrays().keys() == whole.grid.arrays().keys()
    for name, array in running.joint.grid.arrays().items():
        assert np.array_equal(array, whole.grid.arrays()[name])


@pytest.mark.parametrize(
    "weight",
    [[3e9, 3e9 + 0.5, 1000, 1], [3e9] * 4, [3e9 + 0.5] * 4, [1e-3] * 4, [2.0**40] * 4],
)
def test_weights_are_never_numbers_of_rows(weight):
    """Weights of 3e9 were refused as more than 2^32 rows, those of 3e9 + 0.5 were not."""
    y, p = [0, 1, 1, 0], [0.25, 0.5, 0.5, 0.75]
    joint = Accumulator(16).update(y, p, sample_weight=weight).joint
    assert joint == Joint.from_arrays(y, p, sample_weight=weight).coarsen(16)
    assert joint.n_rows == 4
    assert joint.total == sum(weight)


def test_rows_with_and_without_weights_come_together():
    y, p, weight = [0, 1, 1], [0.2, 0.2, 0.9], [0.5, 2, 3]
    found = Accumulator(8).update(y, p).update(y, p, sample_weight=weight).joint
    assert found == Accumulator(8).update(y, p, sample_weight=weight).update(y, p).joint
    assert found == Joint.from_arrays(y + y, p + p, sample_weight=[1, 1, 1, *weight]).coarsen(8)


def test_threads_lose_no_rows():
    """Four threads that read, added and stored a joint without a lock lost most of the rows."""
    y, p = family("beta3", 4 * 250 * 4, np.random.default_rng(0))
    running = Accumulator(4)
    barrier = threading.Barrier(4)

    def work(number):
        barrier.wait()
        for start in range(number * 1000, (number + 1) * 1000, 4):
            running.update(y[start : start + 4], p[start : start + 4])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert running.joint.n_rows == 4000
    assert running.joint == Joint.from_arrays(y, p).coarsen(4)


def test_a_joint_that_was_handed_out_stays_as_it_was():
    running = Accumulator(8).update([0, 1], [0.2, 0.7])
    handed_out = running.joint
    before = copy.deepcopy(handed_out)
    running.update([1, 1], [0.7, 0.9])
    assert running.joint.n_rows == 4
    assert running.joint != handed_out
    assert handed_out == before
    with pytest.raises(AttributeError):
        running.joint = before


@pytest.mark.parametrize(
    ("rows", "weight"),
    [
        (([0, 2], [0.1, 0.2]), None),
        (([0, 1], [0.1, np.nan]), None),
        (([0, 1], [0.1, 0.2]), [1, -1]),
        (([0, 1], [0.1, 0.2]), [0, 0]),
        (([0, 1], [0.1, 0.2]), [1e308, 1e308]),
        (([0, 1], [0.1, 0.2]), [1e200, 1e200]),  # whose squares are infinite
        (([0, 1], [0.1]), None),
        (([], []), None),
        ((Joint.from_arrays([0, 1], [0.2, 0.7]).coarsen(4),), None),
        ((Joint.from_masses([0.5], [1], [1], radius=0.1),), None),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_refused_batch_leaves_no_trace(rows, weight, weighted):
    first = [2, 3] if weighted else None
    running = Accumulator(8).update([0, 1], [0.2, 0.7], sample_weight=first)
    before = copy.deepcopy(running.joint)
    with pytest.raises(ValueError):
        running.update(*rows, sample_weight=weight)
    assert running.joint == before
    assert running.update([1], [0.5]).joint.n_rows == 3


def test_a_cell_with_too_many_rows_is_refused_too():
    running = Accumulator(8).update([0, 1], [0.2, 0.7])
    before = running.joint
    full = Joint.from_cells([51], [ROWS_PER_CELL], [0], [0], [0], bits=8)
    with pytest.raises(ValueError, match=r"bits is 8: .*more than 4294967296 rows"):
        running.update(full)
    assert running.joint == before
    weighted = running.update([0], [0.2], sample_weight=[0.5]).update(full)  # sums without limit
    assert weighted.joint.n_rows == ROWS_PER_CELL + 3


def test_what_cannot_stand_beside_a_joint():
    joint = Joint.from_arrays([0, 1], [0.2, 0.7])
    with pytest.raises(TypeError, match="y_prob was given with a Joint"):
        Accumulator(8).update(joint, [0.2, 0.7])
    with pytest.raises(TypeError, match="sample_weight was given with a Joint"):
        Accumulator(8).update(joint, sample_weight=[1, 2])


@given(samples(min_size=2), st.integers(1, 20), st.data())
def test_it_takes_joints(sample, bits, data):
    y, p, weight = sample
    cut = data.draw(st.integers(1, y.size - 1))
    running, batches = Accumulator(bits), Accumulator(bits)
    for rows in (slice(cut), slice(cut, None)):
        w = None if weight is None else weight[rows] + 0.5
        exact = Joint.from_arrays(y[rows], p[rows], sample_weight=w)
        running.update(exact if data.draw(st.booleans()) else exact.coarsen(bits))
        batches.update(y[rows], p[rows], sample_weight=w)
    assert running.joint.n_rows == y.size
    if weight is None:
        assert running.joint == batches.joint
    for name, array in running.joint.grid.arrays().items():
        assert array == pytest.approx(batches.joint.grid.arrays()[name], rel=1e-12)


def test_a_joint_without_rows_adds_nothing():
    running = Accumulator(8).update([0, 1], [0.2, 0.7])
    before = running.joint
    assert running.update(Joint.empty(8)).joint == before


def test_copies_go_their_own_way():
    running = Accumulator(8).update([0, 1], [0.2, 0.7])
    for other in (pickle.loads(pickle.dumps(running)), copy.deepcopy(running), copy.copy(running)):
        assert other.joint == running.joint
        other.update([1], [0.7])
        assert other.joint.n_rows == 3
    assert running.joint.n_rows == 2


def test_how_it_shows_itself_and_what_it_refuses():
    assert repr(Accumulator().update([0], [0.5])) == "Accumulator(bits=16, n_rows=1)"
    assert Accumulator(4).joint == Joint.empty(4)
    for bits in (0, 31):
        with pytest.raises(ValueError, match="bits"):
            Accumulator(bits)
