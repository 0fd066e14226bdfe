"""calibration_curve and the norms of binned_ece: scikit-learn's numbers, intervals, joints."""

import numpy as np
import pytest
from scipy import stats
from sklearn.calibration import calibration_curve as peers_curve

import caldist
from caldist import Joint
from caldist.clinical import calibration_curve


def sample(n=500, seed=0, digits=None):
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 2, n)
    p = p if digits is None else np.round(p, digits)
    return (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("n_bins", [1, 3, 10, 64])
@pytest.mark.parametrize("digits", [None, 1, 2])
def test_scikit_learn_s_numbers_to_the_bit(strategy, n_bins, digits):
    """With ties on the edges too: 0.1, 0.2, … in bins of width 0.1."""
    y, p = sample(digits=digits)
    found = calibration_curve(y, p, n_bins=n_bins, strategy=strategy)
    true, predicted = peers_curve(y, p, n_bins=n_bins, strategy=strategy)
    assert found.prob_true.tolist() == true.tolist()
    assert found.prob_pred.tolist() == predicted.tolist()
    assert found.count.sum() == 500
    joint = calibration_curve(Joint.from_arrays(y, p), n_bins=n_bins, strategy=strategy)
    np.testing.assert_allclose(joint.prob_true, true, rtol=1e-12)
    np.testing.assert_allclose(joint.prob_pred, predicted, rtol=1e-12)
    assert joint.count.tolist() == found.count.tolist()
    np.testing.assert_allclose(joint.lower, found.lower, atol=1e-12)


def test_weights_count_and_equal_ones_do_not():
    y, p = sample()
    plain = calibration_curve(y, p)
    equal = calibration_curve(y, p, sample_weight=np.full(500, 2.0))
    for name in ("prob_true", "prob_pred", "count", "lower", "upper"):
        np.testing.assert_allclose(getattr(equal, name), getattr(plain, name), rtol=1e-9)
    repeated = np.random.default_rng(1).integers(0, 4, 500)
    found = calibration_curve(y, p, sample_weight=repeated, n_bins=5)
    rows = calibration_curve(np.repeat(y, repeated), np.repeat(p, repeated), n_bins=5)
    np.testing.assert_allclose(found.prob_true, rows.prob_true)
    np.testing.assert_allclose(found.prob_pred, rows.prob_pred)
    assert (found.upper - found.lower > rows.upper - rows.lower).all()  # weights are not rows
    assert found.count.sum() == np.count_nonzero(repeated)


def test_the_interval_is_wilson_s_and_clusters_widen_it():
    y, p = sample()
    found = calibration_curve(y, p, n_bins=4, confidence_level=0.9)
    for k, ones in enumerate(np.rint(found.prob_true * found.count).astype(int)):
        wilson = stats.binomtest(int(ones), int(found.count[k])).proportion_ci(0.9, "wilson")
        assert (found.lower[k], found.upper[k]) == pytest.approx(wilson, abs=1e-9)
    group = np.repeat(np.arange(500), 5)
    alone = calibration_curve(y[group], p[group], n_bins=4)
    together = calibration_curve(y[group], p[group], n_bins=4, clusters=group)
    once = calibration_curve(y, p, n_bins=4)
    np.testing.assert_allclose(together.upper, once.upper, atol=1e-9)
    assert (alone.upper - alone.lower < 0.6 * (together.upper - together.lower)).all()


def test_intervals_hold_the_population():
    times, hits = 300, 0
    for seed in range(times):
        rng = np.random.default_rng(seed)
        p = np.repeat([0.1, 0.3, 0.8], 40)
        found = calibration_curve(rng.random(120) < p, p, n_bins=4)
        hits += int(((found.lower <= [0.1, 0.3, 0.8]) & ([0.1, 0.3, 0.8] <= found.upper)).sum())
    assert hits >= stats.binom.ppf(0.001, 3 * times, 0.94)


def test_cells_are_put_into_bins_as_wholes():
    y, p = sample(2000)
    found = calibration_curve(Joint.from_arrays(y, p).coarsen(12), n_bins=7)
    rows = calibration_curve(y, p, n_bins=7)
    np.testing.assert_allclose(found.prob_pred, rows.prob_pred, atol=1e-3)
    np.testing.assert_allclose(found.prob_true, rows.prob_true, atol=1e-2)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_norms_of_the_binned_error(strategy):
    """The formulas of scikit-learn's calibration_error (pull request 34261), bin by bin."""
    y, p = sample()
    w = np.random.default_rng(1).random(500)
    edges = np.arange(9) / 8
    if strategy == "quantile":
        # Equal masses are those of binned_ece itself: compare on its bins, given as edges.
        edges = np.concatenate(([0.0], np.quantile(p, np.arange(1, 8) / 8), [1.0]))
    inside = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, 7)
    mass = np.bincount(inside, w, 8)
    distance = np.abs(np.bincount(inside, w * y, 8) - np.bincount(inside, w * p, 8)) / mass
    options = {"edges": edges, "sample_weight": w}
    assert caldist.binned_ece(y, p, **options) == pytest.approx(mass @ distance / mass.sum())
    root = np.sqrt(mass @ distance**2 / mass.sum())
    assert caldist.binned_ece(y, p, norm=2, **options) == pytest.approx(root)
    assert caldist.binned_ece(y, p, norm="max", **options) == pytest.approx(distance.max())
    one, two, most = (
        caldist.binned_ece(y, p, n_bins=8, strategy=strategy, norm=k) for k in (1, 2, "max")
    )
    assert one <= two <= most
    # The examples of the pull request's predecessor: half of each bin off by a quarter.
    y, p = [0] * 4 + [1] * 4, [0.25] * 4 + [0.75] * 4
    assert [caldist.binned_ece(y, p, n_bins=5, norm=k) for k in (1, 2, "max")] == [0.25] * 3


def test_what_it_looks_like():
    found = calibration_curve(*sample())
    assert str(found).splitlines()[0].split()[:4] == ["bin", "rows", "predicted", "observed"]
    frame = found.to_frame("polars")
    assert frame["prob_true"].to_list() == found.prob_true.tolist()
    assert found.to_dict()["count"] == found.count.tolist()
