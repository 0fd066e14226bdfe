"""Comparisons of independent samples: the formulas by hand, over all signs of all rows."""

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest

import caldist
from caldist.inference.sample import Units
from caldist.measures import polynomials

few_rows = pytest.mark.filterwarnings("ignore:only .* fewer than 10:UserWarning")


def samples(seed, *sizes):
    """Return labels and predictions of samples, all predictions different and in order."""
    rng = np.random.default_rng(seed)
    v = [np.sort(rng.random(n)) for n in sizes]
    return [((rng.random(p.size) < np.sqrt(p)).astype(int), p) for p in v]


def mean(x):
    """Return a sample's mean, its standard error, and the largest share of one row in it."""
    return x.mean(), math.sqrt(((x - x.mean()) ** 2).sum()) / x.size, np.abs(x).max() / x.size


def margin(one, other, delta):
    """Return how far the difference of two means may lie below its expectation."""
    error, largest = math.hypot(one[1], other[1]), max(one[2], other[2])
    return NormalDist().inv_cdf(1 - delta) * error + math.log(1 / delta) * largest / 3


def norm(v, e):
    return max(abs(float(e @ v**k)) for k in range(3))


def witness(v, e, at):
    sums = [float(e @ v**k) for k in range(3)]
    best = int(np.argmax(np.abs(sums)))
    return np.sign(sums[best]) * at**best


@few_rows
@pytest.mark.parametrize("sizes", [(5, 4), (3, 6)])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_a_norm_over_all_signs(seed, sizes, level, monkeypatch):
    (y, a), (z, b) = samples(seed, *sizes)
    signs = list(itertools.product((-1, 1), repeat=sum(sizes)))
    source = (np.array(part) for one in signs for part in (one[: a.size], one[a.size :]))
    monkeypatch.setattr(Units, "flip", lambda units, rng: next(source) * units.residual)
    found = caldist.compare(
        caldist.Joint.from_arrays(y, a), caldist.Joint.from_arrays(z, b),
        measure=caldist.weighted_ce.using(functions=polynomials(2)),
        confidence_level=level, n_resamples=len(signs),
    )  # fmt: skip
    ea, eb = (y - a) / a.size, (z - b) / b.size
    difference = norm(a, ea) - norm(b, eb)
    wa, wb = witness(a, ea, a), witness(b, eb, b)
    down, up = [], []
    for one in signs:
        s, t = np.array(one[: a.size]), np.array(one[a.size :])
        down.append(norm(a, s * ea) - (t * eb) @ wb)
        up.append(norm(b, t * eb) - (s * ea) @ wa)
    part = (1 - level) / 3
    rank = math.ceil((len(signs) + 1) * (1 - part) - 1e-9) - 1
    both, change = np.concatenate((a, b)), np.concatenate((ea, -eb))
    most = norm(both, change) + margin(
        mean((y - a) * witness(both, change, a)), mean((z - b) * witness(both, change, b)), part
    )
    lower = max(difference - max(0, sorted(down)[rank]), -most)
    upper = min(difference + max(0, sorted(up)[rank]), most)
    excess = down if difference > 0 else up
    beyond = sum(one >= abs(difference) - 1e-13 for one in excess)
    pvalue = min(1.0, 3 * (1 + beyond) / (1 + len(signs)))
    got = (found.difference, found.lower, found.upper, found.pvalue)
    assert got == pytest.approx((difference, lower, upper, pvalue), abs=1e-12)


@few_rows
@pytest.mark.parametrize("sizes", [(40, 40), (15, 60)])
def test_a_mean(sizes):
    (y, a), (z, b) = samples(0, *sizes)
    joints = caldist.Joint.from_arrays(y, a), caldist.Joint.from_arrays(z, b)
    one, other = mean((y - a) ** 2), mean((z - b) ** 2)
    difference = one[0] - other[0]
    for level in (0.8, 0.95):
        away = margin(one, other, (1 - level) / 2)
        found = caldist.compare(*joints, measure="brier_score", confidence_level=level)
        ends = (found.difference, found.lower, found.upper)
        expected = (difference, difference - away, difference + away)
        assert ends == pytest.approx(expected, abs=1e-14)
        assert margin(one, other, found.pvalue / 2) == pytest.approx(abs(difference), abs=1e-9)
