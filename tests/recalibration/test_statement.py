"""What the statement about a recalibration is made from: noise, changes of losses, cells."""

import math
from statistics import NormalDist

import numpy as np
import pytest

import caldist
from caldist.data.rows import Rows
from caldist.inference.folds import ordered_units
from caldist.inference.limits import Limits
from caldist.inference.noise import noise_of, noise_of_labels
from caldist.inference.resampling import Resampler
from caldist.inference.sample import FLIPS, LABELS, units_of
from caldist.recalibration._fits import Counts
from caldist.recalibration.statement import _quantiles, losses
from clustered_rows import bursts


def quantile(resampler, family, value, risk=0.1):
    """Return the (B + 1)(1 - risk/2)-th smallest of B values; B is 99."""
    return np.sort(resampler.run(value, family=family, size=1))[round(100 * (1 - risk / 2)) - 1]


@pytest.mark.parametrize("clusters", [None, 12, 40])
@pytest.mark.parametrize("seed", range(3))
def test_quantiles_of_noise(clusters, seed):
    """Each is the larger one of signs and of drawn labels."""
    rng = np.random.default_rng(seed)
    y, v, cluster = bursts(rng, clusters or 20, 0.5, rate=0.3)
    units = ordered_units(Rows.of(y, v, clusters=None if clusters is None else cluster))
    resampler = Resampler.of(seed, n_resamples=99)
    norm = caldist.smooth_ce.norm(units.prediction)
    found = _quantiles(Limits(units, 0.1, resampler, "resampling"), norm)
    assert units.draws_labels
    flips, drawn = (
        quantile(resampler, family, lambda rng, draw=draw: norm(draw(rng)))
        for family, draw in ((FLIPS, units.flip), (LABELS, units.draw))
    )
    moves = quantile(
        resampler,
        LABELS,
        lambda rng: noise_of_labels(caldist.lower_distance, units, units.draw(rng)),
    )
    assert found[0] == pytest.approx(max(flips, drawn), abs=1e-12)
    signs = quantile(resampler, FLIPS, noise_of(caldist.lower_distance, units, -math.inf)[FLIPS])
    assert found[1] == pytest.approx(max(signs, moves), abs=1e-12)


@pytest.mark.parametrize("weight", [None, [1.0, 2, 1, 3]])
def test_changes_of_losses(weight):
    y, v, after = np.array([1, 0, 1, 0]), np.array([0.3, 0.4, 0.6, 0.8]), [0.4, 0.4, 0.9, 0.5]
    share = np.full(4, 0.25) if weight is None else np.array(weight) / 7
    units, mapped = units_of(Rows.of(y, v, sample_weight=weight)), dict(zip(v, after, strict=True))
    found = losses(units, np.array([mapped[p] for p in units.prediction[units.place]]), 0.1)
    old, new = ([(y - p) ** 2, -np.log(np.where(y, p, 1 - p))] for p in (v, np.array(after)))
    for change, one, other in zip(found.values(), old, new, strict=True):
        assert (change.before, change.after) == pytest.approx((share @ one, share @ other))
        mean = share @ (other - one)
        error = math.sqrt(share**2 @ (other - one - mean) ** 2) * NormalDist().inv_cdf(0.95)
        ends = (change.change, change.lower, change.upper)
        assert ends == pytest.approx((mean, mean - error, mean + error))


def test_a_loss_that_becomes_infinite_and_one_that_stays_so():
    units = units_of(Rows.of([0, 1], [0.6, 0.8]))
    broken = losses(units, 1.0 - units.label, 0.1)["log_loss"]
    assert (broken.change, broken.lower, broken.upper) == (math.inf, math.inf, math.inf)
    units = units_of(Rows.of([0, 1], [0.0, 0.0]))
    kept = losses(units, np.zeros(2), 0.1)["log_loss"]
    assert (kept.before, kept.after, kept.change, kept.upper) == (math.inf, math.inf, 0, 0)


@pytest.mark.parametrize(
    ("most", "expected"), [(5, [0, 1, 2, 3]), (4, [0, 1, 2, 3]), (2, [0, 1, 1, 1])]
)
def test_as_many_cells_as_predictions_are_the_predictions(most, expected):
    counts = Counts(np.array([0.1, 0.2, 0.3, 0.4]), np.array([99.0, 0, 0, 0]), np.ones(4))
    assert counts.cells(most).tolist() == expected
