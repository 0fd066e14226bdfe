"""Where predictions are too high or too low: error rate, direction, and degenerate data."""

import numpy as np
import pytest

from caldist.data.rows import Rows
from caldist.inference._grid import cells_of_equal_mass
from caldist.inference.regions import _BINS, _scores, miscalibrated_regions
from caldist.inference.sample import units_of


def calibrated(rng, n):
    prediction = rng.beta(0.5, 0.5, n)
    return rng.random(n) < prediction, prediction


def test_a_calibrated_model_has_no_region_as_often_as_promised():
    rng = np.random.default_rng(0)
    runs, level = 150, 0.9
    hits = sum(
        bool(
            miscalibrated_regions(
                *calibrated(rng, 300), confidence_level=level, n_resamples=99, rng=seed
            )
        )
        for seed in range(runs)
    )
    assert hits / runs <= 1 - level + 3 * np.sqrt(level * (1 - level) / runs)


def test_weights_keep_the_error_rate_where_positives_are_rare():
    """One label among many small predictions is far more likely than a normal law says."""
    rng = np.random.default_rng(6)
    runs, n, level, hits = 100, 600, 0.9, 0
    for seed in range(runs):
        prediction = rng.uniform(0, 0.02, n)
        label, weight = rng.random(n) < prediction, 0.5 + rng.random(n)
        options = {"sample_weight": weight, "confidence_level": level, "n_resamples": 99}
        hits += bool(miscalibrated_regions(label, prediction, rng=seed, **options))
    assert hits / runs <= 1 - level + 3 * np.sqrt(level * (1 - level) / runs)


def test_rows_without_weight_do_not_count():
    label, prediction = calibrated(np.random.default_rng(7), 400)
    padded = np.append(~label, [True, False]), np.append(prediction, [0.0, 1.0])
    weight, cluster = np.append(np.full(400, 2.0), [0.0, 0.0]), np.arange(402)
    for groups in (None, cluster):
        found = miscalibrated_regions(*padded, sample_weight=weight, clusters=groups, rng=0)
        alone = miscalibrated_regions(
            ~label,
            prediction,
            sample_weight=weight[:400],
            clusters=None if groups is None else groups[:400],
            rng=0,
        )
        assert found != []
        assert [(region.lower, region.upper) for region in found] == [
            (region.lower, region.upper) for region in alone
        ]


def test_many_draws_are_made_in_blocks(monkeypatch):
    label, prediction = calibrated(np.random.default_rng(8), 300)
    whole = miscalibrated_regions(~label, prediction, n_resamples=199, rng=0)
    monkeypatch.setattr("caldist.inference.regions._BLOCK", 7)
    assert miscalibrated_regions(~label, prediction, n_resamples=199, rng=0) == whole != []


def test_clusters_count_as_one():
    """Rows of a cluster share their noise: independent draws would call it miscalibration."""
    rng = np.random.default_rng(1)
    found = {"clusters": 0, "independent": 0}
    for seed in range(60):
        prediction = rng.random(60)
        label = rng.random(60) < prediction
        rows = {"y_true": np.repeat(label, 10), "y_prob": np.repeat(prediction, 10)}
        groups = np.repeat(np.arange(60), 10)
        options = {"confidence_level": 0.9, "n_resamples": 99, "rng": seed}
        found["clusters"] += bool(miscalibrated_regions(**rows, clusters=groups, **options))
        found["independent"] += bool(miscalibrated_regions(**rows, **options))
    assert found["clusters"] <= 15
    assert found["independent"] >= 45


@pytest.mark.parametrize("weighted", [False, True])
def test_a_shift_in_a_range_is_found_there_with_its_sign(weighted):
    rng = np.random.default_rng(2)
    prediction = rng.random(4000)
    truth = np.where((prediction > 0.2) & (prediction < 0.5), prediction + 0.2, prediction)
    weight = rng.random(4000) if weighted else None
    label = rng.random(4000) < truth
    [region] = miscalibrated_regions(label, prediction, sample_weight=weight, rng=0)
    assert not region.too_high
    assert region.lower == pytest.approx(0.2, abs=0.04)
    assert region.upper == pytest.approx(0.5, abs=0.04)
    inside = (prediction >= region.lower) & (prediction <= region.upper)
    gap = np.average(
        (label - prediction)[inside], weights=None if weight is None else weight[inside]
    )
    assert region.gap == pytest.approx(gap)
    share = inside.mean() if weight is None else weight[inside].sum() / weight.sum()
    assert region.share == pytest.approx(share)


def test_scores_are_standardised_sums_of_every_interval():
    rng = np.random.default_rng(3)
    sums, root = rng.normal(size=(2, 5)), rng.normal(size=(5, 5))
    covariance = root @ root.T
    found = _scores(sums, covariance)
    for first in range(5):
        for last in range(first + 1, 6):
            inside = np.zeros(5)
            inside[first:last] = 1
            expected = np.abs(sums @ inside) / np.sqrt(inside @ covariance @ inside)
            np.testing.assert_allclose(found[:, first, last], expected)


def test_bins_keep_equal_predictions_together_and_have_no_gaps():
    rng = np.random.default_rng(4)
    prediction = np.round(rng.beta(0.2, 0.2, 1000), 2)
    units = units_of(Rows.of(np.zeros(1000), prediction))
    bin_of = cells_of_equal_mass(units, _BINS)
    assert bin_of.size == units.prediction.size  # equal predictions are one
    assert set(bin_of) == set(range(bin_of.max() + 1))
    assert (np.diff(bin_of) >= 0).all()
    assert bin_of.max() < 32


def test_an_impossible_label_is_found_and_a_certain_one_is_not():
    assert list(miscalibrated_regions([0, 0, 1], [0.0, 0.0, 1.0], rng=0)) == []
    [region] = miscalibrated_regions([0, 1, 1], [0.0, 0.0, 1.0], rng=0)
    assert (region.lower, region.upper, region.gap) == (0.0, 0.0, 0.5)


@pytest.mark.parametrize("rows", [([1], [0.5]), ([0, 1], [0.5, 0.5]), ([1, 1], [0.2, 0.3])])
def test_a_few_rows_show_nothing(rows):
    assert list(miscalibrated_regions(*rows, rng=0)) == []


def test_the_same_seed_gives_the_same_regions():
    label, prediction = calibrated(np.random.default_rng(5), 500)
    runs = [miscalibrated_regions(~label, prediction, rng=7) for _ in range(2)]
    assert runs[0] == runs[1] != []


def test_too_few_resamples_for_the_level_is_an_error_that_says_how_many():
    with pytest.raises(ValueError, match=r"n_resamples is 9: .* at least 19"):
        miscalibrated_regions([0, 1], [0.2, 0.8], n_resamples=9)


def test_clusters_have_labels_of_any_kind_and_none_is_missing():
    label, prediction = calibrated(np.random.default_rng(9), 300)
    names = [k // 3 if k < 150 else f"n{k // 3}" for k in range(300)]
    found = miscalibrated_regions(~label, prediction, clusters=names, rng=0)
    numbers = np.arange(300) // 3
    assert found == miscalibrated_regions(~label, prediction, clusters=numbers, rng=0) != []
    for missing in (None, float("nan")):
        with pytest.raises(ValueError, match=rf"clusters\[1\] is {missing}"):
            miscalibrated_regions([0, 1], [0.2, 0.8], clusters=["a", missing])


def test_groups_of_another_length_are_refused():
    with pytest.raises(ValueError, match="clusters has 3 values and y_prob has 2"):
        miscalibrated_regions([0, 1], [0.2, 0.8], clusters=[1, 2, 3])
