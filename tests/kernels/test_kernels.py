"""The compiled kernels and the same files as plain Python give the same numbers."""

import warnings

import numpy as np
import pytest

from caldist import Joint
from caldist.data import residuals, sorting
from caldist.data.residuals import Residuals
from caldist.data.rows import Rows
from caldist.data.sorting import sorting_order
from caldist.kernels import loader
from caldist.measures import _passes
from strategies import FAMILIES, family

compiled_only = pytest.mark.skipif(not loader.COMPILED, reason="kernels are not compiled")
EMPTY = np.empty(0)


def cases():
    for kind in FAMILIES:
        y, p = family(kind, 150, np.random.default_rng(4))
        joint = Joint.from_arrays(y, p)
        yield joint, joint.residual()


@compiled_only
def test_smooth():
    plain = loader.plain("smooth")
    for joint, c in cases():
        curves = np.empty(c.size), np.empty(c.size)
        values = [
            kernel.smooth_ce(joint.prediction, c, curve)
            for kernel, curve in zip((loader.smooth, plain), curves, strict=True)
        ]
        assert values[0] == values[1]
        assert np.array_equal(*curves)
        assert values[0] == loader.smooth.smooth_ce(joint.prediction, c, EMPTY)
        bounds = [k.smooth_ce_bound(joint.prediction, c) for k in (loader.smooth, plain)]
        assert bounds[0] == bounds[1]


def regressions():
    """Masses whose sums wander, rise, stay, repeat and turn back, at predictions near and far."""
    rng = np.random.default_rng(11)
    for joint, c in cases():
        yield joint.prediction, c
    for n in (2, 3, 40, 400):
        v = np.unique(rng.random(n) ** rng.choice([1, 6]))
        for c in (
            rng.normal(size=v.size), rng.choice([-1.0, 0.0, 1.0], v.size), np.ones(v.size),
            rng.normal(size=v.size) + 0.3, np.tile([1.0, -1.0], v.size)[: v.size],
            rng.standard_cauchy(v.size), np.zeros(v.size), -np.arange(v.size, dtype=float),
        ):  # fmt: skip
            yield v, c / max(np.abs(c).sum(), 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize(("rounds", "part"), [(1, 2), (2, 7), (4, 1000), (10, 3)])
def test_regressions_that_are_split_add_up(threads, rounds, part, monkeypatch):
    """For every level some best curve stays below it up to a step, and then above."""
    monkeypatch.setenv("CALDIST_NUM_THREADS", threads)
    for name, value in (
        ("_MANY", 0), ("_STEPS", 2), ("_ROUNDS", rounds), ("_CLIPPED", -1.0), ("_NOT_CLIPPED", 2.0),
    ):  # fmt: skip
        monkeypatch.setattr(_passes, name, value)
    monkeypatch.setattr(residuals, "_PART", part)
    for v, c in regressions():
        expected = loader.smooth.smooth_ce(v, c, EMPTY)
        assert _passes.smooth_ce(v, c) == pytest.approx(expected, rel=1e-13, abs=1e-15)


@compiled_only
def test_many_rows_are_passed_over_in_parts_and_as_a_whole():
    rng = np.random.default_rng(8)
    p = rng.random(300_000)
    for y in (rng.random(p.size) < p, rng.random(p.size) < p**2):
        joint = Joint.from_arrays(y, p)
        v, c, sums = joint.prediction, joint.residual(), joint.prefix_sums()
        np.testing.assert_allclose(sums[1:], np.cumsum(c), rtol=0, atol=1e-15)
        assert sums[0] == 0
        part = Residuals(v[:60_000], c[:60_000])  # one part: as if there were none
        assert np.array_equal(part.sums(), np.concatenate(([0.0], np.cumsum(part.mass))))
        with pytest.MonkeyPatch.context() as patch:
            for threads in ("1", "5"):
                patch.setenv("CALDIST_NUM_THREADS", threads)
                assert np.array_equal(joint.prefix_sums(), sums)
        rows = Rows.of(y, p)
        assert all(map(np.array_equal, rows.residuals, (v, c)))
        assert rows.residuals.absolute() == pytest.approx(np.abs(c).sum(), rel=1e-13)
        for found, whole in (
            (_passes.smooth_ce(v, c), loader.smooth.smooth_ce(v, c, EMPTY)),
            (_passes.laplace_squared(v, c, 0.2), loader.laplace.stretch(v, c, 0.2)[0]),
            (
                _passes.random_interval_ce(v, sums, 0.1),
                loader.shifts.random_interval_ce(v, sums, 0.1, 0, 2 * v.size),
            ),
        ):
            assert found == pytest.approx(whole, rel=1e-11)


@compiled_only
def test_parts_of_regressions():
    plain = loader.plain("smooth")
    for v, c in regressions():
        last = v.size - 1
        for levels in ((0.0, 0.1, 0.15, 0.2, 0.3), (0.0,) * 5, (-0.2, 0.0, 0.01, 0.05, 0.06)):
            for first in {0, last // 2}:
                steps = (v, c, first, last, 0.01, -1.0)
                found = []
                for kernel in (loader.smooth, plain):
                    out = np.empty(3), np.empty(3), np.empty(3), np.empty(3, dtype=np.int64)
                    inside = kernel.split(*steps, np.array(levels), *out)
                    cost = kernel.regress(*steps, levels[0], levels[-1])
                    found.append((inside, cost, *(part.tolist() for part in out)))
                assert found[0] == found[1]
                assert found[0][-1] == sorted(found[0][-1])  # a higher level is met later


@compiled_only
def test_samples_side_by_side():
    found = list(cases())
    v = np.concatenate([joint.prediction for joint, _ in found])
    c = np.concatenate([residual for _, residual in found])
    start = np.cumsum([0, *(c.size for _, c in found)])
    alone = [loader.smooth.smooth_ce(j.prediction, c, EMPTY) for j, c in found]
    labels = (c > 0).astype(np.uint8)
    for smooth, replicates in (
        (loader.smooth, loader.replicates),
        (loader.plain("smooth"), loader.plain("replicates")),
    ):
        each, ones = np.empty(len(found)), np.empty(len(found))
        smooth.smooth_ce_of_each(v, c, start, each)
        assert each.tolist() == alone
        replicates.count_ones(labels, start, ones)
        assert ones.tolist() == [float((part > 0).sum()) for _, part in found]


@pytest.mark.parametrize("plain", [False, True])
def test_potentials_between_nodes(plain):
    kernel = loader.plain("ladder") if plain else loader.ladder
    rng = np.random.default_rng(5)
    for nodes, points in ((2, 1), (2, 50), (40, 3), (40, 300)):
        u = np.unique(np.concatenate(([0.0, 1.0], rng.random(nodes - 2))))
        v = np.unique(np.concatenate((rng.random(points), u[: points // 2], [0.0, 1.0])))
        potentials, out = rng.normal(size=(2, u.size)), np.full((2, v.size), np.nan)
        kernel.interpolate(v, u, *potentials, *out)
        for r, found in zip(potentials, out, strict=True):
            assert found == pytest.approx(np.interp(v, u, r), abs=1e-14)


@pytest.mark.parametrize("plain", [False, True])
def test_increasing_vectors_are_merged(plain):
    kernel = loader.plain("support") if plain else loader.support
    rng = np.random.default_rng(3)
    for sizes in ((0, 0), (0, 3), (4, 0), (1, 1), (50, 80), (200, 7)):
        first, second = (np.unique(rng.integers(0, 100, size) / 100) for size in sizes)
        both, places = np.empty(first.size + second.size), []
        places = [np.empty(part.size, dtype=np.int64) for part in (first, second)]
        size = kernel.merge(first, second, both, *places)
        assert np.array_equal(both[:size], np.union1d(first, second))
        for part, place in zip((first, second), places, strict=True):
            assert np.array_equal(both[place], part)


def kernel_in_full(name, v, h):
    """Return the kernel and its two derivatives in the first argument, for all pairs."""
    apart = v[:, None] - v[None, :]
    x = apart / h
    if name == "laplace":
        value = np.exp(-np.abs(x))
        return value, -np.sign(apart) * value / h, (apart != 0) * value / h / h
    value = np.exp(-np.minimum(x * x, 1e3))
    return value, -2 * x * value / h, (4 * x * x - 2) * value / h / h


def squared_of(name):
    return _passes.laplace_squared if name == "laplace" else getattr(loader, name).squared


@pytest.mark.parametrize("h", [3.0, 0.05, 1e-4, 1e-300])
@pytest.mark.parametrize("points", [1, 2, 7, 1000])
def test_sums_over_stretches_add_up(h, points, monkeypatch):
    monkeypatch.setattr(residuals, "_PART", points)
    for joint, c in cases():
        v = joint.prediction
        with np.errstate(over="ignore"):
            expected = c @ np.exp(-np.abs(v[:, None] - v) / h) @ c
        error = 5e-15 * np.abs(c).sum() ** 2
        assert _passes.laplace_squared(v, c, h) == pytest.approx(expected, abs=error)


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("h", [3.0, 1.0, 0.1, 0.01, 1e-3, 1e-5])
def test_kernel_sums_are_the_double_sum(name, h):
    """In cells of many rows, of few and of one; with equal predictions too."""
    module = getattr(loader, name)
    for joint, residual in cases():
        size = np.abs(residual).sum()
        for times in (1, 3):
            v, c = np.repeat(joint.prediction, times), np.tile(residual / times, times)
            expected = [part @ c for part in kernel_in_full(name, v, h)]
            if times == 1:
                error = 5e-15 * size**2
                found = squared_of(name)(v, c, h)
                assert found == pytest.approx(c @ expected[0], abs=error)
            for room in range(1, 4):
                got = np.full((3, v.size), np.nan)
                module.sums(v, c, h, *(got[r] if r < room else EMPTY for r in range(3)))
                for r in range(room):
                    # A prediction of size 1 is known to 1e-16, and so to 1e-16/h bandwidths.
                    error = 5e-15 * (1 + 1 / h) * size / h**r
                    np.testing.assert_allclose(got[r], expected[r], rtol=1e-12, atol=error)


@compiled_only
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("h", [1.0, 0.05, 1e-5])
def test_kernel_sums(name, h):
    compiled, plain = getattr(loader, name), loader.plain(name)
    for joint, c in cases():
        sum_of = "stretch" if name == "laplace" else "squared"
        fast, slow = (getattr(k, sum_of)(joint.prediction, c, h) for k in (compiled, plain))
        assert fast == pytest.approx(slow, abs=1e-16, rel=1e-12)
        sums = np.empty((2, 3, c.size))
        for kernel, out in zip((compiled, plain), sums, strict=True):
            kernel.sums(joint.prediction, c, h, *out)
        for r in range(3):
            np.testing.assert_allclose(sums[0, r], sums[1, r], rtol=1e-12, atol=1e-15 / h**r)
        if name == "laplace":
            assert fast == slow
            assert np.array_equal(*sums)


@pytest.mark.slow
@compiled_only
@pytest.mark.parametrize("width", [1.0, 0.1, 1e-9])
def test_shifts(width):
    plain = loader.plain("shifts")
    for joint, _ in cases():
        sums = joint.prefix_sums()
        values = [
            kernel.random_interval_ce(joint.prediction, sums, width, 0, 2 * joint.prediction.size)
            for kernel in (loader.shifts, plain)
        ]
        assert values[0] == values[1]
        size = 2 * joint.prediction.size
        for cut in range(size + 1):
            parts = ((0, cut), (cut, size))
            value = sum(plain.random_interval_ce(joint.prediction, sums, width, *p) for p in parts)
            assert value == pytest.approx(values[0], rel=1e-13, abs=1e-16)


def hard_to_sort(n, rng):
    """Keys in parts of every size, and numbers of any order of magnitude."""
    yield rng.random(n)
    yield 10.0 ** -rng.uniform(0, 323, n)
    yield np.full(n, 0.25)
    yield np.repeat([1.0, 5e-324, 0.0], n)[:n]
    yield np.linspace(0, 1, n)
    yield np.linspace(1, 0, n)
    yield np.minimum(0.5 + np.arange(n)[::-1] * 2.0**-53, 1)
    yield np.concatenate((np.full(n - n // 3, 0.5), rng.random(n // 3)))
    # Each level of leading bits splits off one key alone.
    yield (2 ** (np.arange(n) % 62)).view(np.float64).clip(0, 1)
    yield np.repeat((2 ** np.arange(62)).view(np.float64).clip(0, 1), -(-n // 62))[:n]


@compiled_only
@pytest.mark.parametrize("n", [40, 500, 5000])
@pytest.mark.parametrize("threads", ["1", "2", "7"])
def test_rows_are_sorted_in_any_number_of_threads(n, threads, monkeypatch):
    monkeypatch.setenv("CALDIST_NUM_THREADS", threads)
    monkeypatch.setattr(sorting, "_ROWS_PER_THREAD", 10)
    monkeypatch.setattr(sorting, "_INTERRUPTIBLE", 1000)
    rng = np.random.default_rng(n)
    close = np.nextafter(0.3, 1) - 0.3
    others = [np.full(n, 0.3), 0.3 + close * rng.integers(0, 5, n)]  # in the first bits all equal
    mixed = [np.where(rng.random(n) < 0.1, -0.0 * part, part) for part in hard_to_sort(n, rng)]
    for p in (*mixed, *others):
        y = (rng.random(n) < 0.3).astype(np.uint8)
        found = sorting.sort_rows(y, p)
        v, place = np.unique(p + 0.0, return_inverse=True)
        assert np.array_equal(found["prediction"], v)
        assert not np.signbit(found["prediction"]).any()
        assert np.array_equal(found["mass1"], np.bincount(place, y, v.size))
        assert np.array_equal(found["mass0"], np.bincount(place, 1 - y, v.size))
        joint = Joint(**found)
        for label in (y, y.astype(np.int64), y.astype(np.float32), np.repeat(y, 2)[::2]):
            same = Rows.of(label, p).residuals
            assert all(map(np.array_equal, same, (joint.prediction, joint.residual())))
        for at, bad in ((0, np.nan), (n // 2, 1.5), (n - 1, -1e-9)):
            wrong = p.copy()
            wrong[at] = bad
            with pytest.raises(ValueError, match=rf"y_prob\[{at}\] is {bad}"):
                Rows.of(y, wrong).residuals  # noqa: B018 -- made when it is asked for
            wrong = y.astype(np.int64)
            wrong[at] = 2
            with pytest.raises(ValueError, match=rf"y_true\[{at}\] is 2"):
                Rows.of(wrong, p).residuals  # noqa: B018


@pytest.mark.parametrize("bad", [np.nan, 1.5, np.inf, -np.inf])
@pytest.mark.parametrize("sort", [sorting.sort_rows, sorting.sort_residuals])
def test_rows_that_change_after_they_were_checked_are_refused(sort, bad):
    p, y = np.random.default_rng(0).random(500), np.zeros(500, np.uint8)
    p[200] = bad
    with pytest.raises(RuntimeError, match="changed while it was read"):
        sort(y, p)


@pytest.mark.parametrize("n", [0, 1, 2, 17, 300, 5000])
def test_the_order_of_rows_is_that_of_numpy(n):
    rng = np.random.default_rng(n)
    for values in (*hard_to_sort(n, rng), rng.choice([0.0, -0.0, 0.5, 1.0, 1e-300], n)):
        assert np.array_equal(sorting_order(values), np.argsort(values, kind="stable"))


@compiled_only
def test_support():
    for kind in FAMILIES:
        rng = np.random.default_rng(9)
        y, p = family(kind, 100, rng)
        label, p = y.astype(np.uint8), np.ascontiguousarray(p)
        weight = rng.integers(0, 3, 100).astype(float)
        order = np.argsort(p, kind="stable")
        results = []
        for kernel in (loader.support, loader.plain("support")):
            key = np.sort(p.view(np.int64) << 1 | label)
            again = key.copy()
            out = [np.zeros(100) for _ in range(11)]
            n = kernel.list_keys(key, *out[1:3])
            out[0][:n] = key[:n].view(np.float64)
            residual, wanted = np.zeros(100), np.zeros(n)
            assert kernel.list_residuals(again, 100.0, residual) == n
            assert again[:n].tolist() == key[:n].tolist()
            kernel.residual_masses(*(column[:n] for column in out[:3]), 100.0, wanted)
            assert residual[:n].tolist() == wanted.tolist()
            running = np.empty(n)
            kernel.running_sums(wanted, 0.5, running)
            assert running.tolist() == (np.cumsum([0.5, *wanted])[1:]).tolist()
            assert kernel.total(wanted) == np.cumsum(wanted)[-1]
            masses = (weight * (1 - y), weight * y)
            none = (np.empty(0), np.empty(0))
            m = kernel.merge_weighted(order, p, *masses, *none, *out[3:6], *none)
            squares = (masses[0] ** 2, masses[1] ** 2)
            assert m == kernel.merge_weighted(order, p, *masses, *squares, *out[6:])
            assert out[6][:m].tolist() == out[3][:m].tolist()
            results.append(
                (
                    n,
                    m,
                    *(part[:n].tolist() for part in out[:3]),
                    *(part[:m].tolist() for part in out[3:]),
                )
            )
        assert results[0] == results[1]


@compiled_only
def test_experts_and_bets():
    """Sums of a batch, values of windows with small and large sums, both ends of a sequence."""
    from caldist.monitoring import experts, mixtures

    found = []
    for experts_kernel, bets in (
        (loader.experts, loader.bets),
        (loader.plain("experts"), loader.plain("bets")),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(experts, "kernel", experts_kernel)
            patch.setattr(mixtures, "kernel", bets)
            values = []
            for kind in FAMILIES:
                y, p = family(kind, 150, np.random.default_rng(4))
                sums = experts.batch_sums(Joint.from_arrays(y, p).coarsen(14).grid)
                values.append(sums)
                for times in (1.0, 40.0):
                    starts = np.outer([0.0, 0.5, 1.0], times * sums)
                    values.append(experts.window_values(times * sums, starts).ravel())
            gain, square = np.array([30.0, -5.0, 20.0, 3.0]), np.array([90.0, 80.0, 1.0, 0.0])
            values.append(mixtures.bank_values(gain, square, np.array([400.0]), 0.01))
            ends = [mixtures.lower_end(gain, square, 400.0, level) for level in (0.2, 1e-9)]
            ends += [mixtures.boundary(x, 0.05) for x in (0.0, 10.0, 1e6)]
            found.append(np.concatenate([*values, ends]))
    np.testing.assert_allclose(*found, rtol=1e-10, atol=1e-10)


def test_unknown_kernels_are_attribute_errors():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = loader.nonsense


def test_missing_extensions_warn_once_and_fall_back(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.delenv("CALDIST_PURE_PYTHON", raising=False)
    with monkeypatch.context() as patch:
        patch.setattr(loader, "import_module", missing)
        assert not loader._is_compiled()
    monkeypatch.setattr(loader, "COMPILED", False)
    for name in ("smooth", "support"):
        monkeypatch.delitem(vars(loader), name, raising=False)
    loader._warn_if_slow.cache_clear()
    with pytest.warns(RuntimeWarning, match="plain Python.*compiler") as caught:
        assert all((loader.smooth, loader.support))
    loader._warn_if_slow.cache_clear()
    assert not hasattr(loader.smooth, "__file__")  # the plain one
    assert len(caught) == 1


def test_the_environment_variable_is_silent(monkeypatch):
    monkeypatch.setenv("CALDIST_PURE_PYTHON", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not loader._is_compiled()
        loader._warn_if_slow.__wrapped__()
