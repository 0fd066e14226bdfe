"""The e-values of a monitor have mean 1, or less, under what they are bets against."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import zeta

import caldist
from caldist import Joint
from caldist.kernels import loader
from caldist.monitoring import batches, experts, mixtures, streams, windows
from caldist.monitoring.steps import rejected
from caldist.monitoring.streams import Stream
from strategies import fewer

compiled_only = pytest.mark.skipif(not loader.COMPILED, reason="takes minutes")


def label_vectors(p):
    """Yield every vector of labels with its probability under calibration."""
    for labels in itertools.product((0, 1), repeat=len(p)):
        y = np.array(labels)
        yield y, float(np.prod(np.where(y == 1, p, 1 - p)))


def run(monitor, y, p, cuts):
    for batch, (a, b) in enumerate(itertools.pairwise((0, *cuts, len(y)))):
        step = monitor.update(y[a:b], p[a:b], batch=batch)
    return step


def expected(p, cuts, read, **options):
    return math.fsum(
        chance * read(run(caldist.Monitor(**options), y, p, cuts)) for y, chance in label_vectors(p)
    )


def e_value(step):
    return math.exp(step.log_e_calibrated)


P = np.array([0.1, 0.3, 0.34, 0.62, 0.9, 0.05, 0.5, 0.77])


# -- perfect calibration -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [(), (3,), (2, 5), (0, 4, 4)], ids=str)
def test_the_mean_over_all_labels_is_one(cuts):
    p = P if loader.COMPILED else P[:5]
    assert expected(p, cuts, e_value) == pytest.approx(1, abs=1e-12)


def test_exact_zeros_and_ones_and_ties_have_mean_one():
    p = np.array([0.0, 1.0, 0.25, 0.25, 0.25, 2.0**-40, 1 - 2.0**-40])
    assert expected(p, (3,), e_value) == pytest.approx(1, abs=1e-10)


def test_cells_of_different_rows_have_mean_at_most_one():
    p = np.array([0.01, 0.2, 0.24, 0.26, 0.74, 0.99])
    found = expected(p, (3,), e_value, bits=2)
    assert 0.9 < found < 1


def test_weights_have_mean_at_most_one():
    p, w = P[:6], np.array([1, 0.3, 2.0, 0.1, 1.0, 0.7])

    def read(y):
        monitor = caldist.Monitor()
        monitor.update(y[:3], p[:3], batch=0, sample_weight=w[:3])
        return e_value(monitor.update(y[3:], p[3:], batch=1, sample_weight=w[3:]))

    found = math.fsum(chance * read(y) for y, chance in label_vectors(p))
    assert 0.8 < found <= 1


def test_groups_and_all_rows_together_have_mean_one():
    p = P[:6]
    by = np.array(["a", "b", "a", "b", "b", "a"])

    def read(y):
        monitor = caldist.Monitor(by=("a", "b", "never"))
        for batch, part in enumerate((slice(0, 2), slice(2, 6))):
            step = monitor.update(y[part], p[part], batch=batch, by=by[part])
        return e_value(step)

    found = math.fsum(chance * read(y) for y, chance in label_vectors(p))
    assert found == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("batch_count", [1, 2, 3])
def test_the_sum_over_windows_has_as_mean_the_number_of_batches(batch_count):
    """So that run_length is the least mean number of batches until a false alarm."""
    p = P[:6]
    cuts = (2, 4)[: batch_count - 1]
    found = expected(p, cuts, lambda step: math.exp(step.log_e_value), run_length=100)
    assert found == pytest.approx(batch_count, abs=1e-11)


@pytest.mark.slow
@compiled_only
def test_dropped_windows_only_lower_the_mean():
    """Forty batches, three of them with rows: what is dropped is lost, and nothing else."""
    p = P[:6]

    def read(y):
        monitor = caldist.Monitor()
        for batch in range(40):
            rows = {0: slice(0, 2), 20: slice(2, 4), 39: slice(4, 6)}.get(batch, slice(0, 0))
            step = monitor.update(y[rows], p[rows], batch=batch)
        return e_value(step)

    found = math.fsum(chance * read(y) for y, chance in label_vectors(p))
    every = np.arange(40)
    held = np.exp(windows.log_shares(every[windows.mask(every, 40)])).sum() + windows.cash(40)
    assert found == pytest.approx(held, abs=1e-12)
    assert held < 0.97


def test_shares_and_cash_add_up_to_one():
    for batches_ in (0, 1, 2, 10, 63, 64, 65, 500):
        held = np.exp(windows.log_shares(np.arange(batches_))).sum()
        assert held + windows.cash(batches_) == pytest.approx(1, abs=1e-13)
    assert windows.cash(10**6) == pytest.approx(
        0.15 * zeta(1.2, 10**6 + 1) / (zeta(1.2) - 1), rel=1e-12
    )


def test_windows_are_thinned_out_evenly_and_never_come_back():
    before = np.zeros(0, np.int64)
    for t in range(1, 4000):
        start = np.append(before, t - 1)
        before = start[windows.mask(start, t)]
        if t in {100, 1000, 3653}:
            every = np.arange(t)
            assert np.array_equal(before, every[windows.mask(every, t)])
            gap = np.diff(np.append(before, t))
            assert (gap <= np.maximum(1, (t - before) / 8)).all()
            assert before[0] == 0
    assert before.size < 85


# -- the tree ----------------------------------------------------------------------------------


def partitions(first, last):
    """Yield (weight, pieces) of all dyadic partitions of the leaves from first to last."""
    if last - first == 1:
        yield 1.0, [(first, last)]
        return
    yield 0.4, [(first, last)]
    middle = (first + last) // 2
    for (a, left), (b, right) in itertools.product(
        list(partitions(first, middle)), list(partitions(middle, last))
    ):
        yield 0.6 * a * b, left + right


@pytest.mark.parametrize("module", [loader.experts, loader.plain("experts")])
@pytest.mark.parametrize("size", [0.3, 20.0, 400.0])
def test_the_tree_is_the_sum_over_all_partitions(module, size):
    rng = np.random.default_rng(3)
    leaves, shifts = 8, 3
    sums = rng.normal(0, size, (leaves, shifts))
    logs = []
    for weight, pieces in partitions(0, leaves):
        value = math.log(weight)
        for a, b in pieces:
            p = 0.1 if b - a == leaves else 0.7
            terms = np.append(sums[a:b].sum(axis=0) + math.log((1 - p) / shifts), math.log(p))
            value += float(np.logaddexp.reduce(terms))
        logs.append(value)
    out = np.empty(4)
    total = np.append(sums.ravel(), [0.0, 0.0])
    module.window_values(
        total, np.zeros(total.size), total.size, shifts, leaves, 1, 1, np.zeros(3), 0.0, 0.7, 0.1,
        0.4, out,
    )  # fmt: skip
    assert out[3] == pytest.approx(float(np.logaddexp.reduce(logs)), rel=1e-12)
    assert out[0] == pytest.approx(sums[:, 0].sum())


def test_the_curve_of_the_tree_is_the_mean_over_all_partitions(monkeypatch):
    rng = np.random.default_rng(1)
    for name, value in (("LEAVES", 8), ("_IDLE", 0.7), ("_ROOT_IDLE", 0.1), ("_STOP", 0.4)):
        monkeypatch.setattr(experts, name, value)
    sums = rng.normal(0, 2, (8, 10))
    monkeypatch.setattr(experts, "table", experts.table.__wrapped__)
    found = experts.tree_curve(np.append(sums.ravel(), np.zeros(62)), 5)
    grid = experts.table(5)
    total, mean = 0.0, np.zeros(grid.point.size)
    for weight, pieces in partitions(0, 8):
        value, claims = weight, np.zeros(grid.point.size)
        for a, b in pieces:
            p = 0.1 if b - a == 8 else 0.7
            terms = np.append((1 - p) / 10 * np.exp(sums[a:b].sum(axis=0)), p)
            value *= terms.sum()
            here = (grid.leaf >= a) & (grid.leaf < b)
            odds = grid.point[here] / (1 - grid.point[here])
            factor = np.exp(np.append(experts.SHIFTS, 0.0))
            claimed = odds[:, None] * factor / (1 + odds[:, None] * factor)
            claims[here] = (claimed * terms / terms.sum()).sum(axis=1)
        total += value
        mean += value * claims
    np.testing.assert_allclose(found, mean / total, rtol=1e-10)


# -- sums of experts -----------------------------------------------------------------------------


def shifts_of(point):
    """Return what each expert adds to the log-odds at a point, written out again."""
    u = 2 / math.pi * math.asin(math.sqrt(point))
    z = math.log(point) - math.log1p(-point)
    slopes = [
        min(max(c + (a - 1) * z, -6), 6)
        for a in (0.5, 0.7, 0.85, 1 / 0.85, 1 / 0.7, 2.0)
        for c in (-0.4, -0.2, 0.0, 0.2, 0.4)
    ]
    waves = [
        sign * b * math.cos(math.pi * k * u)
        for k in (2, 3, 4, 5)
        for b in (0.1, 0.2, 0.4, 0.8)
        for sign in (1, -1)
    ]
    leaf = min(63, int(64 * u))
    return leaf, [s * d for d in (0.1, 0.2, 0.4, 0.8, 1.6) for s in (1, -1)], slopes + waves


@pytest.mark.parametrize("module", [loader.experts, loader.plain("experts")])
@pytest.mark.parametrize("rows", [1, 40, 1500])
def test_sums_are_those_of_a_loop_over_rows(module, rows, monkeypatch):
    monkeypatch.setattr(experts, "kernel", module)
    rng = np.random.default_rng(rows)
    p = np.append(rng.uniform(0.1, 1, rows) ** 3, [0.0, 1.0, 0.5])
    p = (np.floor(p * 2**14) + 0.5) / 2**14  # rows of a cell are equal
    p[-3:] = 0.0, 1.0, 0.5
    y = (rng.random(p.size) < 0.5).astype(int)
    if rows == 1500:
        p[:800] = p[0]  # a cell of many rows
    expected_sums = np.zeros(experts.N_SUMS)
    for label, v in zip(y, p, strict=True):
        cell = math.floor(v * 2**14)
        point = (cell + 0.5) / 2**14 if cell < 2**14 else 1 - 2.0**-16
        leaf, local, others = shifts_of(point)
        for j, d in enumerate(local):
            expected_sums[10 * leaf + j] += d * label - math.log1p(v * math.expm1(d))
        for j, d in enumerate(others):
            expected_sums[640 + j] += d * label - math.log1p(v * math.expm1(d))
    found = experts.batch_sums(Joint.from_arrays(y, p).coarsen(14).grid)
    np.testing.assert_allclose(found, expected_sums, rtol=1e-11, atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(1, 16))
def test_cells_say_at_most_what_rows_say(seed, bits):
    """Every expert on the means of cells, against the same one on each row's own prediction."""
    rng = np.random.default_rng(seed)
    p = rng.beta(*rng.uniform(0.2, 3, 2), 30)
    y = (rng.random(30) < 0.4).astype(int)
    found = experts.batch_sums(Joint.from_arrays(y, p).coarsen(bits).grid)
    cell = np.floor(p * 2.0**bits).astype(int) >> max(0, bits - 14)
    point = experts.table(bits).point[cell]
    of_rows = np.zeros(experts.N_SUMS)
    for label, v, g in zip(y, p, point, strict=True):
        leaf, local, others = shifts_of(g)
        of_rows[10 * leaf : 10 * leaf + 10] += [
            d * label - math.log1p(v * math.expm1(d)) for d in local
        ]
        of_rows[640:] += [d * label - math.log1p(v * math.expm1(d)) for d in others]
    assert (found <= of_rows + 1e-12).all()


# -- the distance ------------------------------------------------------------------------------


def lower_distance_lp(v, mass0, mass1, nodes=201):
    """ldCE by HiGHS: couplings with a calibrated distribution on a grid of nodes, from above."""
    u = np.unique(np.concatenate((np.linspace(0, 1, nodes), v)))
    n, m = v.size, u.size
    cost = np.tile(np.abs(v[:, None] - u[None, :]).ravel(), 2)
    rows, right = [], []
    for label, mass in enumerate((mass0, mass1)):
        for i in range(n):
            row = np.zeros((2, n, m))
            row[label, i] = 1
            rows.append(row.ravel())
            right.append(mass[i])
    for j in range(m):
        row = np.zeros((2, n, m))
        row[0, :, j], row[1, :, j] = u[j], -(1 - u[j])
        rows.append(row.ravel())
        right.append(0.0)
    return linprog(cost, A_eq=np.array(rows), b_eq=right, bounds=(0, None)).fun


@pytest.mark.parametrize("seed", range(12))
def test_a_bet_on_any_fitted_potentials_gains_at_most_the_distance(seed):
    """E exp(λx − ψ(λ)x²) ≤ exp(λ ldCE), x the payoff of potentials fitted to another law."""
    rng = np.random.default_rng(seed)
    v = np.sort(rng.random(4))
    mass = rng.dirichlet(np.full(8, 0.7)).reshape(2, 4)
    other = rng.dirichlet(np.full(8, 0.7)).reshape(2, 4)
    distance = lower_distance_lp(v, *mass)
    for law in (mass, other):
        pair = streams.potentials.fit(v, *law).potentials
        payoff = np.concatenate(pair.at(v))
        assert (np.abs(payoff) <= 1).all()
        mean = (mass.ravel() * payoff).sum()
        assert mean <= distance + 1e-9
        for rate, cost in zip(mixtures.RATES, mixtures.COSTS, strict=True):
            wealth = (mass.ravel() * np.exp(rate * payoff - cost * payoff**2)).sum()
            assert math.log(wealth) <= rate * distance + 1e-9


def test_the_potentials_are_feasible_everywhere():
    rng = np.random.default_rng(0)
    u = np.linspace(0, 1, 5001)
    for _ in range(20):
        v = np.unique(rng.random(30))
        pair = streams.potentials.fit(v, rng.random(v.size) ** 4, rng.random(v.size) ** 4)
        r0, r1 = pair.potentials.at(u)
        assert ((1 - u) * r0 + u * r1 <= 0).all()
        assert (np.abs(np.diff(r0)) <= np.diff(u) + 1e-15).all()
        assert (np.abs(np.diff(r1)) <= np.diff(u) + 1e-15).all()


@pytest.mark.parametrize("bits", [3, 8, 14])
def test_payoffs_of_cells_are_at_most_those_of_rows(bits):
    rng = np.random.default_rng(bits)
    stream = Stream.empty(bits)
    first = Joint.from_arrays(rng.random(500) < 0.6, rng.random(500)).coarsen(bits)
    stream = stream.updated(first.grid, {}, by_batch=False)
    p = rng.random(400)
    y = (rng.random(400) < p**2).astype(int)
    bank = (stream.fit.potentials, stream.smooth)
    change = stream._sums(Joint.from_arrays(y, p).coarsen(bits).grid, bank, by_batch=False)
    gains, squares = change[streams.GAIN], change[streams.SQUARE]
    for k, pair in enumerate(bank):
        x = np.where(y == 1, pair.at(p)[1], pair.at(p)[0])
        assert gains[k] <= x.sum() + 1e-9
        assert squares[k] >= (x * x).sum() - 1e-9
        if bits == 14:
            assert gains[k] == pytest.approx(x.sum(), abs=0.02)
    assert gains[2] <= (y - p).sum() + 1e-9
    assert gains[3] <= (p - y).sum() + 1e-9
    assert squares[2] >= ((y - p) ** 2).sum()
    assert change[streams.SPREAD] >= ((y - p) ** 2).sum()


def test_the_mean_wealth_of_a_batch_is_at_most_what_its_distance_allows():
    """All labels of five rows, which are independent of each other and calibrated: ldCE is 0."""
    p = P[:5]
    past = Joint.from_arrays([0, 1, 1, 0, 1], [0.2, 0.3, 0.6, 0.7, 0.8]).coarsen(14)
    stream = Stream.empty(14).updated(past.grid, {}, by_batch=False)
    for tolerance in (1e-6, 0.01):
        found = 0.0
        for y, chance in label_vectors(p):
            batch = Joint.from_arrays(y, p).coarsen(14).grid
            after = stream.updated(batch, {}, by_batch=False)
            found += chance * math.exp(after.distance_values(tolerance)[-1])
        assert found <= 1


@pytest.mark.parametrize("square", [1.0, 30.0, 1e3, 1e5])
@pytest.mark.parametrize("level", [0.2, 0.05, 0.001])
def test_the_boundary_solves_its_equation(square, level):
    b = mixtures.boundary(square, level)
    weight = 1 / (2 + np.abs(np.arange(1, 29) / 2 - 4)) ** 2
    rate = 2.0 ** (-np.arange(1, 29) / 2)
    cost = -np.log(1 - rate) - rate
    logs = np.log(weight / weight.sum()) + rate * b - cost * square
    assert np.logaddexp.reduce(logs) == pytest.approx(-math.log(level), abs=1e-8)
    assert 2 < b / math.sqrt(square) < 12 or square < 100


def test_the_lower_end_is_where_the_bets_reach_their_threshold():
    gain, square = np.array([300.0, 290.0, 310.0, -310.0]), np.full(4, 900.0)
    low = mixtures.lower_end(gain, square, 5000.0, 0.05)
    rows = np.array([5000.0])
    assert mixtures.bank_values(gain, square, rows, low)[0] >= math.log(20)
    assert mixtures.bank_values(gain, square, rows, low + 1e-7)[0] < math.log(20)
    assert mixtures.lower_end(gain / 100, square, 5000.0, 0.05) == 0


# -- batches with a shared shock ---------------------------------------------------------------


def test_symmetric_sums_of_batches_have_mean_at_most_one():
    """Every sign of every batch, the sums of a batch changing sign together."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 30, (6, 3))
    found = []
    for signs in itertools.product((1, -1), repeat=6):
        signed = x * np.array(signs)[:, None]
        gain, square = signed.sum(axis=0)[None], (signed**2).sum(axis=0)[None]
        found.append(math.exp(mixtures.shock_values(gain, square, 200.0)[0]))
    assert 0.5 < np.mean(found) <= 1


def test_the_mean_payoff_of_a_batch_is_one_bounded_number():
    p = np.array([0.2, 0.7, 0.9])
    monitor = caldist.Monitor(tolerance=0.01, dependence="batches")
    monitor.update([0, 1, 1], p, batch=1)
    total = monitor._state.streams[0].total
    residual = (np.array([0, 1, 1]) - p).sum()
    assert total[streams.ROWS] == 1
    assert total[streams.GAIN][2] == pytest.approx(residual / 3, abs=1e-9)
    assert total[streams.SQUARE][2] >= (residual / 3) ** 2
    assert total[streams.SHOCK][0] == pytest.approx(residual, abs=1e-9)
    assert monitor.steps[-1].upper is None


# -- sub-groups ----------------------------------------------------------------------------------


@given(st.lists(st.floats(-5, 20), min_size=1, max_size=12), st.floats(0.01, 0.5))
def test_e_bh_is_the_largest_set_that_pays_for_itself(logs, rate):
    count, values = len(logs), sorted(map(math.exp, logs), reverse=True)
    most = max(
        (k for k in range(1, count + 1) if values[k - 1] * rate * k >= count * (1 + 1e-12)),
        default=0,
    )
    found = rejected(logs, rate)
    assert sum(found) >= most
    if sum(found):
        least = min(math.exp(x) for x, is_in in zip(logs, found, strict=True) if is_in)
        assert least * rate * sum(found) >= count * (1 - 1e-9)
        assert all(
            math.exp(x) <= least * (1 + 1e-9)
            for x, is_in in zip(logs, found, strict=True)
            if not is_in
        )


# -- what must fail ------------------------------------------------------------------------------


def false_alarms(monitor_of, streams_count=60, batch_count=12, rows=60, tolerance=None):
    rng = np.random.default_rng(5)
    count = 0
    for _ in range(streams_count):
        monitor = monitor_of()
        for batch in range(batch_count):
            p = rng.uniform(0.2, 0.8, rows)
            step = monitor.update((rng.random(rows) < p).astype(int), p, batch=batch)
        count += step.alarm
    return count / streams_count


class Peeking(Stream):
    """A mutant: the potentials of a batch are fitted to this batch."""

    def updated(self, grid, invalid, *, by_batch):
        after = super().updated(grid, invalid, by_batch=by_batch)
        counts = (np.asarray(part, float) for part in (grid.count0, grid.count1))
        best = streams.potentials.fit(grid.centres(), *counts).potentials
        total = self.total + self._sums(grid, (best, best), by_batch=by_batch)
        return Peeking(
            after.batches,
            total,
            after.start,
            after.windows,
            after.grid,
            {},
            after.recent,
            after.scale,
        )


@pytest.mark.slow
@compiled_only
def test_fitting_on_the_current_batch_gives_false_alarms(monkeypatch):
    def monitor():
        return caldist.Monitor(tolerance=0.001, false_alarm_rate=0.1)

    honest = false_alarms(monitor)
    monkeypatch.setattr("caldist.monitoring.monitor.Stream", Peeking)
    assert honest <= 0.1
    assert false_alarms(monitor) > 0.3


@pytest.mark.slow
@compiled_only
def test_choosing_the_best_expert_after_the_fact_gives_false_alarms(monkeypatch):
    def monitor():
        return caldist.Monitor(false_alarm_rate=0.1)

    honest = false_alarms(monitor)

    def best(stream, *, by_batch):
        window = stream.total[streams.EXPERTS] - stream.windows[:, streams.EXPERTS]
        return window[:, 640:].max(axis=1) + 3

    monkeypatch.setattr(Stream, "calibrated_values", best)
    assert honest <= 0.1
    assert false_alarms(monitor) > 0.3


@fewer
@given(st.integers(0, 2**32 - 1))
def test_weights_of_a_joint_are_scaled_without_looking_at_labels(seed):
    rng = np.random.default_rng(seed)
    p, w = rng.integers(0, 6, 20) / 5, rng.exponential(size=20)
    y = rng.integers(0, 2, 20)
    scales = set()
    for labels in (y, 1 - y, np.zeros(20, int)):
        joint = Joint.from_arrays(labels, p, sample_weight=w)
        [batch] = batches.read_batch(joint, None, None, None, None, (), 14)
        total = float(batch.grid.count0.sum() + batch.grid.count1.sum())
        scales.add(round(w.sum() / total, 9))
        assert w.max() <= w.sum() / total * (1 + 1e-9)
    assert len(scales) == 1
