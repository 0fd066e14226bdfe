"""Fits of monotone maps against SciPy, scikit-learn and conditions of optimality; their tables."""

import math

import numpy as np
import pytest
from scipy.optimize import isotonic_regression, minimize
from sklearn.linear_model import LogisticRegression

import caldist
from caldist.data.rows import Rows
from caldist.inference.folds import ordered_units
from caldist.recalibration import _table
from caldist.recalibration._fits import (
    CELLS,
    COMPARED,
    Candidate,
    Counts,
    expit,
    fit_all,
    fit_base,
    likelihood,
    logarithms,
)
from caldist.recalibration._selection import CANDIDATES
from caldist.recalibration.recalibration import _table_of
from strategies import family

SLACKS = (1.2, 2.0, 6.0)


def counts(n=300, seed=0, power=2.0, decimals=None):
    rng = np.random.default_rng(seed)
    u = rng.random(n)
    p = u if decimals is None else np.round(u, decimals)
    return Counts.of(ordered_units(Rows.of((rng.random(n) < u**power).astype(int), p)))


def softened(rows):
    """Platt's targets, row by row."""
    ones, zeros = rows.ones.sum(), rows.zeros.sum()
    return rows.ones * (ones + 1) / (ones + 2) + rows.zeros / (zeros + 2)


def columns(base, rows):
    scale = fit_base(base, rows)
    soft = 0.5 / (rows.rows.sum() + 1)
    v = rows.prediction
    sharp = (min(soft, v[v > 0].min() / 2), min(soft, (1 - v[v < 1]).min() / 2))
    assert scale.margins == pytest.approx((soft, soft) if base == "soft" else sharp)
    low, high = logarithms(v, scale.margins)
    return scale, np.stack((low, high), axis=1)


# -- bases -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["sigmoid", "soft", "beta", "temperature"])
@pytest.mark.parametrize("seed", range(3))
def test_bases_are_logistic_regressions_of_the_same_targets(base, seed):
    rows = counts(seed=seed)
    scale, x = columns(base, rows)
    x = x if base == "beta" else x.sum(axis=1, keepdims=True)
    target = softened(rows)
    weight = np.concatenate((target, rows.rows - target))
    label = np.repeat([1, 0], target.size)
    peer = LogisticRegression(
        C=math.inf, tol=1e-12, max_iter=10_000, fit_intercept=base != "temperature"
    )
    peer.fit(np.concatenate((x, x)), label, sample_weight=weight)
    found = [scale.low, scale.high] if base == "beta" else [scale.low]
    np.testing.assert_allclose(found, peer.coef_[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scale.offset, np.atleast_1d(peer.intercept_)[0], atol=1e-4)
    theirs = x @ peer.coef_[0] + np.atleast_1d(peer.intercept_)[0]
    assert likelihood(scale(rows.prediction), rows) >= likelihood(theirs, rows) - 1e-9


def test_a_shift_makes_the_mean_right():
    rows = counts()
    scale, _ = columns("shift", rows)
    assert (scale.low, scale.high) == (1, 1)
    mean = float(rows.rows @ expit(scale(rows.prediction)))
    assert mean == pytest.approx(softened(rows).sum(), rel=1e-12)
    # Under-sampling of label 0 by a known factor is a known shift.
    rng = np.random.default_rng(1)
    p = rng.random(200_000) * 0.2
    y = rng.random(p.size) < p
    kept = y | (rng.random(p.size) < 0.1)
    sampled = (p / (p + 0.1 * (1 - p)))[kept]  # what a model learns from such rows
    found = caldist.recalibrate(y, p / (p + 0.1 * (1 - p)), family="shift", confidence_level=None)
    assert abs(found.map(sampled) - p[kept]).max() < 0.005


@pytest.mark.parametrize("seed", range(5))
def test_a_beta_map_never_falls_and_is_the_best_of_those(seed):
    rng = np.random.default_rng(seed)
    n = 60
    p = rng.random(n)
    rate = [p < 0.3, p > 0.7, (p - 0.5) ** 2 * 4, np.full(n, 0.5), 1 - p][seed]
    y = (rng.random(n) < rate).astype(int)
    rows = Counts.of(ordered_units(Rows.of(y, p)))
    scale, x = columns("beta", rows)
    assert scale.low >= 0
    assert scale.high >= 0

    def loss(theta):
        return -likelihood(x @ theta[:2] + theta[2], rows)

    best = min(
        minimize(loss, start, bounds=[(0, None), (0, None), (None, None)], method="L-BFGS-B").fun
        for start in ([1, 1, 0], [0, 0, 0], [0, 2, 0])
    )
    assert loss([scale.low, scale.high, scale.offset]) <= best + 1e-6


def test_each_end_has_a_margin_of_its_own():
    """An exact 1 is not far beyond 1 - 1e-16 because another score is 1e-100."""
    rng = np.random.default_rng(0)
    u = rng.random(2000)
    p = np.concatenate((u, [1e-100] * 20, [1.0] * 20, [1 - 2**-53] * 20))
    y = np.concatenate((rng.random(2000) < u, np.arange(60) % 4 > 0)).astype(int)
    for method in ("temperature", "beta"):
        table = caldist.recalibrate(y, p, family=method, confidence_level=None).map
        assert table(1.0) - table(1 - 2**-53) < 0.05


@pytest.mark.parametrize("scores", ["even", "extreme", "exact ends", "few values"])
def test_fits_that_start_where_others_end_are_those_that_start_anew(scores):
    """Naive Bayes has logits of hundreds, where another scale's numbers saturate everything."""
    rng = np.random.default_rng(7)
    u = rng.random(400)
    logit = np.log(u / (1 - u))
    p = {
        "even": u,
        "extreme": expit(60 * logit),
        "exact ends": np.clip(1.5 * u - 0.25, 0, 1),
        "few values": np.round(u, 1),
    }[scores]
    rows = Counts.of(ordered_units(Rows.of((rng.random(400) < u).astype(int), p)))
    together = fit_all(rows, CANDIDATES)
    compared = fit_all(rows, CANDIDATES, COMPARED)
    for fit, roughly in zip(together, compared, strict=True):
        alone = fit_all(rows, [fit.candidate])[0]
        if fit.candidate.base == "identity":
            continue
        own, anew, rough = (
            np.log(f / (1 - f)) for f in (g(rows.prediction) for g in (fit, alone, roughly))
        )
        best = likelihood(anew, rows)
        assert likelihood(own, rows) == pytest.approx(best, abs=1e-8), fit.candidate.name
        assert likelihood(rough, rows) == pytest.approx(best, abs=1e-4), fit.candidate.name


# -- windows ---------------------------------------------------------------------------------------


def window_loss(rows, node, slack):
    """Return the best negative likelihood that L-BFGS-B finds over the first value and the gaps."""
    step, target, size = np.diff(node), softened(rows), rows.rows

    def loss(theta):
        g = np.concatenate((theta[:1], theta[0] + np.cumsum(theta[1:])))
        excess = size * expit(g) - target
        tail = np.cumsum(excess[::-1])[::-1]
        return float(size @ np.logaddexp(0, g) - target @ g), np.concatenate((tail[:1], tail[1:]))

    bounds = [(None, None), *zip(step / slack, step * slack, strict=True)]
    start = np.concatenate((node[:1], step))
    options = {"maxiter": 20_000, "maxfun": 200_000, "ftol": 1e-15, "gtol": 1e-10}
    return minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options).fun


@pytest.mark.slow
@pytest.mark.parametrize("slack", SLACKS)
@pytest.mark.parametrize("base", ["soft", "beta"])
@pytest.mark.parametrize("seed", range(3))
def test_windows_are_at_least_as_good_as_a_general_solver(base, slack, seed):
    rows = counts(80, seed=seed, decimals=2 if seed == 2 else None)
    fit = fit_all(rows, [Candidate(base, slack)])[0]
    found = -likelihood(fit.value, rows)
    assert found <= window_loss(rows, fit.node, slack) + 1e-9
    step, base_step = np.diff(fit.value), np.diff(fit.node)
    assert (step >= base_step / slack * (1 - 1e-9) - 1e-12).all()
    assert (step <= base_step * slack * (1 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("slack", [*SLACKS, math.inf])
@pytest.mark.parametrize("seed", range(4))
def test_the_conditions_of_optimality_are_a_statement_about_calibration(slack, seed):
    """S_m = 0; S_i > 0 only at the lower slope, S_i < 0 only at the upper; smCE = Σ|S_i|Δκ_i.

    S_i are the sums of the first i residuals, here of Platt's targets.
    """
    rows = counts(500, seed=seed, power=(1, 2, 0.5, 4)[seed])
    fit = fit_all(rows, [Candidate("soft", slack)])[0]
    kappa, n = expit(fit.value), rows.rows.sum()
    residual = (softened(rows) - rows.rows * kappa) / n
    sums = np.cumsum(residual)
    assert abs(sums[-1]) < 1e-9
    step, base = np.diff(fit.value), np.diff(fit.node)
    lower, upper = (base / slack, base * slack) if slack < math.inf else (0 * base, base + math.inf)
    tolerance = 1e-7 * np.maximum(base, 1e-3)
    assert (sums[:-1][step > lower + tolerance] < 1e-7).all()
    assert (sums[:-1][step < upper - tolerance] > -1e-7).all()
    target = softened(rows)
    joint = caldist.Joint.from_masses(kappa, rows.rows - target, target)
    stated = float((np.abs(sums[:-1]) * np.diff(kappa)).sum())
    assert caldist.smooth_ce(joint) == pytest.approx(stated, abs=1e-8)


def test_slack_1_is_the_base_and_infinite_slack_is_isotonic_regression():
    rows = counts()
    base, nearly, free = fit_all(
        rows, [Candidate("soft"), Candidate("soft", 1 + 1e-12), Candidate("soft", math.inf)]
    )
    v = np.linspace(0, 1, 501)
    np.testing.assert_allclose(nearly(v), base(v), atol=1e-9)
    expected = isotonic_regression(softened(rows) / rows.rows, weights=rows.rows).x
    np.testing.assert_allclose(free(rows.prediction), expected, atol=1e-12)


def test_more_slack_fits_better():
    rows = counts(400, power=3)
    fits = fit_all(rows, [Candidate("beta", slack) for slack in (1.0, 1.2, 1.5, 2.0, 3.0, 6.0)])
    found = [likelihood(np.log(k) - np.log1p(-k), rows) for k in (f(rows.prediction) for f in fits)]
    assert (np.diff(found) >= -1e-9).all()


def test_fits_on_cells_are_near_those_on_all_predictions():
    rng = np.random.default_rng(0)
    u = rng.random(60_000)
    rows = Counts.of(ordered_units(Rows.of((rng.random(u.size) < u**1.5).astype(int), u)))
    merged = rows.merged(rows.cells(CELLS))
    assert merged.prediction.size <= CELLS
    assert (np.diff(merged.prediction) > 0).all()
    assert merged.rows.sum() == pytest.approx(u.size)
    v = np.linspace(0.001, 0.999, 999)
    for candidate in (Candidate("beta"), Candidate("soft", 2.0)):
        whole, cells = (fit_all(part, [candidate])[0](v) for part in (rows, merged))
        assert abs(whole - cells).max() < 2e-3


# -- tables ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["beta2.0", "beta0.5", "one sided", "extreme", "tied"])
@pytest.mark.parametrize(
    "candidate",
    [Candidate("temperature"), Candidate("sigmoid"), Candidate("soft"), Candidate("beta"),
     Candidate("shift"), Candidate("soft", 2.0), Candidate("beta", 6.0)],
    ids=lambda candidate: candidate.name,
)  # fmt: skip
def test_tables_are_within_one_percent(name, candidate, monkeypatch):
    """|table − κ| ≤ 1% of κ(1 − κ), everywhere."""
    monkeypatch.setattr(_table, "KNOTS", 100_000)
    rng = np.random.default_rng(3)
    y, p = family(name, 600, rng)
    rows = Counts.of(ordered_units(Rows.of(y, p)))
    fit = fit_all(rows, [candidate])[0]
    table = caldist.recalibration.CalibrationMap(*_table_of(fit))
    near = 10.0 ** rng.uniform(-12, 0, 5000)
    v = np.concatenate((rng.random(5000), near, 1 - near, rows.prediction))
    kappa = fit(v)
    assert (abs(table(v) - kappa) <= 0.01 * kappa * (1 - kappa) + 1e-14).all()
    assert table.is_strict
    assert (table.x[0], table.x[-1]) == (0, 1)


@pytest.mark.parametrize("most", [2, 3, 8, 64])
@pytest.mark.parametrize("method", ["beta", "monotone", "isotonic", "auto"])
def test_tables_have_no_more_knots_than_they_may(most, method, monkeypatch):
    monkeypatch.setattr(_table, "KNOTS", most)
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    y = rng.random(3000) < np.where(p < 0.5, 0.2, 0.8)
    found = caldist.recalibrate(y, p, family=method, confidence_level=None, rng=0)
    assert 2 <= found.map.x.size <= most
    assert found.map.is_strict or method == "isotonic" or found.family == "isotonic"


def test_ties_at_the_ends_of_a_table_are_dropped():
    x = np.linspace(0, 1, 101)
    knots, values = _table.tabulate(lambda v: np.clip(3 * v - 1, 0, 1), x, strict=True)
    assert (np.diff(values) > 0).all()
    assert knots[-1] == 1
    assert values[0] > 0
    assert values[-1] < 1
