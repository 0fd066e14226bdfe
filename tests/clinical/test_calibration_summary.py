"""calibration_summary: published output of R packages, oracles, intervals, summaries, refusals."""

import math

import mpmath
import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit, logit

import caldist
from caldist import Joint
from caldist.clinical import calibration_summary
from caldist.clinical.loess import smoother_of
from caldist.clinical.logistic import Counts, score_test
from caldist.data.rows import Rows
from caldist.inference.sample import units_of
from r_random import calibration_curves_example, pmcalibration_example, rms_example

QUICK = {"n_resamples": 199, "rng": 0}
NAMES = ("intercept", "slope", "observed_over_expected", "ici", "e50", "e90", "emax")
CURVE = NAMES[3:]
EDGES = pytest.mark.filterwarnings("ignore:only .* fewer than 10:UserWarning")


def sample(n=800, seed=0, slope=1.3, shift=0.2):
    rng = np.random.default_rng(seed)
    f = rng.beta(1.5, 4, n)
    return (rng.random(n) < f).astype(int), expit(shift + slope * logit(f))


def curve(smoother, y, p):
    """The calibration curve at each row."""
    x, place = np.unique(p, return_inverse=True)
    mass = np.bincount(place) / p.size
    fit = smoother_of(smoother, x, mass, p.size)
    residual = np.bincount(place, y - p) / p.size
    return p + fit.curve((fit.functions(x) @ residual)[:, None], p)[:, 0]


# -- published output ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a1", "a3", "intercept", "slope", "chi_squared", "pvalue"),
    [
        # README of pmcalibration 0.2.0 (logistic_cal): estimate, lower and upper of each, the
        # likelihood ratio test of "weak calibration".
        (-1, 1, (-0.11, -0.27, 0.046), (1.06, 0.91, 1.22), 2.57, 0.28),
        # Vignette "external validation" of pmcalibration 0.1.0, which has no test.
        (-3, 0.3, (-0.044, -0.29, 0.19), (1.336, 1.10, 1.60), None, None),
    ],
)
def test_published_output_of_pmcalibration(a1, a3, intercept, slope, chi_squared, pvalue):
    found = calibration_summary(*pmcalibration_example(a1, a3), **QUICK)
    assert round(found.intercept.value, 3) == pytest.approx(intercept[0], abs=5e-3)
    assert round(found.slope.value, 3) == pytest.approx(slope[0], abs=5e-3)
    # Theirs are profile intervals, which suppose that the line is true; ours do not.
    for ours, theirs in ((found.intercept, intercept), (found.slope, slope)):
        assert (ours.lower, ours.upper) == pytest.approx(theirs[1:], abs=0.035)
    if chi_squared is not None:
        assert found.test.method == "likelihood ratio"
        assert round(found.test.statistic, 2) == chi_squared
        assert round(found.test.pvalue, 2) == pvalue


def test_published_output_of_val_prob():
    """README of pmcalibration 0.1.0: ``rms::val.prob(p = p, y = y)``, which smooths by lowess."""
    y, p = pmcalibration_example(-3, 0.3)
    found = calibration_summary(y, p, smoother="lowess", **QUICK)
    values = {
        "Brier": (0.057594793, caldist.brier_score(y, p)),
        "Slope": (1.336388397, found.slope.value),
        "Emax": (0.350214394, found.emax.value),
        "E90": (0.029680412, found.e90.value),
        "Eavg": (0.020095036, found.ici.value),
        "U:Chi-sq": (7.910945691, found.test.statistic),
        "U:p": (0.019149612, found.test.pvalue),
        # Theirs is that of the line with this slope; ours, in the large, that of slope 1.
        "Intercept": (0.528823286, Counts.of(Joint.from_arrays(y, p)).line()[0]),
    }
    for name, (printed, ours) in values.items():
        assert ours == pytest.approx(printed, abs=6e-10), name


def test_the_example_in_the_manual_of_val_prob():
    """Printed at stats.stackexchange.com/a/459526; lrm stopped at seven digits."""
    y, p = rms_example()
    assert Counts.of(Joint.from_arrays(y, p)).line() == pytest.approx(
        (0.05228721, 0.95651781), abs=5e-8
    )
    assert calibration_summary(y, p, **QUICK).slope.value == pytest.approx(0.95651781, abs=5e-8)


def test_published_output_of_calibration_curves():
    """Vignette of CalibrationCurves 2.0: ``val.prob.ci.2(pHat, yTest)``, which smooths by loess."""
    y, p = calibration_curves_example()
    found = calibration_summary(y, p, **QUICK)
    (a, b), grid = Counts.of(Joint.from_arrays(y, p)).line(), np.arange(1, 2000) / 2000
    values = {
        "Intercept": (0.22404680, found.intercept.value),
        "Slope": (0.82278297, found.slope.value),
        "Eavg": (0.04747448, found.ici.value),
        "U:Chi-sq": (8.43195136, found.test.statistic),
        "U:p": (0.01475792, found.test.pvalue),
        "Brier": (0.17703339, caldist.brier_score(y, p)),
        "Emax": (0.08288689, np.abs(expit(a + b * logit(grid)) - grid).max()),  # of the line
    }
    for name, (printed, ours) in values.items():
        assert ours == pytest.approx(printed, abs=6e-9), name
    at = np.sort(p)[:4]
    assert at == pytest.approx([0.00561, 0.00651, 0.00706, 0.01183], abs=6e-6)
    curve_there = curve("loess", y, p)[np.argsort(p)[:4]]
    assert curve_there == pytest.approx([0.0504, 0.0514, 0.0520, 0.0572], abs=6e-5)
    # Theirs suppose that the line is true; ours do not.
    assert (found.intercept.lower, found.intercept.upper) == pytest.approx(
        (0.00339, 0.4447), abs=0.015
    )
    assert (found.slope.lower, found.slope.upper) == pytest.approx((0.666, 0.980), abs=0.002)


# R's example(cars): dist against speed.
SPEED = np.repeat(
    [4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23, 24, 25],
    [2, 2, 1, 1, 3, 2, 4, 4, 4, 3, 2, 3, 4, 3, 5, 1, 1, 4, 1],
)
DIST = np.array(
    [
        2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26,
        36, 60, 80, 20, 26, 54, 32, 40, 32, 40, 50, 42, 56, 76, 84, 36, 46, 68, 32, 48,
        52, 56, 64, 66, 54, 70, 92, 93, 120, 85,
    ]
)  # fmt: skip


def test_loess_is_that_of_r():
    """``predict(loess(dist ~ speed, cars), data.frame(speed = 5:25))``, with ties and cells."""
    x, place = np.unique(SPEED.astype(float), return_inverse=True)
    fit = smoother_of("loess", x, np.bincount(place) / 50, 50)
    found = fit.curve((fit.functions(x) @ np.bincount(place, DIST / 50))[:, None], np.arange(5, 26))
    expected = [
        7.797353, 10.002308, 12.499786, 15.281082, 18.446568, 21.865315, 25.517015, 29.350386,
        33.230660, 37.167935, 41.205226, 45.055736, 48.355889, 49.824812, 51.986702, 56.461318,
        61.959729, 68.569313, 76.316068, 85.212121, 95.324047,
    ]  # fmt: skip
    np.testing.assert_allclose(found[:, 0], expected, atol=5e-7)


PINNED = {
    "loess": (0.051464192, 0.053408847, 0.089388436, 0.114408709),
    "lowess": (0.043913734, 0.043022938, 0.073118365, 0.145251139),
}


def test_curves_of_the_reference_implementations():
    """Values of scikit-misc 0.5.3, the Fortran behind R's loess, and of statsmodels' lowess."""
    y, p = pmcalibration_example(-1, 1)
    for smoother, expected in PINNED.items():
        distance = np.abs(curve(smoother, y, p) - p)
        ours = calibration_summary(y, p, smoother=smoother, **QUICK)
        assert [getattr(ours, name).value for name in CURVE] == pytest.approx(expected, abs=2e-7)
        assert ours.ici.value == pytest.approx(distance.mean(), rel=1e-12)
        assert ours.e50.value == pytest.approx(np.quantile(distance, 0.5), rel=1e-9)
        assert ours.e90.value == pytest.approx(np.quantile(distance, 0.9), rel=1e-9)
        assert ours.emax.value == pytest.approx(distance.max(), rel=1e-12)


# -- oracles ---------------------------------------------------------------------------------------


def test_intercept_and_slope_maximise_the_likelihood():
    y, p = sample()
    w = np.random.default_rng(1).random(y.size)
    x = logit(p)
    for weight in (np.ones_like(w), w):
        options = {"sample_weight": weight} if weight is w else {}

        def minus(theta, weight=weight):
            eta = theta[0] + theta[1] * x
            return float(weight @ (np.logaddexp(0, eta) - y * eta))

        best = optimize.minimize(
            minus,
            [0, 1],
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000},
        )
        found = calibration_summary(y, p, **options, **QUICK)
        assert found.slope.value == pytest.approx(best.x[1], abs=1e-6)
        assert found.intercept.value == pytest.approx(offset(y, x, weight), abs=1e-10)
        assert found.observed_over_expected.value == pytest.approx((weight @ y) / (weight @ p))
    ratio = 2 * (minus([0, 1], np.ones_like(w)) - minus(best_line(y, p), np.ones_like(w)))
    test = calibration_summary(y, p, **QUICK).test
    assert test.statistic == pytest.approx(ratio, rel=1e-9)
    assert test.pvalue == pytest.approx(stats.chi2.sf(ratio, 2), rel=1e-9)


def offset(y, x, weight):
    return optimize.brentq(lambda a: weight @ (y - expit(a + x)), -9, 9, xtol=1e-13)


def best_line(y, p):
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=math.inf, tol=1e-12, max_iter=1000).fit(logit(p)[:, None], y)
    return [model.intercept_[0], model.coef_[0, 0]]


def test_newton_in_many_digits_agrees_to_the_last():
    """A hard case: rare events, predictions down to 1e-9."""
    rng = np.random.default_rng(5)
    p = 10 ** rng.uniform(-9, -0.5, 300)
    y = (rng.random(300) < np.sqrt(p)).astype(int)
    found = calibration_summary(y, p, **QUICK)
    with mpmath.workdps(40):
        x = [mpmath.log(mpmath.mpf(v)) - mpmath.log1p(-mpmath.mpf(v)) for v in p.tolist()]

        def score(a, b):
            missed = [
                t - 1 / (1 + mpmath.exp(-a - b * u)) for t, u in zip(y.tolist(), x, strict=True)
            ]
            return mpmath.fsum(missed), mpmath.fdot(missed, x)

        _, b = mpmath.findroot(score, (0, found.slope.value))
    assert found.slope.value == pytest.approx(float(b), rel=1e-11)


def test_ends_of_intercept_slope_and_ratio_are_those_of_the_formulas():
    """The sandwich and the delta method, written row by row, for rows, weights and clusters."""
    y, p = sample(300)
    rng = np.random.default_rng(2)
    z = stats.norm.isf(0.025)
    x = np.column_stack((np.ones_like(p), logit(p)))
    for weight, group in (
        (np.ones(300), np.arange(300)),
        (rng.random(300), np.arange(300)),
        (np.ones(300), rng.integers(0, 60, 300)),
        (rng.random(300), rng.integers(0, 60, 300)),
    ):
        options = {"sample_weight": weight, "clusters": group}
        found = calibration_summary(y, p, **options, **QUICK)

        def ends(design, eta, weight=weight, group=group):
            f = expit(eta)
            score = design * (weight * (y - f))[:, None]
            sums = np.array([score[group == g].sum(axis=0) for g in np.unique(group)])
            bread = np.linalg.inv((design * (weight * f * (1 - f))[:, None]).T @ design)
            return z * np.sqrt(np.diag(bread @ (sums.T @ sums) @ bread))

        [a] = ends(x[:, :1], found.intercept.value + x[:, 1])
        assert found.intercept.upper - found.intercept.value == pytest.approx(a, rel=1e-9)
        slope = found.slope.value
        level = offset(y, slope * x[:, 1], weight)
        b = ends(x, level + slope * x[:, 1])[1]
        assert found.slope.value - found.slope.lower == pytest.approx(b, rel=1e-6)
        rate, mean = weight @ y / weight.sum(), weight @ p / weight.sum()
        part = weight * (y / rate - p / mean) / weight.sum()
        error = math.sqrt(sum(part[group == g].sum() ** 2 for g in np.unique(group)))
        ratio = found.observed_over_expected
        assert math.log(ratio.upper / ratio.value) == pytest.approx(z * error, rel=1e-9)
        assert math.log(ratio.value / ratio.lower) == pytest.approx(z * error, rel=1e-9)


def test_smoothers_reproduce_lines_and_do_not_care_how_mass_is_split():
    rng = np.random.default_rng(3)
    x = np.unique(np.round(rng.random(200), 3))
    mass = rng.integers(1, 4, x.size).astype(float)
    for name in ("loess", "lowess"):
        fit = smoother_of(name, x, mass / mass.sum(), int(mass.sum()))
        line = fit.curve((fit.functions(x) @ (mass / mass.sum() * (0.3 + 2 * x)))[:, None], x)
        np.testing.assert_allclose(line[:, 0], 0.3 + 2 * x, atol=1e-12)


# -- intervals -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("calibrated", [True, False])
def test_intervals_hold_the_population(calibrated):
    """At and away from calibration; a bootstrap's interval of the ICI never holds 0."""
    times, n, hits = 80, 200, dict.fromkeys(NAMES, 0)
    slope, shift = (1.0, 0.0) if calibrated else (1.6, 0.3)
    for seed in range(times):
        y, p = sample(n, seed, slope, shift)
        found = calibration_summary(y, p, n_resamples=99, rng=seed)
        truth = expit((logit(p) - shift) / slope)
        x = np.sort(p)
        fit = smoother_of("loess", x, np.full(n, 1 / n), n)
        e = np.abs(fit.curve((fit.functions(x) @ (truth[np.argsort(p)] - x) / n)[:, None], x)[:, 0])
        population = (
            offset(truth, logit(p), np.ones(n)),
            1 / slope,
            truth.mean() / p.mean(),
            e.mean(),
            *np.quantile(e, (0.5, 0.9)),
            e.max(),
        )
        for name, value in zip(NAMES, population, strict=True):
            part = getattr(found, name)
            hits[name] += part.lower - 1e-9 <= value <= part.upper + 1e-9
    least = stats.binom.ppf(0.001, times, 0.95)
    assert min(hits.values()) >= least, hits


def test_clusters_widen_intervals_and_weights_count():
    y, p = sample(400)
    twice = calibration_summary(
        np.repeat(y, 4), np.repeat(p, 4), clusters=np.repeat(np.arange(400), 4), **QUICK
    )
    once = calibration_summary(y, p, clusters=np.arange(400), **QUICK)
    for name in NAMES:
        a, b = getattr(twice, name), getattr(once, name)
        assert (a.value, a.lower, a.upper) == pytest.approx(
            (b.value, b.lower, b.upper), rel=0.02, abs=2e-3
        )
    repeated = calibration_summary(np.repeat(y, 4), np.repeat(p, 4), **QUICK)
    assert repeated.slope.upper - repeated.slope.lower < 0.6 * (once.slope.upper - once.slope.lower)
    assert once.test.method == "score"
    equal = calibration_summary(y, p, sample_weight=np.full(400, 3.0), **QUICK)
    alone = calibration_summary(y, p, **QUICK)
    for name in NAMES:
        a, b = getattr(equal, name), getattr(alone, name)
        assert (a.value, a.lower, a.upper) == pytest.approx((b.value, b.lower, b.upper), rel=1e-6)
    padded = calibration_summary([*y, 1], [*p, 0.999], sample_weight=[*np.ones(400), 0], **QUICK)
    assert padded.slope.value == pytest.approx(alone.slope.value)
    assert padded.emax.value == pytest.approx(alone.emax.value, rel=0.05)


def test_the_order_of_rows_and_the_frame_do_not_matter():
    y, p = sample(200)
    shuffled = np.random.default_rng(0).permutation(200)
    assert calibration_summary(y, p, **QUICK) == calibration_summary(
        y[shuffled], p[shuffled], **QUICK
    )


@pytest.mark.parametrize("kind", ["weights", "clusters", "both"])
def test_the_score_test_by_hand(kind):
    """The sum of residuals times (1, log odds), in units of its covariance if calibrated."""
    y, p = sample(200)
    p[:3], y[:3] = [0.0, 1.0, 0.0], [0, 1, 0]  # which came true, and say nothing
    rng, options = np.random.default_rng(2), {}
    if kind in ("weights", "both"):
        options["sample_weight"] = rng.random(200) + 0.1
    if kind in ("clusters", "both"):
        options["clusters"] = rng.integers(0, 60, 200)
    found = calibration_summary(y, p, **options, **QUICK).test
    assert found.method == "score"
    share = options.get("sample_weight", np.ones(200))
    share = share / share.sum()
    some = (p > 0) & (p < 1)
    x = np.stack((np.ones(some.sum()), logit(p[some])))
    each = x * (share * (y - p))[some]
    if kind == "weights":
        covariance = (x * (share**2 * p * (1 - p))[some]) @ x.T
    else:
        sums = np.stack([np.bincount(options["clusters"][some], row) for row in each])
        covariance = sums @ sums.T
    score = each.sum(axis=1)
    statistic = score @ np.linalg.inv(covariance) @ score
    assert found.statistic == pytest.approx(statistic, rel=1e-9)
    assert found.pvalue == pytest.approx(stats.chi2.sf(statistic, 2), rel=1e-9)


@pytest.mark.parametrize("kind", ["rows", "weights"])
@pytest.mark.parametrize("bits", [2, 5])
def test_ends_of_the_ratio_from_cells_by_hand(kind, bits):
    """The error of the mean prediction has that of rounding in it."""
    y, p = sample(200)
    p[0], y[0] = 1.0, 1  # which no cell moves
    weight = np.random.default_rng(4).random(200) + 0.1 if kind == "weights" else np.ones(200)
    given = weight if kind == "weights" else None
    joint = Joint.from_arrays(y, p, sample_weight=given).coarsen(bits)
    found = calibration_summary(joint, confidence_level=0.8, **QUICK).observed_over_expected
    cell = np.floor(p * 2**bits).astype(int)
    share = weight / weight.sum()
    centre = (np.bincount(cell, share * p) / np.maximum(np.bincount(cell, share), 1e-9))[cell]
    if kind == "rows":
        scatter = math.sqrt(np.mean((p - centre) ** 2) / 200)
    else:  # squares of shares times those of places are not known
        scatter = 2.0**-bits * math.sqrt(share @ share)
    mean, rate = share @ p, share @ y
    assert joint.grid.scatter == pytest.approx(scatter, rel=1e-6)
    units = units_of(Rows.of(joint))  # rows of equal weight that stand for those of each cell
    terms = units.label / rate - units.prediction[units.place] / mean
    terms = terms - units.mass @ terms
    error = math.sqrt(units.count @ (units.share * terms) ** 2)
    factor = math.exp(stats.norm.ppf(0.9) * (error + scatter / mean))
    assert found.lower == pytest.approx(rate / mean / factor, rel=1e-6)
    assert found.upper == pytest.approx(rate / mean * factor, rel=1e-6)


def test_the_score_test_keeps_its_level_with_clusters():
    times, rejected = 300, 0
    for seed in range(times):
        rng = np.random.default_rng(seed)
        p = np.repeat(rng.beta(2, 3, 60), 5)
        y = np.repeat(rng.random(60), 5) < p
        units = units_of(Rows.of(y, p, clusters=np.repeat(np.arange(60), 5)))
        rejected += stats.chi2.sf(score_test(units, logit(units.prediction)), 2) <= 0.1
    assert rejected <= stats.binom.ppf(0.999, times, 0.1)


@pytest.mark.parametrize("extra", [{}, {"clusters": True}, {"sample_weight": True}])
@pytest.mark.parametrize("width", [1e-4, 1e-7, 1e-9])
def test_a_slope_does_not_care_how_close_log_odds_lie(width, extra):
    """Slopes of ℓ = 1 + width·z are those of z, over width."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=300)
    y = rng.random(300) < 0.4
    given = {"clusters": rng.integers(0, 40, 300), "sample_weight": rng.random(300)}
    extra = {name: given[name] for name in extra}
    found = calibration_summary(y, expit(1 + width * z), **extra, **QUICK).slope
    wanted = calibration_summary(y, expit(z), **extra, **QUICK).slope
    for end in ("value", "lower", "upper"):
        assert getattr(found, end) * width == pytest.approx(
            getattr(wanted, end), rel=1e-5, abs=1e-6
        )


def test_log_odds_equal_to_the_last_digit_have_no_slope():
    p = np.array([1e-12, np.nextafter(1e-12, 1)])
    assert logit(p)[0] == logit(p)[1]
    with pytest.raises(ValueError, match="same value in every row"):
        calibration_summary([0, 0, 1, 1] * 10, np.tile(p, 20))


@pytest.mark.filterwarnings("ignore:only:UserWarning")
def test_one_cluster_is_refused():
    y, p = sample(200)
    with pytest.raises(ValueError, match="clusters has the same value in every row"):
        calibration_summary(y, p, clusters=["a"] * 200, **QUICK)


# -- summaries -------------------------------------------------------------------------------------


def test_a_joint_says_what_its_rows_say():
    y, p = sample(300)
    p = np.round(p, 2) * 0.98 + 0.01
    parts = [Joint.from_arrays(y[k::3], p[k::3]) for k in range(3)]
    assert calibration_summary(sum(parts), **QUICK) == calibration_summary(y, p, **QUICK)
    with pytest.raises(TypeError, match="which rows belong together"):
        calibration_summary(sum(parts), clusters=np.arange(300))


@pytest.mark.parametrize("bits", [6, 10, 16])
def test_ends_from_cells_contain_those_from_rows(bits):
    y, p = sample(1000)
    p = 0.02 + 0.96 * p
    of_rows = calibration_summary(y, p, **QUICK)
    joint = Joint.from_arrays(y, p).coarsen(bits)
    found = calibration_summary(joint, **QUICK)
    part, whole = found.observed_over_expected, of_rows.observed_over_expected
    assert part.lower <= whole.lower + 0.02 * (whole.value - whole.lower)
    assert part.upper >= whole.upper - 0.02 * (whole.upper - whole.value)
    for name in ("intercept", "slope"):
        part = getattr(found, name)
        assert part.value is None
        assert (part.lower, part.upper) == (-math.inf, math.inf)
        assert "log odds" in part.note
        assert "pass the rows, or a joint of exact predictions" in part.note
    for name in CURVE:
        part = getattr(found, name)
        assert (part.lower, part.upper) == (-math.inf, math.inf)
        assert "pass the rows" in part.note
        assert part.value == pytest.approx(getattr(of_rows, name).value, abs=3 / 2**bits)
    assert found.test.pvalue >= min(1, joint.grid.drawing_error)
    assert "No interval of ICI, E50, E90, Emax" in str(found)
    assert "No value of intercept (in the large), slope: log odds" in str(found)


def test_radii_without_cells_have_no_line_and_the_ratio_stays():
    y, p = sample(600)
    joint = Joint.from_arrays(y, p)
    loose = Joint.from_masses(joint.prediction, joint.mass0, joint.mass1, n_rows=600, radius=1e-4)
    found = calibration_summary(loose, **QUICK)
    for part in (found.slope, found.intercept):
        assert part.value is None
        assert (part.lower, part.upper) == (-math.inf, math.inf)
        assert str(part) == f"no value: {part.note}"
    whole = calibration_summary(y, p, **QUICK).observed_over_expected
    ratio = found.observed_over_expected
    assert ratio.value == pytest.approx(whole.value)
    assert ratio.lower < whole.lower < whole.upper < ratio.upper


# -- edges and refusals ----------------------------------------------------------------------------


def test_predictions_of_0_and_1_that_came_true_change_no_line():
    y, p = sample(300)
    padded = calibration_summary([*y, 0, 0, 1], [*p, 0, 0, 1], **QUICK)
    alone = calibration_summary(y, p, **QUICK)
    for name in ("intercept", "slope"):
        assert getattr(padded, name).value == pytest.approx(getattr(alone, name).value, rel=1e-9)
        assert getattr(padded, name).lower == pytest.approx(getattr(alone, name).lower, rel=1e-6)
    assert padded.test.statistic == pytest.approx(alone.test.statistic, rel=1e-9)
    assert padded.observed_over_expected.value == pytest.approx((y.sum() + 1) / (p.sum() + 1))


@EDGES
@pytest.mark.parametrize(
    ("y", "p", "words"),
    [
        ([0, 1, 0, 1], [0.1, 0.0, 0.4, 0.3], "exactly 0 in a row of label 1"),
        ([0, 1, 0, 1], [0.1, 0.5, 1.0, 0.3], "exactly 1 in a row of label 0"),
        ([0, 0, 0], [0.1, 0.2, 0.3], "no row of label 1"),
        ([1, 1, 1], [0.1, 0.2, 0.3], "no row of label 0"),
        ([0, 1, 0], [0.4, 0.4, 0.4], "same value in every row"),
        ([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4], "every row of label 1 is predicted above"),
        ([1, 1, 0, 0], [0.1, 0.2, 0.2, 0.4], "every row of label 1 is predicted below"),
    ],
)
def test_what_has_no_finite_intercept_or_slope_is_refused(y, p, words):
    with pytest.raises(ValueError, match=words):
        calibration_summary(y, p, **QUICK)


@EDGES
@pytest.mark.parametrize("smoother", ["loess", "lowess"])
def test_few_different_predictions(smoother):
    """Up to three, the curve goes through the rates; a heavy tie makes no error."""
    y = [0, 0, 1, 0, 1, 1, 0, 1, 1]
    found = calibration_summary(y, np.repeat([0.2, 0.5, 0.7], 3), smoother=smoother, **QUICK)
    assert found.ici.value == pytest.approx((2 / 15 + 1 / 6 + 1 / 30) * (1 / 3) + 0.0, abs=0.02)
    assert found.emax.value == pytest.approx(1 / 6)
    rng = np.random.default_rng(0)
    p = np.where(rng.random(200) < 0.85, 0.3, rng.choice([0.1, 0.2, 0.6, 0.8, 0.9], 200))
    found = calibration_summary(rng.random(200) < p, p, smoother=smoother, **QUICK)
    assert 0 <= found.ici.lower <= found.ici.value <= found.ici.upper < 0.3
    with pytest.raises(
        ValueError, match="smoother is 'spline': it must be one of 'loess', 'lowess'"
    ):
        calibration_summary(y, np.full(9, 0.5), smoother="spline")


def test_few_events_are_warned_of():
    y, p = sample(100)
    with pytest.warns(UserWarning, match="fewer than 10"):
        calibration_summary(np.r_[y[:40] * 0, 1, 1], np.r_[p[:40], 0.01, 0.9], **QUICK)


def test_what_it_looks_like():
    y, p = sample(500)
    found = calibration_summary(y, p, **QUICK)
    text = str(found)
    assert text.startswith(f"{found.rates}; 500 rows, ")
    assert "intercept (in the large)" in text
    assert "Cox's test of intercept 0 and slope 1: likelihood ratio statistic" in text
    content = found.to_dict()
    assert content["ici"]["value"] == found.ici.value
    assert content["test"]["df"] == 2
    frame = found.to_frame("polars")
    assert frame["measure"].to_list() == list(NAMES)
    assert frame.columns == ["measure", "value", "lower", "upper"]
    assert "<td>slope</td>" in found._repr_html_()
    assert str(found.slope).count(" to ") == 1


def test_large_supports_use_blocks():
    y, p = sample(34_000)
    found = calibration_summary(y, p, **QUICK)
    grouped = calibration_summary(y, p, clusters=np.arange(34_000), **QUICK)
    assert grouped.ici.value == pytest.approx(found.ici.value, rel=1e-9)
    assert found.emax.lower <= found.emax.value <= found.emax.upper
    assert caldist.clinical.calibration_summary is calibration_summary


def test_no_limit_leaves_what_is_possible():
    """With few rows at the largest predictions the band about the curve passes 1."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        v = rng.beta(0.5, 6, 300)
        found = calibration_summary(rng.random(300) < v, v, **QUICK)
        largest = np.maximum(v, 1 - v)
        assert found.emax.upper <= max(largest.max(), found.emax.value)
        assert found.e90.upper <= max(np.quantile(largest, 0.9), found.e90.value) + 1e-12
        assert found.ici.upper <= max(largest.mean(), found.ici.value)
        for part in (found.ici, found.e50, found.e90, found.emax):
            assert 0 <= part.lower <= part.value <= part.upper


def test_limits_of_frequencies_that_are_all_possible_are_not_cut():
    """On the middle of the scale the band stays inside, and nothing changes by the cut."""
    rng = np.random.default_rng(0)
    v = rng.uniform(0.3, 0.7, 2000)
    found = calibration_summary(rng.random(2000) < v, v, **QUICK)
    moved = calibration_summary(rng.random(2000) < v - 0.2, v, **QUICK)
    assert 0 < found.emax.upper < 0.3
    assert moved.ici.lower > 0.1
    assert moved.emax.upper < 0.5
