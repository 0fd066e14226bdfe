"""Sums over rows as they come: values, order, types, errors; nothing is sorted or copied."""

import math
import subprocess
import sys
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import caldist
from caldist import Joint
from caldist.data import joint as joint_module
from caldist.data import rows as rows_module
from caldist.data import validate
from caldist.kernels import loader
from strategies import FAMILIES, family

EDGES = [0.0, 0.1, 0.11, 0.5, 1.0]
SUMS = {
    str(measure): measure
    for measure in (
        caldist.brier_score,
        caldist.log_loss,
        caldist.measures.normalized_cross_entropy,
        caldist.binned_ece,
        caldist.binned_ece.using(edges=EDGES, add_width=True),
        caldist.measures.soft_binned_ece,
        caldist.measures.kernel_smoothed_ece,
    )
}
EACH = pytest.mark.parametrize("measure", SUMS.values(), ids=SUMS)
compiled_only = pytest.mark.skipif(not loader.COMPILED, reason="kernels are not compiled")


def rows(n=1300, seed=0):
    rng = np.random.default_rng(seed)
    p = np.concatenate((rng.random(n // 2), np.round(rng.beta(0.3, 0.3, n - n // 2), 2)))
    p = rng.permutation(np.clip(p, 0.01, 0.99))
    return (rng.random(n) < p**1.3).astype(np.int64), p


@EACH
def test_every_order_and_every_joint_gives_the_same_value(measure):
    rng = np.random.default_rng(1)
    for n in (2, 5, 513, 3000, 40_000):
        y, p = rows(n, n)
        p[: n // 4] = rng.choice([2.0**-53, 1e-300, 0.3, 0.3125], n // 4)
        y[:2] = 0, 1
        value, order = pytest.approx(measure(y, p), rel=1e-14), rng.permutation(n)
        assert measure(y[order], p[order]) == value
        half = n // 2
        parts = [Joint.from_arrays(y[part], p[part]) for part in (slice(half), slice(half, None))]
        assert measure(parts[0] + parts[1]) == value


@EACH
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int32, np.int64, np.uint64, float])
def test_labels_of_every_type(measure, dtype):
    y, p = rows(700)
    assert measure(y.astype(dtype), p) == measure(y, p)
    assert measure(np.repeat(y.astype(dtype), 3)[::3], p[::-1][::-1]) == measure(y, p)


@EACH
def test_predictions_and_weights_of_every_type(measure):
    y, p = rows(700)
    single = p.astype(np.float32)
    assert measure(y.astype(np.float32), single) == measure(y, single.astype(float))
    assert measure(y, np.repeat(single, 2)[::2]) == measure(y, single.astype(float))
    assert measure(y.tolist(), p.tolist()) == measure(y, p)
    assert measure(pd.Series(y), pl.Series(p)) == measure(y, p)
    swapped = p.astype(p.dtype.newbyteorder())
    assert measure(y.astype(">i8"), swapped) == measure(y, p)
    weight = np.arange(700) % 5
    expected = measure(y, p, sample_weight=weight.astype(float))
    assert measure(y, p, sample_weight=weight.astype(np.int32)) == expected
    assert measure(y, p, sample_weight=np.repeat(weight, 2)[::2]) == expected
    repeated = measure(np.repeat(y, weight), np.repeat(p, weight))
    assert expected == pytest.approx(repeated, rel=1e-12)
    packed = np.zeros(700, dtype=[("pad", "i1"), ("p", "f8")])
    packed["p"] = p
    assert measure(y, packed["p"]) == measure(y, p)


@pytest.mark.parametrize("n", [1, 2, 7, 600])
def test_sums_are_those_of_fractions(n):
    y, p = rows(n, 3)
    squares = sum(Fraction(float((a - b) * (a - b))) for a, b in zip(y, p, strict=True))
    assert caldist.brier_score(y, p) == pytest.approx(float(squares) / n, rel=1e-14)
    place = np.minimum((p * 20).astype(int), 19)
    place -= place / 20 > p
    place += (place + 1) / 20 <= p
    gaps = [abs(sum(Fraction(float(d)) for d in (y - p)[place == k]) / n) for k in range(20)]
    assert caldist.binned_ece(y, p) == pytest.approx(float(sum(gaps)), rel=1e-14)
    losses = -math.fsum(math.log(b) if a else math.log1p(-b) for a, b in zip(y, p, strict=True))
    assert caldist.log_loss(y, p) == pytest.approx(losses / n, rel=1e-14)


@pytest.mark.parametrize(
    "p",
    [5e-324, 1e-300, 2.0**-1022, 1e-17, 2.0**-54, 0.1, 0.5, 0.7071065902709961, 0.7071067811865476,
     0.75, 1 - 1e-9, 1 - 2.0**-53],
)  # fmt: skip
def test_logarithms_are_right_to_the_last_digit(p):
    """Of any size, near 0 and near 1, alone and with weights; the C library's differ by system."""
    for q in (p, math.nextafter(p, 0), math.nextafter(p, 1)):
        losses = -math.log(q) if q > 0 else math.inf, -math.log1p(-q) if q < 1 else math.inf
        for y, expected in zip((1, 0), losses, strict=True):
            assert caldist.log_loss([y], [q]) == pytest.approx(expected, rel=2.3e-16)
            weighted = caldist.log_loss([y, y], [q, q], sample_weight=[0.1, 0.2])
            assert weighted == pytest.approx(expected, rel=5e-16)


def test_tiny_gaps_keep_their_digits():
    """Alone and beside others, in any order."""
    rng = np.random.default_rng(5)
    p = np.concatenate((10.0 ** -rng.uniform(0, 30, 900), 1 - 10.0 ** -rng.uniform(1, 15, 300)))
    for y, v in ((np.zeros(900), p[:900]), (np.ones(300), p[900:]), (np.zeros(90), p[:90] / 1e9)):
        exact = abs(sum(Fraction(b) - int(a) for a, b in zip(y, v.tolist(), strict=True))) / y.size
        for n_bins in (1, 7, 200):
            for order in (np.arange(y.size), np.argsort(v), rng.permutation(y.size)):
                value = caldist.binned_ece(y, v[order], n_bins=n_bins)
                assert value == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("n_bins", [3, 10, 49, 128, 129])
def test_rows_at_the_edges_of_bins_are_in_the_right_one(n_bins):
    edges = np.arange(n_bins + 1) / n_bins
    p = np.concatenate((edges, np.nextafter(edges, 0), np.nextafter(edges, 1))).clip(0, 1)
    place = np.minimum(np.searchsorted(edges, p, side="right") - 1, n_bins - 1)
    y = place % 2
    gap = [abs(math.fsum((y - p)[place == k].tolist())) for k in range(n_bins)]
    expected = pytest.approx(math.fsum(gap) / p.size, rel=1e-15)
    assert caldist.binned_ece(y, p, n_bins=n_bins) == expected
    assert caldist.binned_ece(y, p, edges=edges) == expected


def test_many_equal_terms_lose_no_digits():
    n = 1_000_000
    y, p = np.zeros(n, bool), np.full(n, 0.1)
    assert caldist.brier_score(y, p) == pytest.approx(0.1 * 0.1, rel=1e-14)
    assert caldist.binned_ece(y, p) == pytest.approx(0.1, rel=1e-14)
    assert caldist.log_loss(y, p) == pytest.approx(-math.log1p(-0.1), rel=1e-14)
    assert caldist.measures.soft_binned_ece(y, p) == pytest.approx(0.1, rel=1e-14)
    assert caldist.measures.kernel_smoothed_ece(y, p) == pytest.approx(0.1, rel=1e-13)


@EACH
@pytest.mark.parametrize("at", [0, 2**14 - 1, 2**14, 19_999])
def test_what_is_wrong_is_said_as_everywhere(measure, at):
    y, p = rows(20_000)
    weight = np.ones(y.size)
    for column, value in (
        (0, 2), (0, -1), (0, math.nan), (0, 0.5), (1, -1e-300), (1, 1 + 2**-52), (1, math.nan),
        (1, math.inf), (2, -1), (2, math.nan), (2, math.inf),
    ):  # fmt: skip
        columns = [y.astype(float), p.copy(), weight.copy()]
        columns[column][at] = value
        with pytest.raises(ValueError, match=rf"\[{at}\]") as said:
            measure(columns[0], columns[1], sample_weight=columns[2])
        with pytest.raises(ValueError, match=rf"\[{at}\]") as expected:
            validate.binary_inputs(*columns)
        assert str(said.value) == str(expected.value)


@EACH
def test_the_first_thing_that_is_wrong_is_said(measure):
    with pytest.raises(ValueError, match=r"y_true\[1\] is 3"):
        measure([0, 3], [0.5, 2.0, 0.25], sample_weight="text")
    with pytest.raises(ValueError, match="y_true has 2 values and y_prob has 3"):
        measure([0, 1], [0.5, 0.25, 0.25])
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is 0"):
        measure([0, 1], [0.5, 0.25], sample_weight=[0, 0])


def test_rows_are_said_to_be_wrong_before_edges():
    with pytest.raises(ValueError, match=r"y_prob\[0\] is 2"):
        caldist.binned_ece([0, 1], [2.0, 0.5], edges=[1.0, 0.0])
    with pytest.raises(ValueError, match=r"edges\[1\] is 0.0"):
        caldist.binned_ece([0, 1], [0.25, 0.5], edges=[1.0, 0.0])


@EACH
def test_nothing_is_sorted(measure, monkeypatch):
    def refuse(*_args, **_options):
        raise AssertionError

    for module, name in (
        (joint_module, "sort_rows"),
        (rows_module, "sorting_order"),
        (rows_module, "sort_residuals"),
    ):
        monkeypatch.setattr(module, name, refuse)
    y, p = rows()
    weight = np.linspace(1, 2, y.size)
    assert measure(y, p) > 0
    assert measure(y, p, sample_weight=weight) > 0


@EACH
def test_nothing_is_copied(measure):
    y, p = rows(400_000)
    measure(y, p)
    tracemalloc.start()
    measure(y, p)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < p.nbytes / 2


@compiled_only
def test_both_kernels_of_crossings_agree():
    rng = np.random.default_rng(0)
    for _ in range(20):
        value, slope = rng.normal(size=(2, 60))
        primitive = np.cumsum(value)
        found = [
            kernels.absolute_integral(primitive, value, slope)
            for kernels in (loader.crossings, loader.plain("crossings"))
        ]
        assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_smece_from_rows_is_that_of_sorted_predictions():
    """The accuracy that is stated, against the path that sorts."""
    from caldist.measures.kernel_smoothed_ece import _of_sorted

    for kind in FAMILIES:
        for n in (30, 400, 5000 if loader.COMPILED else 400):
            y, p = family(kind, n, np.random.default_rng(n))
            expected = _of_sorted(Joint.from_arrays(y, p))
            assert caldist.measures.kernel_smoothed_ece(y, p) == pytest.approx(
                expected, rel=1e-10, abs=1e-13
            )


def test_smece_imports_no_scipy():
    code = (
        "import sys, caldist; caldist.measures.kernel_smoothed_ece([0, 1, 1], [0.2, 0.4, 0.7]); "
        "caldist.brier_score([0, 1], [0.2, 0.7]); assert 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
