"""net_benefit: dcurves' numbers, a count row by row, intervals, cells, refusals."""

import math

import numpy as np
import pytest
from scipy import stats

import caldist
from caldist import Joint, net_benefit

# The example of the R and Python packages dcurves (df_binary: 750 patients, 105 with cancer, model
# "cancerpredmarker"): patients without and with cancer from each threshold up to the next, the
# first from 0 on; and the column net_benefit of dcurves 1.1.7 at these thresholds.
THRESHOLDS = np.array([0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.75])
WITHOUT = [325, 127, 65, 30, 26, 36, 19, 15, 2]
WITH = [9, 9, 5, 7, 3, 15, 24, 21, 12]
DCURVES = [0.105544, 0.087407, 0.079216, 0.067333, 0.064, 0.050154, 0.021333, 0.008]
DCURVES_ALL = [0.094737, 0.044444, -0.011765, -0.075, -0.146667, -0.323077, -0.72, -2.44]


def sample(n=400, seed=0):
    rng = np.random.default_rng(seed)
    f = rng.beta(1, 3, n)
    return (rng.random(n) < f).astype(int), f**0.8


def test_the_published_example_of_dcurves():
    risk = np.append(0.0, THRESHOLDS)  # the least risk of each interval, which is treated
    joint = Joint.from_masses(risk, WITHOUT, WITH, n_rows=750)
    found = net_benefit(joint, thresholds=THRESHOLDS)
    np.testing.assert_allclose(found.model, DCURVES, atol=5e-7)
    np.testing.assert_allclose(found.treat_all, DCURVES_ALL, atol=5e-7)


@pytest.mark.parametrize("kind", ["rows", "weights", "clusters", "both"])
def test_values_and_ends_row_by_row(kind):
    y, p = sample(200)
    rng = np.random.default_rng(1)
    weight = rng.random(200) if kind in ("weights", "both") else np.ones(200)
    group = rng.integers(0, 50, 200) if kind in ("clusters", "both") else np.arange(200)
    options = {}
    if kind in ("weights", "both"):
        options["sample_weight"] = weight
    if kind in ("clusters", "both"):
        options["clusters"] = group
    at = [0.3, 0.0, p[7], 0.9999]
    found = net_benefit(y, p, thresholds=at, confidence_level=0.9, **options)
    assert found.threshold.tolist() == at
    share = weight / weight.sum()
    for k, t in enumerate(at):
        gain = np.where(p >= t, np.where(y == 1, 1, -t / (1 - t)), 0)
        mean = share @ gain
        parts = np.bincount(group, share * (gain - mean))
        error = stats.norm.ppf(0.95) * math.sqrt(parts @ parts)
        assert found.model[k] == pytest.approx(mean, abs=1e-12)
        assert found.lower[k] == pytest.approx(mean - error, abs=1e-12)
        assert found.upper[k] == pytest.approx(mean + error, abs=1e-12)
    assert found.model[1] == pytest.approx(share @ y)
    assert found.treat_all[1] == pytest.approx(share @ y)
    assert found.lower[3] == found.model[3] == found.upper[3] == 0


def test_intervals_hold_the_population():
    """P(v ≥ t, y = 1) − odds P(v ≥ t, y = 0) of uniform, calibrated predictions."""
    times, t, hits = 400, 0.4, 0
    truth = (1 - t**2) / 2 - t / (1 - t) * (1 - t) ** 2 / 2
    for seed in range(times):
        rng = np.random.default_rng(seed)
        p = rng.random(150)
        found = net_benefit(rng.random(150) < p, p, thresholds=[t], confidence_level=0.9)
        hits += found.lower[0] <= truth <= found.upper[0]
    assert stats.binom.ppf(0.001, times, 0.9) <= hits <= stats.binom.ppf(0.999, times, 0.9)


def test_a_joint_says_what_its_rows_say():
    y, p = sample()
    at = np.arange(0, 1, 0.1)
    of_rows = net_benefit(y, p, thresholds=at).to_dict()
    assert net_benefit(Joint.from_arrays(y, p), thresholds=at).to_dict() == of_rows


def test_ends_from_cells_contain_those_from_rows():
    y, p = sample(600)
    at = np.array([0.0, 0.1, 0.25, 0.3, 0.55, 0.9])
    rows = net_benefit(y, p, thresholds=at)
    for bits in (3, 6, 12):
        joint = Joint.from_arrays(y, p).coarsen(bits)
        found = net_benefit(joint, thresholds=at)
        assert (found.lower <= rows.lower + 0.02).all()
        assert (found.upper >= rows.upper - 0.02).all()
        assert found.model[2] == pytest.approx(rows.model[2], abs=1e-12)  # an edge of all grids
        assert found.upper[2] == pytest.approx(rows.upper[2], abs=1e-12)
        # All that rows of the cell can do, at worst and at best.
        cell = np.floor(p * 2**bits) == np.floor(0.3 * 2**bits)
        above = np.floor(p * 2**bits) > np.floor(0.3 * 2**bits)
        odds = 0.3 / 0.7
        sure = np.mean(np.where(above, np.where(y == 1, 1, -odds), 0))
        worst, best = (sure - odds * np.mean(cell & (y == 0)), sure + np.mean(cell & (y == 1)))
        assert found.lower[3] <= worst
        assert found.upper[3] >= best
        assert worst - 1e-12 <= rows.model[3] <= best + 1e-12


def test_what_is_refused():
    y, p = sample(50)
    for bad, words in (
        ([0.2, 1.0], r"thresholds\[1\] is 1.0: a threshold is at least 0 and below 1"),
        ([-0.1], r"thresholds\[0\] is -0.1"),
        ([float("nan")], r"thresholds\[0\] is nan"),
        ([], "thresholds is empty"),
    ):
        with pytest.raises(ValueError, match=words):
            net_benefit(y, p, thresholds=bad)
    with pytest.raises(TypeError, match="thresholds"):
        net_benefit(y, p)
    joint = Joint.from_masses([0.2, 0.6], [20, 20], [20, 20], n_rows=80, radius=0.01)
    with pytest.raises(ValueError, match=r"rounded by an unknown amount.*on a grid"):
        net_benefit(joint, thresholds=[0.5])
    with pytest.warns(UserWarning, match="fewer than 10"):
        net_benefit([0, 1], [0.2, 0.7], thresholds=[0.5])


def test_what_it_looks_like():
    y, p = sample()
    found = net_benefit(y, p, thresholds=np.arange(30) / 100)
    text = str(found)
    assert text.splitlines()[0].split() == ["threshold", "model", "95%", "interval", "treat", "all"]
    assert text.endswith("… and 10 more thresholds")
    frame = found.to_frame("polars")
    assert frame.columns == ["threshold", "model", "treat_all", "lower", "upper"]
    assert frame["model"].to_list() == found.model.tolist() == found.to_dict()["model"]
    assert caldist.net_benefit is net_benefit
