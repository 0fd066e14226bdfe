"""Labels drawn with a random byte each, and signs with a bit: right to all digits."""

import math

import numpy as np
import pytest

from caldist import Joint, _kernels
from caldist.data import units as units_module
from caldist.data.random_labels import RandomLabels, random_bytes
from caldist.data.rows import Rows
from caldist.data.units import _sums_of_signs

FAST = _kernels.COMPILED
TINY = 2.0**-40
# On the edges of a byte, between them, and next to 0 and 1.
PREDICTIONS = np.array(
    [0, TINY, 1 / 256, 1.5 / 256, 0.3, 0.5, 0.5 + TINY, 255 / 256, 0.999, 1 - TINY, 1]
)


def test_labels_have_their_probabilities():
    size, times = (300, 300) if FAST else (30, 30)
    labels = RandomLabels(PREDICTIONS, np.full(PREDICTIONS.size, size))
    rng = np.random.default_rng(0)
    ones = np.array([labels.ones(rng, labels.start) for _ in range(times)])
    assert (ones == np.rint(ones)).all()
    assert (ones[:, 0] == 0).all()
    assert (ones[:, -1] == size).all()
    share = ones.mean(axis=0) / size
    spread = np.sqrt(PREDICTIONS * (1 - PREDICTIONS) / times / size)
    assert (np.abs(share - PREDICTIONS) <= 4.5 * spread + 1e-9).all()
    # Sums of independent rows vary as binomial numbers do.
    middle = (PREDICTIONS > 0.1) & (PREDICTIONS < 0.9)
    ratio = ones[:, middle].var(axis=0) / (size * PREDICTIONS * (1 - PREDICTIONS))[middle]
    assert ratio == pytest.approx(1, abs=5 * math.sqrt(2 / times))


def test_rows_that_a_byte_leaves_open_are_decided_right():
    """1.5/256: byte 0 is label 1, and byte 1 every other time."""
    labels = RandomLabels(np.array([1.5 / 256]), np.array([100_000 if FAST else 2_000]))
    rng = np.random.default_rng(1)
    ones = sum(labels.ones(rng, labels.start)[0] for _ in range(20))
    rows = 20 * labels.start[-1]
    expected = rows * 1.5 / 256
    assert ones == pytest.approx(expected, abs=4.5 * math.sqrt(expected))
    # Without the second draw it would be 1/256 or 2/256.
    assert abs(expected - rows / 256) > 5 * math.sqrt(expected)


def test_ones_are_counted_between_any_starts():
    labels = RandomLabels(np.array([0.0, 1.0, 0.0, 1.0]), np.array([2, 3, 1, 4]))
    rng = np.random.default_rng(2)
    assert labels.ones(rng, labels.start).tolist() == [0, 3, 0, 4]
    assert labels.ones(rng, np.array([0, 5, 10])).tolist() == [3, 4]


@pytest.mark.parametrize("kind", ["rows", "ties", "weights"])
def test_units_draw_with_bytes_what_they_draw_without(monkeypatch, kind):
    """The same first two moments at every prediction."""
    rng = np.random.default_rng(3)
    n, times = (400, 3000) if FAST else (40, 200)
    v = rng.random(n) if kind == "rows" else np.round(rng.random(n), 1)
    weight = rng.random(n) if kind == "weights" else None
    units = Rows.of(rng.integers(0, 2, n), v, sample_weight=weight).units
    monkeypatch.setattr(units_module, "_MANY_ROWS", 0)
    drawn = np.array([units.draw(rng) for _ in range(times)])
    _, share, count = units.drawn_units
    place = units.drawn_units[0]
    p = units.prediction
    variance = np.bincount(place, count * share**2, p.size) * p * (1 - p)
    assert (np.abs(drawn.mean(axis=0)) <= 5 * np.sqrt(variance / times) + 1e-15).all()
    some = variance > 0
    ratio = drawn.var(axis=0)[some] / variance[some]
    # The kurtosis of a rare label makes its variance vary more.
    tail = np.sqrt((2 + 1 / (p * (1 - p))[some]) / times)
    assert (np.abs(ratio - 1) <= 5 * tail).all()


def test_many_rows_in_few_cells_are_not_written_out():
    """A thousand million rows have binomial draws, not a byte each."""
    joint = Joint.from_masses([0.2, 0.7], [6e8, 1e8], [2e8, 1e8], n_rows=10**9)
    units = Rows.of(joint).units
    drawn = units.draw(np.random.default_rng(4))
    assert np.abs(drawn).max() < 1e-3
    assert "_random_labels" not in vars(units)


def test_sums_of_signs_have_their_law():
    """Of few signs, whose bits are counted, and of many, which are normal."""
    count = np.array([1, 2, 31, 32, 33, 64, 100, 255, 256, 5000])
    rng = np.random.default_rng(5)
    times = 4000 if FAST else 400
    drawn = np.array([_sums_of_signs(rng, count) for _ in range(times)])
    exact = count < 256
    assert ((drawn + count)[:, exact] % 2 == 0).all()
    assert (np.abs(drawn[:, exact]) <= count[exact]).all()
    assert (np.abs(drawn.mean(axis=0)) <= 4.5 * np.sqrt(count / times)).all()
    assert drawn.var(axis=0) / count == pytest.approx(1, abs=5 * math.sqrt(2 / times))
    # Two signs are both 1 a quarter of the time, and do not go with the others.
    share = np.mean(drawn[:, 1] == 2)
    assert share == pytest.approx(0.25, abs=4.5 * math.sqrt(0.1875 / times))
    together = np.corrcoef(drawn.T)[np.triu_indices(count.size, 1)]
    assert np.abs(together).max() <= 5 / math.sqrt(times)


@pytest.mark.skipif(not FAST, reason="kernels are not compiled")
def test_counted_bits_are_those_of_plain_python():
    rng = np.random.default_rng(6)
    count = np.array([0, 1, 31, 32, 33, 64, 65, 200])
    words = rng.integers(0, 2**32, 20, dtype=np.uint32)
    found = []
    for kernel in (_kernels.replicates, _kernels.plain("replicates")):
        out = np.empty(count.size)
        kernel.sums_of_signs(words, count, out)
        found.append(out.tolist())
    assert found[0] == found[1]
    assert found[0][1] == 2 * (int(words[0]) >> 31) - 1
    assert found[0][3] == 2 * int(words[2]).bit_count() - 32


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "SFC64", "Philox", "MT19937"])
def test_bytes_of_every_generator_are_random(kind):
    """Words of MT19937 have 32 bits: the other half of 64 would be zeros."""
    rng = np.random.Generator(getattr(np.random, kind)(1))
    found = np.bincount(random_bytes(rng, 256_000), minlength=256)
    assert found.sum() == 256_000
    assert ((found - 1000) ** 2 / 1000).sum() < 400  # chi-squared of 255 degrees of freedom
