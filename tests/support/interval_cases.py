"""Measures that have an interval, rows to make one of, and a quick way to make it."""

import numpy as np
import pytest

import caldist
from caldist.inference import confidence_interval
from caldist.kernels import loader
from caldist.measures import polynomials

FUNCTIONS = polynomials(2)
MEASURES = [
    caldist.smooth_ce,
    caldist.kernel_ce,
    caldist.kernel_ce.using(kernel="gaussian", bandwidth=0.5),
    caldist.random_interval_ce.using(width=0.2),
    caldist.weighted_ce.using(functions=FUNCTIONS),
    caldist.surrogate_interval_ce,
    caldist.lower_distance.using(tol=1e-5 if loader.COMPILED else 1e-3),
    caldist.interval_ce,
    caldist.brier_score,
]
few_rows = pytest.mark.filterwarnings("ignore:only .* fewer than 10:UserWarning")


def rows(n=120, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    f = rng.random(n)
    return (rng.random(n) < f).astype(int), f**power


def interval(y, p, measure="smooth_ce", **options):
    return confidence_interval(y, p, measure=measure, **{"n_resamples": 99, "rng": 0, **options})
