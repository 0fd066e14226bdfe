"""net_benefit: dcurves' numbers, a count row by row, intervals, cells, refusals."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import optimize, stats

import caldist
from caldist import Joint
from caldist.clinical import net_benefit
from caldist.plots import DecisionCurveDisplay

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
        treated, odds = p >= t, t / (1 - t)
        gain = np.where(treated, np.where(y == 1, 1, -odds), 0)
        mean = share @ gain
        assert found.treated[k] == pytest.approx(share @ treated, abs=1e-12)
        assert found.model[k] == pytest.approx(mean, abs=1e-12)
        parts = np.bincount(group, share * (gain - mean))
        ends = [
            mean + sign * score_distance(parts @ parts, one_part, far)
            for sign, far, one_part in (
                (-1, mean + odds, size_of_a_part(share, gain, group, treated & (y == 0))),
                (1, 1 - mean, size_of_a_part(share, gain, group, treated & (y == 1))),
            )
        ]
        assert found.lower[k] == pytest.approx(ends[0], abs=1e-9)
        assert found.upper[k] == pytest.approx(ends[1], abs=1e-9)
    assert found.model[1] == pytest.approx(share @ y)
    assert found.treat_all[1] == pytest.approx(share @ y)
    assert found.treated[3] == found.model[3] == 0


def score_distance(variance, part, far, level=0.9):
    """Solve the score equation for the share of a benefit that lies ``far`` from the mean."""
    z = stats.norm.ppf((1 + level) / 2)

    def missed(share):
        spread = (1 - share) * variance / part + share * (1 - share) * far**2
        return (share * far) ** 2 - z**2 * part * spread

    return optimize.brentq(missed, 1e-12, 1, xtol=1e-15) * far


def size_of_a_part(share, gain, group, chosen):
    """Return 1/n: of rows by Kish; of clusters by the design effect, and whole ones if few."""
    rows = share @ share
    whole = np.bincount(group, share)
    some = np.bincount(group, share * chosen)
    some = some[some > 0]
    number = some.sum() ** 2 / (some @ some) if some.size else 0
    error = share * (gain - share @ gain)
    parts = np.bincount(group, error)
    effect = (parts @ parts) / (error @ error) if error.any() else 1
    return (number * min(effect * rows, whole @ whole) + whole @ whole) / (number + 1)


def test_the_interval_of_treating_all_at_threshold_0_is_wilsons():
    for ones, rows in ((0, 40), (1, 40), (7, 200), (200, 200), (99, 100)):
        y = np.arange(rows) < ones
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = net_benefit(y, np.full(rows, 0.5), thresholds=[0.0])
        ends = stats.binomtest(ones, rows).proportion_ci(0.95, "wilson")
        assert (found.lower[0], found.upper[0]) == pytest.approx((ends.low, ends.high), abs=1e-12)
        assert found.treated[0] == 1


@pytest.mark.parametrize("kind", ["rows", "weights", "clusters", "both"])
def test_intervals_hold_where_few_rows_are_treated(kind):
    """Calibrated Beta(0.5, 9.5) risks; at 0.4 nobody is treated in two thirds of the samples.

    Clusters are 200 patients with five rows of equal risk. Each end may miss in one of 40 samples.
    """
    times, at = 200, np.array([0.1, 0.3, 0.4])
    v = (np.arange(10**5) + 0.5) / 10**5
    v = stats.beta(0.5, 9.5).ppf(v)
    truth = np.array([np.where(v >= t, v - (1 - v) * t / (1 - t), 0).mean() for t in at])
    missed, nobody = np.zeros((2, 3)), 0
    for seed in range(times):
        rng, options = np.random.default_rng(seed), {}
        p = rng.beta(0.5, 9.5, 200)
        if kind in ("clusters", "both"):
            p, options["clusters"] = np.repeat(p, 5), np.repeat(np.arange(200), 5)
        if kind in ("weights", "both"):
            options["sample_weight"] = np.exp(rng.normal(size=p.size))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = net_benefit(rng.random(p.size) < p, p, thresholds=at, **options)
        missed += found.lower > truth, found.upper < truth
        nobody += found.treated[2] == 0
        odds = at / (1 - at)
        assert (-odds <= found.lower).all()
        assert (found.lower < found.model).all()
        assert (found.model < found.upper).all()
        assert (found.upper <= 1).all()
    assert nobody > times / 2
    assert missed.max() <= stats.binom.ppf(0.999, times, 0.025)


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
    head = ["threshold", "treated", "model", "95%", "interval", "treat", "all"]
    assert text.splitlines()[0].split() == head
    assert text.endswith("… and 10 more thresholds")
    frame = found.to_frame("polars")
    assert frame.columns == ["threshold", "treated", "model", "treat_all", "lower", "upper"]
    assert frame["model"].to_list() == found.model.tolist() == found.to_dict()["model"]
    assert caldist.clinical.net_benefit is net_benefit


def test_that_nobody_is_treated_is_said():
    y, p = sample()
    p = np.minimum(p, 0.4)
    found = net_benefit(y, p, thresholds=[0.4, 0.5])
    assert [line.split()[1] for line in str(found).splitlines()[1:]] != ["nobody"] * 2
    assert str(found).splitlines()[2].split()[1:3] == ["nobody", "0"]
    assert found.to_dict()["treated"][1] == 0
    assert found.lower[1] < 0 < found.upper[1]
    display = DecisionCurveDisplay.from_predictions(y, p, thresholds=[0.3, 0.5, 0.6], name="risk")
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "risk (treats nobody from 0.5 on)" in names
    assert display.models[0].treated.tolist()[1:] == [0, 0]
    assert display.to_frame("polars")["treated"].to_list()[1:] == [0, 0]
    plt.close(display.figure_)
