"""Weighted tables on every engine: rows and mass are two facts, and squares of weights are kept."""

import numpy as np
import pytest

from caldist import Joint
from caldist.data.accumulator import Accumulator
from caldist.data.grid import from_rows
from caldist.data.rows import Rows
from caldist.engines import summarize
from caldist.inference.sample import units_of
from engine_rows import INF, NAN, hard_rows

pytest.importorskip("pyarrow")

COLUMNS = {"y_true": "label", "y_prob": "score", "sample_weight": "w"}


def table_of(y_true, y_prob, weight, **others):
    return {"label": y_true, "score": y_prob, "w": np.asarray(weight, np.float64), **others}


def exact(y_true, y_prob, weight, bits=16):
    return Joint.from_arrays(y_true, y_prob, sample_weight=weight).coarsen(bits)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [1, 16, 30])
def test_sums_that_are_exact_give_the_same_bits(constructor, bits):
    y_true, y_prob = hard_rows(seed=3)
    weight = np.random.default_rng(3).choice([0, 0.5, 1, 2, 1000], y_true.size)
    table = constructor(table_of(y_true, y_prob, weight))
    whole = exact(y_true, y_prob, weight, bits)
    first = summarize(table, **COLUMNS, bits=bits)
    found = summarize(table, **COLUMNS, bits=bits, second_order=True)
    assert found == first == whole
    assert found.n_rows == y_true.size  # those of weight 0 too
    assert first.grid.square0 is None
    assert np.array_equal(found.grid.square0, whole.grid.square0)
    assert np.array_equal(found.grid.square1, whole.grid.square1)
    assert Accumulator(bits).update(y_true, y_prob, sample_weight=weight).joint == whole


@pytest.mark.slow
@pytest.mark.parametrize("weight", [3e9, 3e9 + 0.5, 1000, 1, 0.5])
def test_large_and_whole_weights_are_weights(constructor, weight):
    """Whole weights became numbers of rows, which 3e9 of a cell exceeded, but not 3e9 + 0.5."""
    y_true, y_prob = np.array([0, 1] * 5), np.arange(1, 11) / 16
    table = constructor(table_of(y_true, y_prob, np.full(10, weight)))
    found = summarize(table, **COLUMNS)
    assert found == exact(y_true, y_prob, np.full(10, weight))
    assert (found.n_rows, found.total) == (10, 10 * weight)
    assert found.counts_rows == (weight == 1)  # Σw = n = Σw² says so
    units = units_of(Rows.of(found))
    assert units.n_rows == 10
    assert units.standard_error(units.label.astype(float)) == pytest.approx(0.5 / 10**0.5)


def test_large_and_small_weights_side_by_side(constructor):
    y_true, y_prob = np.arange(12) % 2, np.repeat(np.arange(6), 2) / 8
    weight = np.repeat([1, 2, 0.5, 3e9, 3e9 + 0.5, 1000], 2)
    found = summarize(constructor(table_of(y_true, y_prob, weight)), **COLUMNS, bits=8)
    assert found == exact(y_true, y_prob, weight, 8)
    assert found.weight_square0.tolist() == [w * w for w in (1, 2, 0.5, 3e9, 3e9 + 0.5, 1000)]


def test_whole_numbers_in_a_column_of_integers(constructor):
    y_true, y_prob = hard_rows(20)
    weight = np.random.default_rng(5).integers(0, 4, y_true.size)
    table = constructor({"label": y_true, "score": y_prob, "w": weight})
    assert summarize(table, **COLUMNS) == exact(y_true, y_prob, weight)


@pytest.mark.slow
def test_other_sums_agree_up_to_rounding(constructor):
    y_true, y_prob = hard_rows(seed=2)
    weight = np.random.default_rng(2).gamma(0.5, size=y_true.size)
    weight[::7] = 0
    table = constructor(table_of(y_true, y_prob, weight))
    found = summarize(table, **COLUMNS, second_order=True)
    expected = from_rows(y_true.astype(np.uint8), y_prob, weight, 16).arrays()
    assert found.n_rows == y_true.size
    assert found.grid.arrays().keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(found.grid.arrays()[name], array, rtol=1e-12, err_msg=name)


def test_weights_that_are_all_zero_are_an_error(constructor):
    table = constructor(table_of([0, 1], [0.1, 0.2], [0, 0]))
    with pytest.raises(ValueError, match="sample_weight is 0 in every row"):
        summarize(table, **COLUMNS)


def test_weights_whose_sums_are_infinite_are_an_error(constructor):
    for weight in (1e300, 1e200):  # of which some engines cannot add up the squares
        table = constructor(table_of([0, 1], [0.1, 0.2], [weight, weight]))
        with pytest.raises(ValueError, match=r"[Dd]ivide (them|the weights) by their maximum"):
            summarize(table, **COLUMNS)


def test_invalid_weights_are_counted(constructor):
    weight = [1.0, -1.0, NAN, INF, None, 0.0, 2.0]
    table = constructor({"label": [1] * 7, "score": [0.5] * 7, "w": weight})
    found = summarize(table, **COLUMNS, invalid="count")
    assert found.invalid == {"bad weight": 4}
    assert (found.n_rows, found.total) == (3, 3)
    assert found.grid == exact([1] * 3, [0.5] * 3, [1, 0, 2]).grid


def test_groups_with_and_without_weight(constructor):
    """Rows of weight 0 are rows, in cells that others have, in cells of their own, and alone."""
    y_true, y_prob = hard_rows(30)
    rng = np.random.default_rng(7)
    weight = rng.choice([0, 0.5, 1, 1000], y_true.size)
    key = rng.choice(["x", "y", "nothing"], y_true.size)
    weight[key == "nothing"] = 0
    table = constructor(table_of(y_true, y_prob, weight, k=key))
    found = summarize(table, **COLUMNS, by="k")
    assert set(found) == {"x", "y", "nothing"}
    for name, joint in found.items():
        rows = key == name
        assert joint.n_rows == rows.sum()
        if name != "nothing":
            assert joint == exact(y_true[rows], y_prob[rows], weight[rows])
    assert found["nothing"].total == 0
    assert not found["nothing"].counts_rows
    with pytest.raises(ValueError, match=r"joint has \d+ rows, all of weight 0"):
        found["nothing"].normalized()
    whole = exact(y_true, y_prob, weight)
    assert sum(found.values()) == whole
    running = Accumulator(16)
    for joint in found.values():
        running.update(joint)
    assert running.joint == whole


def test_a_group_without_valid_rows_is_empty(constructor):
    data = {"label": [0, 1, 2, 1], "score": [0.5, 0.5, 0.5, 0.5], "k": ["a", "a", "b", "b"]}
    table = constructor(data | {"w": [1.0, 0.0, 1.0, -1.0]})
    found = summarize(table, **COLUMNS, by="k", invalid="count")
    assert found["a"] == exact([0, 1], [0.5, 0.5], [1, 0])
    assert found["b"].grid == Joint.empty(16).grid
    assert found["b"].invalid == {"bad label": 1, "bad weight": 1}


@pytest.mark.slow
def test_any_partition_gives_the_same_bits(constructor):
    y_true, y_prob = hard_rows(50, seed=4)
    rng = np.random.default_rng(4)
    weight = rng.choice([0.5, 1, 2, 1000], y_true.size)
    parts = [
        summarize(constructor(table_of(y_true[rows], y_prob[rows], weight[rows])), **COLUMNS)
        for rows in np.array_split(rng.permutation(y_true.size), [5, 100])
    ]
    whole = exact(y_true, y_prob, weight)
    assert sum(parts) == sum(parts[::-1]) == whole


@pytest.mark.slow
def test_the_check_of_memory_counts_the_sums_of_weights(constructor):
    from caldist.engines.collect import BYTES_PER_ROW

    y_true, y_prob = hard_rows(10)
    table = constructor(table_of(y_true, y_prob, np.ones(y_true.size)))
    with pytest.raises(MemoryError) as caught:
        summarize(table, **COLUMNS, memory_limit=1)
    found = str(caught.value).removeprefix("the summary has ").partition(" ")[0]
    enough = int(found.replace(",", "")) * BYTES_PER_ROW
    assert summarize(table, y_true="label", y_prob="score", memory_limit=enough).n_rows > 0
    with pytest.raises(MemoryError, match=f"the summary has {found} cells"):
        summarize(table, **COLUMNS, memory_limit=enough)
