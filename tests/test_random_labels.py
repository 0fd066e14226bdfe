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


# -- added up in cells ---------------------------------------------------------------------------


def rows_in_cells(*, clustered, ties):
    """Return the units of weighted rows, and the cell of each prediction."""
    rng = np.random.default_rng(7)
    n = 500
    p = rng.integers(0, 60, n) / 59 if ties else rng.random(n)
    clusters = rng.integers(0, 40, n) if clustered else None
    y = (rng.random(n) < p).astype(int)
    rows = Rows.of(y, p, sample_weight=rng.exponential(size=n) ** 3, clusters=clusters)
    size = rows.joint.prediction.size
    return rows.units, np.sort(np.concatenate((np.arange(7), rng.integers(0, 7, size - 7))))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("clustered", [False, True])
def test_cells_add_up_what_rows_show(clustered, ties, monkeypatch):
    units, cell = rows_in_cells(clustered=clustered, ties=ties)
    on_cells = units.on_cells(cell)
    assert on_cells.residual == pytest.approx(np.bincount(cell, units.residual), abs=1e-15)
    assert (np.diff(on_cells.prediction) > 0).all()
    for k, v in enumerate(on_cells.prediction):
        inside = units.prediction[cell == k]
        assert inside.min() <= v <= inside.max()
    assert on_cells.n_rows == units.n_rows
    assert on_cells.mass.sum() == pytest.approx(1)
    draw = units.drawing_in(cell)
    if clustered:
        flipped = np.bincount(cell, units.flip(np.random.default_rng(1)))
        flip = units.flipping_in(cell)
        assert flip(np.random.default_rng(1)) == pytest.approx(flipped, abs=1e-15)
        drawn = np.bincount(cell, units.draw_clusters(np.random.default_rng(2)))
        assert draw(np.random.default_rng(2)) == pytest.approx(drawn, abs=1e-15)
        return
    # Whatever labels come, they are those of rows in the order of their predictions.
    label = np.random.default_rng(3).integers(0, 2, units.n_rows).astype(np.uint8)
    monkeypatch.setattr(RandomLabels, "draw", lambda self, rng: label)
    v = units.prediction[units.place]
    drawn = np.bincount(cell[units.place], units.share * (label - v))
    assert draw(np.random.default_rng(2)) == pytest.approx(drawn, abs=1e-15)


@pytest.mark.skipif(not FAST, reason="thousands of draws")
def test_draws_in_cells_have_the_right_variance():
    units, cell = rows_in_cells(clustered=False, ties=False)
    draw, rng = units.drawing_in(cell), np.random.default_rng(0)
    drawn = np.array([draw(rng) for _ in range(4000)])
    v = units.prediction
    variance = np.bincount(cell, units.squares * v * (1 - v))
    assert np.abs(drawn.mean(axis=0)) == pytest.approx(0, abs=5 * math.sqrt(variance.max() / 4000))
    assert drawn.var(axis=0) == pytest.approx(variance, rel=0.2)


@pytest.mark.skipif(not FAST, reason="nothing to compare")
def test_compiled_and_plain_draws_in_cells_agree():
    rng = np.random.default_rng(0)
    share, v, uniform = rng.random(50), rng.random(50), rng.random(9)
    label, cluster = rng.integers(0, 2, 50).astype(np.uint8), rng.integers(0, 9, 50)
    place = np.sort(rng.integers(0, 6, 50))
    start = np.searchsorted(place, np.arange(7))
    found = []
    for kernel in (_kernels.replicates, _kernels.plain("replicates")):
        ones, drawn, flipped = np.empty(6), np.empty(6), np.empty(6)
        kernel.weigh_ones(label, share, start, ones)
        kernel.draw_clusters_in(uniform, share, v, cluster, start, drawn)
        kernel.flip_clusters_in(np.array([0b101101, 1], np.uint8), share, cluster, start, flipped)
        found.append((ones.tolist(), drawn.tolist(), flipped.tolist()))
    assert found[0] == found[1]
    sign = np.array([1, -1, 1, 1, -1, 1, -1, -1, 1])[cluster]
    wanted = (share * label, share * ((uniform[cluster] < v) - v), share * sign)
    for mine, values in zip(found[0], wanted, strict=True):
        assert mine == pytest.approx(np.bincount(place, values, 6))
