"""Quantiles behind the statement about a repair: the larger ones of signs and of drawn labels."""

import math

import numpy as np
import pytest

import caldist
from caldist.data.rows import Rows
from caldist.data.units import FLIPS, LABELS
from caldist.inference._dealing import ordered_units
from caldist.inference._limits import Limits
from caldist.inference._resampling import Resampler
from caldist.measures.lower_distance import noise_of_labels
from caldist.repairing._statement import _quantiles
from clustered_rows import bursts


def quantile(resampler, family, value, risk=0.1):
    """Return the (B + 1)(1 - risk/2)-th smallest of B values; B is 99."""
    return np.sort(resampler.run(value, family=family, size=1))[round(100 * (1 - risk / 2)) - 1]


@pytest.mark.parametrize("clusters", [None, 12, 40])
@pytest.mark.parametrize("seed", range(3))
def test_quantiles_of_noise(clusters, seed):
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
    moves = quantile(resampler, LABELS, lambda rng: noise_of_labels(units, units.draw(rng)))
    assert found[0] == pytest.approx(max(flips, drawn), abs=1e-12)
    signs = quantile(resampler, FLIPS, caldist.lower_distance.noise(units, -math.inf)[FLIPS])
    assert found[1] == pytest.approx(max(signs, moves), abs=1e-12)
