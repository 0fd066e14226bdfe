"""Labels drawn with a random byte each, and signs with a bit: right to all digits."""

import math

import numpy as np
import pytest

from caldist import Joint
from caldist.data.rows import Rows
from caldist.inference import sample as units_module
from caldist.inference.random_labels import RandomLabels, random_bytes
from caldist.inference.sample import Units, _sums_of_signs, units_of
from caldist.kernels import loader
from clustered_rows import bursts

FAST = loader.COMPILED
TINY = 2.0**-40
# On the edges of a byte, between them, and next to 0 and 1.
PREDICTIONS = np.array(
    [0, TINY, 1 / 256, 1.5 / 256, 0.3, 0.5, 0.5 + TINY, 255 / 256, 0.999, 1 - TINY, 1]
)

NONE = np.empty(0)


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
    units = units_of(Rows.of(rng.integers(0, 2, n), v, sample_weight=weight))
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
    units = units_of(Rows.of(joint))
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
    for kernel in (loader.replicates, loader.plain("replicates")):
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
    return units_of(rows), np.sort(np.concatenate((np.arange(7), rng.integers(0, 7, size - 7))))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("clustered", [False, True])
def test_cells_add_up_what_rows_show(clustered, ties, monkeypatch):
    units, cell = rows_in_cells(clustered=clustered, ties=ties)
    sum_over_cells = units.sum_over_cells(cell)
    assert sum_over_cells.residual == pytest.approx(np.bincount(cell, units.residual), abs=1e-15)
    assert (np.diff(sum_over_cells.prediction) > 0).all()
    for k, v in enumerate(sum_over_cells.prediction):
        inside = units.prediction[cell == k]
        assert inside.min() <= v <= inside.max()
    assert sum_over_cells.n_rows == units.n_rows
    assert sum_over_cells.mass.sum() == pytest.approx(1)
    draw = units.drawing_in(cell)
    if clustered:
        flipped = np.bincount(cell, units.flip(np.random.default_rng(1)))
        flip = units.flipping_in(cell)
        assert flip(np.random.default_rng(1)) == pytest.approx(flipped, abs=1e-15)
        uniform = np.random.default_rng(2).random(units.n_clusters)
        v = units.prediction[units.place]
        drawn = units.share * ((uniform[units.cluster] < v) - v)
        drawn = np.bincount(cell[units.place], drawn)
        assert draw(np.random.default_rng(2)) == pytest.approx(drawn, abs=1e-15)
        return
    # Whatever labels come, they are those of rows in the order of their predictions.
    label = np.random.default_rng(3).integers(0, 2, units.n_rows).astype(np.uint8)
    monkeypatch.setattr(RandomLabels, "draw", lambda self, rng: label)
    v = units.prediction[units.place]
    drawn = np.bincount(cell[units.place], units.share * (label - v))
    assert draw(np.random.default_rng(2)) == pytest.approx(drawn, abs=1e-15)


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
    share, v, uniform, own = rng.random(50), rng.random(50), rng.random(9), rng.random(50)
    label, cluster = rng.integers(0, 2, 50).astype(np.uint8), rng.integers(0, 9, 50)
    place = np.sort(rng.integers(0, 6, 50))
    start = np.searchsorted(place, np.arange(7))
    together = np.linspace(0.1, 1, 6)  # of each cell
    found = []
    for kernel in (loader.replicates, loader.plain("replicates")):
        ones, drawn, mixed, flipped = (np.empty(6) for _ in range(4))
        kernel.weigh_ones(label, share, start, ones)
        kernel.draw_clusters_in(uniform, NONE, together, share, v, cluster, start, drawn)
        kernel.draw_clusters_in(uniform, own, together, share, v, cluster, start, mixed)
        kernel.flip_clusters_in(np.array([0b101101, 1], np.uint8), share, cluster, start, flipped)
        found.append(tuple(values.tolist() for values in (ones, drawn, mixed, flipped)))
    assert found[0] == found[1]
    sign = np.array([1, -1, 1, 1, -1, 1, -1, -1, 1])[cluster]
    common = together[place]
    own = np.where(common < 1, (own - common) / np.maximum(1 - common, 1e-9), 0)
    number = np.where(own < 0, uniform[cluster], own)
    number = np.where(common == 1, uniform[cluster], number)
    drawn, mixed = (share * ((numbers < v) - v) for numbers in (uniform[cluster], number))
    wanted = (share * label, drawn, mixed, share * sign)
    for mine, values in zip(found[0], wanted, strict=True):
        assert mine == pytest.approx(np.bincount(place, values, 6))


# -- clusters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dependence", [0.0, 0.3, 1.0])
def test_drawn_labels_of_a_cluster_have_their_share_of_the_largest_covariance(dependence):
    """Labels 1(u < p) and 1(u < q) of one number have covariance min(p, q) − pq: no others more."""
    v = np.array([0.1, 0.3, 0.4, 0.8])
    rows = Rows.of([0, 1, 0, 1], v, clusters=[0, 0, 0, 1])
    rng, times = np.random.default_rng(0), 40_000
    draw = units_of(rows).drawing_in(np.arange(4), dependence)
    most = np.minimum.outer(v, v) - np.outer(v, v)
    wanted = dependence * most
    wanted[3, :3] = wanted[:3, 3] = 0.0
    np.fill_diagonal(wanted, v * (1 - v))
    drawn = np.array([draw(rng) for _ in range(times)]) * 4
    assert np.abs(drawn.mean(axis=0)).max() < 5 * 0.5 / math.sqrt(times)
    assert np.cov(drawn.T) == pytest.approx(wanted, abs=5 * 0.25 / math.sqrt(times))


def test_dependence_is_that_of_pairs():
    """Pairs of rows of a cluster, one by one."""
    rng = np.random.default_rng(1)
    y, v, cluster = bursts(rng, 15, 1.0)
    weight = rng.random(y.size)
    units = units_of(Rows.of(y, v, clusters=cluster, sample_weight=weight))
    e, d = y - v, np.sqrt(v * (1 - v))
    e = e - np.average(e, weights=weight)
    seen, most = [], []
    for k in range(15):
        inside = np.flatnonzero(cluster == k)
        share = weight[inside] / weight[inside].sum()
        pairs = [(a, b) for a in range(inside.size) for b in range(inside.size) if a != b]
        for found, x in ((seen, e[inside]), (most, d[inside])):
            found.append(math.fsum(share[a] * share[b] * x[a] * x[b] for a, b in pairs))
    seen, most = np.array(seen), np.array(most)
    share = seen.sum() / most.sum()
    missed = math.sqrt(((seen - share * most) ** 2).sum()) / most.sum()
    scale = np.average(d**2, weights=weight) / np.average(e**2, weights=weight)
    assert units.dependence == pytest.approx(min(1.0, (max(share, 0) + 2 * missed) * scale))
    assert 0 < units.dependence < 1


def test_dependence_of_rows_that_do_and_do_not():
    rng = np.random.default_rng(0)
    cluster = np.arange(4000) // 10
    v = np.full(4000, 0.3)
    alone = units_of(Rows.of(rng.random(4000) < v, v, clusters=cluster))
    whole = units_of(Rows.of(rng.random(400)[cluster] < v, v, clusters=cluster))
    assert alone.dependence < 0.05
    assert whole.dependence > 0.95
    for few in (1, 2, 9):  # which cannot show it
        assert (
            units_of(Rows.of(rng.random(90) < 0.3, v[:90], clusters=np.arange(90) % few)).dependence
            == 1
        )
    single = units_of(Rows.of(rng.random(4000) < v, v, clusters=np.arange(4000)))
    certain = np.repeat([0, 1], 20)
    certain = units_of(Rows.of(certain, certain.astype(float), clusters=np.arange(40) // 2))
    assert single.dependence == certain.dependence == 0


def test_what_unequal_rows_and_clusters_are_worth():
    y, v = [0, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5]
    assert units_of(Rows.of(y, v)).effective_size(1) == (3, 3)
    weighted = units_of(Rows.of(y, v, sample_weight=[1, 1, 1, 2, 3]))
    assert weighted.effective_size(1) == (3, pytest.approx(36 / 14))
    assert weighted.effective_size() == (5, pytest.approx(64 / 16))
    of_joint = Units.of_joint(Joint.from_arrays(y, v, sample_weight=[1, 1, 1, 2, 3]))
    assert of_joint.effective_size(1) == weighted.effective_size(1)
    clustered = units_of(Rows.of(y, v, clusters=list("aabbc")))
    assert clustered.effective_size() == (3, pytest.approx(25 / 9))
    assert clustered.effective_size(1) == (2, pytest.approx(9 / 5))
    assert clustered.effective_size(0) == (1, 1)
    tiny = units_of(Rows.of(y, v, sample_weight=np.array([1, 1, 1, 2, 3]) * 1e-49))
    assert tiny.effective_size(1) == (3, pytest.approx(36 / 14))
    assert units_of(Rows.of([1, 1], [0.5, 0.5], sample_weight=[1, 2])).effective_size(0) == (0, 0)
