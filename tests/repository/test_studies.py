"""The studies: the truths they compare with, the harness, and their results reduced."""

from __future__ import annotations

import math
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import dblquad, quad

import oracles
from caldist import Joint, smooth_ce
from caldist.kernels import loader

ROOT = Path(__file__).resolve().parents[2]
SETS = 60 if loader.COMPILED else 6

pytestmark = pytest.mark.skipif(
    not (ROOT / "studies").is_dir(), reason="the studies are not part of an installation"
)


@pytest.fixture
def studies(monkeypatch):
    """Return a function that imports a module of the studies."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    return lambda name: import_module(f"studies.{name}")


# -- the truths ----------------------------------------------------------------------------------


def test_laws_are_what_they_say(studies):
    laws = studies("laws")
    u = np.linspace(1e-9, 1 - 1e-9, 1001)
    for law in laws.LAWS.values():
        for value in (law.prediction(u), law.frequency(u)):
            assert (value >= 0).all()
            assert (value <= 1).all()
        assert (studies("truth").truth(law.name, "smooth_ce") < 1e-12) == law.calibrated
        assert (law.events(100) < 10) == law.name.startswith("rare")


def test_truths_against_closed_forms_and_quadrature(studies):
    truth = studies("truth").truth
    odds = math.exp(0.4)

    def excess(u):
        return odds * u / (odds * u + 1 - u) - u

    shift = quad(excess, 0, 1)[0]  # all residuals are positive: every norm with w = 1 sees the mean
    for measure in ("smooth_ce", "random_interval_ce", "weighted_ce", "lower_distance"):
        assert truth("shift", measure) == pytest.approx(shift, abs=1e-8)
        assert truth("bump", measure) == pytest.approx(0.25 * 0.1 * 16 / 15, abs=1e-8)
    # Smooth on either side of the diagonal only.
    square = (
        2 * dblquad(lambda u, v: excess(u) * excess(v) * math.exp(u - v), 0, 1, 0, lambda v: v)[0]
    )
    assert truth("shift", "kernel_ce") == pytest.approx(math.sqrt(square), abs=1e-8)
    assert truth("uniform", "brier_score") == pytest.approx(1 / 6, abs=1e-8)
    assert truth("rare doubled", "smooth_ce") == pytest.approx(0.01, abs=1e-6)


def test_the_truth_of_ties_against_linear_programs(studies):
    truth = studies("truth").truth
    v = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    rate = v + 0.06 * np.array([1, -1, 1, -1, 1])
    g0, g1 = (1 - rate) / 5, rate / 5
    assert truth("ties", "smooth_ce") == pytest.approx(oracles.smooth_ce_lp(v, g1 - v / 5))
    grid = np.union1d(v, np.linspace(0, 1, 201))
    lower = oracles.lower_distance_lp(v, g0, g1, grid)
    assert truth("ties", "lower_distance") == pytest.approx(lower, abs=2e-5)
    assert truth("ties", "interval_ce") == pytest.approx(oracles.interval_brute(v, g0, g1))


def test_doubling_the_atoms_changes_little(studies):
    truth = studies("truth")
    for law in ("mild", "bump", "rare doubled"):
        for measure in ("smooth_ce", "kernel_ce", "random_interval_ce", "interval_ce"):
            assert truth.truth_error(law, measure) < 3e-7 < truth.SLACK


# -- the harness ---------------------------------------------------------------------------------


def test_streams_depend_on_their_names_alone(studies):
    laws = studies("laws")
    first = [laws.stream(1, "uniform", 100, at).random() for at in (0, 1, 2)]
    again = [laws.stream(1, "uniform", 100, at).random() for at in (2, 1, 0)]
    assert first == again[::-1]
    assert len({*first, laws.stream(2, "uniform", 100, 0).random()}) == 4


def test_rows_of_a_cluster_depend_on_each_other(studies):
    sample = studies("laws").LAWS["clusters"].draw(20_000, np.random.default_rng(0))
    residual = (sample.y_true - sample.y_prob).reshape(-1, 5)
    assert abs(residual.mean()) < 0.02
    assert np.corrcoef(residual[:, 0], residual[:, 1])[0, 1] > 0.1
    assert np.array_equal(sample.clusters, np.arange(20_000) // 5)


def test_replicates_made_once_change_nothing(studies):
    coverage, laws = studies("coverage"), studies("laws")
    law = laws.LAWS["mild"]
    sample = law.draw(80, np.random.default_rng(3))
    for measure in ("smooth_ce", "surrogate_interval_ce", "lower_distance", "distance"):
        interval, _ = coverage._method(law, measure, 59)
        plain = [interval(sample, level, np.random.default_rng(4)) for level in (0.9, 0.95)]
        with coverage.drawn_once():
            once = [interval(sample, level, np.random.default_rng(4)) for level in (0.9, 0.95)]
        assert once == plain


@pytest.mark.parametrize("name", ["uniform", "ties", "clusters", "both calibrated"])
def test_the_bootstrap_against_plain_resampling(studies, name):
    laws = studies("laws")
    law = laws.LAWS.get(name) or laws.PAIRS[name]
    sample = law.draw(60, np.random.default_rng(1))
    bootstrap = studies("bootstrap").percentile_bootstrap
    ((low, high),) = bootstrap(sample, "smooth_ce", (0.8,), 30, np.random.default_rng(2))
    rng, draws = np.random.default_rng(2), []
    units = (
        [np.flatnonzero(sample.clusters == g) for g in range(12)] if name == "clusters" else None
    )
    for _ in range(30):
        drawn = rng.integers(0, 12 if units else 60, 12 if units else 60)
        row = np.concatenate([units[k] for k in drawn]) if units else drawn
        value = smooth_ce(sample.y_true[row], sample.y_prob[row])
        if sample.y_other is not None:
            value -= smooth_ce(sample.y_true[row], sample.y_other[row])
        draws.append(value)
    assert (low, high) == pytest.approx(tuple(np.quantile(draws, (0.1, 0.9))), abs=1e-12)


def test_a_stopped_run_goes_on_and_another_plan_starts_anew(studies, tmp_path):
    run_cells = studies("runs").run_cells
    path, cells, done = tmp_path / "table.csv", [("a", k) for k in range(5)], []

    def work(name, k, *, stop=None):
        if k == stop:
            raise KeyboardInterrupt
        done.append(k)
        return [{"name": name, "square": str(k * k)}]

    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, partial(work, stop=3), "plan", path, jobs=1, title="")
    assert done == [0, 1, 2]
    rows = run_cells(cells, work, "plan", path, jobs=1, title="")
    assert done == [0, 1, 2, 3, 4]
    assert [row["square"] for row in rows] == ["0", "1", "4", "9", "16"]
    assert studies("runs").read_rows(path) == rows
    run_cells(cells, work, "another plan", path, jobs=1, title="")
    assert done[5:] == [0, 1, 2, 3, 4]
    assert [item.name for item in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_processes(studies, tmp_path):
    power = studies("power")
    plan = power.Plan(data_sets=(3, 2, 2), power_sets=2, n_resamples=19)
    cells = [cell for cell in power.cells() if cell[3] == 100][:3]
    for jobs in (1, 2):
        work = partial(power.power_cell, plan=plan)
        path = tmp_path / f"{jobs}.csv"
        studies("runs").run_cells(cells, work, str(plan), path, jobs=jobs, title="")
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(not loader.COMPILED, reason="minutes with plain kernels")
@pytest.mark.parametrize("study", ["coverage", "power", "monitor"])
def test_a_quick_run_writes_page_table_and_figure(studies, tmp_path, study):
    arguments = [study, "--quick", "--jobs", "1", "--out", str(tmp_path / "new")]
    assert studies("__main__").main(arguments) in {0, 1}
    found = {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    figures = [] if study == "monitor" else [f"{study}.svg"]
    assert sorted(found) == [f"{study}.csv", f"{study}.md", *figures]
    page = found[f"{study}.md"].decode()
    assert f"Run again: `python -m studies {study} --quick`" in page
    assert studies("__main__").main(arguments) in {0, 1}  # from the table alone
    assert {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()} == found


def test_the_page_says_what_fails(studies):
    pages = studies("pages")
    # Allowed are 88.5%, and two standard errors of 0.01 each.
    row = {"coverage": "0.8655", "level": "0.9", "events": "50", "data_sets": "1164"}
    assert pages.coverage_passes(row)
    assert not pages.coverage_passes(row | {"coverage": "0.8645"})
    assert not pages.coverage_passes(row | {"data_sets": "10000"})
    assert pages.has_few_events(row | {"events": "9"})
    least, most = pages.size_limits(1000, 0.05, 100)
    assert 20 < least < 50 < most < 80
    test = {"data_sets": "1000", "level": "0.05"}
    verdicts = [
        pages.size_verdict(test | {"rejected": str(k)}, 100) for k in (least - 1, 50, most + 1)
    ]
    assert verdicts == ["pass, careful", "pass", pages.FAIL]


# -- the results, reduced -----------------------------------------------------------------------


def _least(level, sets):
    """Return the coverage that a right interval falls below once in a thousand times."""
    return level - 3.1 * math.sqrt(level * (1 - level) / sets)


def _cell(studies, *cell, sets=SETS):
    coverage = studies("coverage")
    plan = coverage.Plan(
        data_sets=sets, n_resamples=59, bootstrap_sets=sets // 2, distance_sets=2,
        bootstrap_resamples=19,
    )  # fmt: skip
    return coverage.coverage_cell(*cell, plan=plan)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["uniform", "constant", "strong", "ties", "clusters"])
@pytest.mark.parametrize(
    "measure",
    ["smooth_ce", "kernel_ce", "random_interval_ce"]
    + ["lower_distance", "distance"] * loader.COMPILED,  # plain ones take minutes
)
def test_intervals_cover(studies, law, measure):
    for row in _cell(studies, law, 100, measure):
        assert float(row["coverage"]) >= _least(float(row["level"]), SETS)
        assert int(row["data_sets"]) == SETS
        assert 0 < float(row["width"]) < 1


@pytest.mark.slow
@pytest.mark.skipif(not loader.COMPILED, reason="the lower distance of replicates takes minutes")
@pytest.mark.parametrize(
    ("law", "n"), [("narrow", 400), ("few atoms", 400), ("unequal clusters", 100)]
)
def test_brackets_cover_where_all_rows_are_in_few_cells_or_clusters(studies, law, n):
    for row in _cell(studies, law, n, "distance", sets=2 * SETS):
        assert float(row["coverage"]) >= _least(float(row["level"]), 2 * SETS)


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["both calibrated", "opposite shifts", "clustered pair"])
@pytest.mark.parametrize("measure", ["smooth_ce", "brier_score"])
def test_comparisons_cover(studies, pair, measure):
    for row in _cell(studies, pair, 100, measure):
        assert float(row["coverage"]) >= _least(float(row["level"]), SETS)


def test_an_oracle_knows_how_values_err(studies):
    (row, _, split, _), law = _cell(studies, "ties", 100, "smooth_ce"), "ties"
    laws, plan = studies("laws"), studies("coverage").Plan()
    values = []
    for at in range(SETS):
        sample = laws.LAWS[law].draw(100, laws.stream(plan.seed, law, 100, at))
        values.append(smooth_ce(sample.y_true, sample.y_prob))
    low, high = np.quantile(values, [0.05, 0.95])
    assert float(row["oracle"]) == pytest.approx(high - low, abs=1e-5)
    assert row["oracle"] == split["oracle"]
    rows = _cell(studies, law, 100, "lower_distance", sets=2)
    bracket = next(row for row in rows if row["measure"] == "distance")
    low, high = map(float, bracket["truth"].split(" to "))
    assert float(bracket["oracle"]) == pytest.approx(high - low, abs=2e-5)


def test_the_percentile_bootstrap_never_covers_perfect_calibration(studies):
    for law in ("uniform", "polarised"):
        rows = _cell(studies, law, 100, "smooth_ce", sets=30 if loader.COMPILED else 4)
        assert [row["measure"] for row in rows] == ["smooth_ce"] * 2 + ["smooth_ce, cross_fit"] * 2
        for row in rows:
            assert float(row["coverage"]) > 0.8
            if row["measure"] == "smooth_ce":  # the bootstrap is the same for both
                assert float(row["bootstrap_coverage"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("law", ["uniform", "ties", "clusters"])
def test_tests_have_their_size(studies, law):
    power, pages = studies("power"), studies("pages")
    plan = power.Plan(data_sets=(2 * SETS, 1, 1), n_resamples=19)
    rows = power.power_cell("size", law, 0.0, 100, plan=plan)
    for row in rows:
        if row["test"] in power.EXACT:
            assert int(row["rejected"]) <= pages.size_limits(2 * SETS, float(row["level"]), 50)[1]


def test_strong_miscalibration_is_found(studies):
    power = studies("power")
    plan = power.Plan(power_sets=SETS // 3, n_resamples=59)
    rows = power.power_cell("power", "shift", 1.0, 500, plan=plan)
    found = {row["test"]: int(row["rejected"]) for row in rows if row["level"] == "0.05"}
    assert found["auto"] == found["smooth_ce"] == SETS // 3


@pytest.mark.skipif(not loader.COMPILED, reason="minutes with plain kernels")
def test_the_family_wise_error_of_groups(studies):
    power, pages = studies("power"), studies("pages")
    plan = power.Plan(power_sets=20, n_resamples=59)
    found = {}
    for name, strength in (("rare clusters", 0.0), ("clusters", 0.0), ("uniform", 0.7)):
        rows = power.power_cell("groups", name, strength, 2000, plan=plan)
        found[name] = {row["level"]: int(row["rejected"]) for row in rows}
        assert {row["test"] for row in rows} == {power.GROUP_TEST}
    assert found["rare clusters"]["0.05"] <= pages.size_limits(20, 0.05, 2)[1]
    assert found["clusters"]["0.05"] <= pages.size_limits(20, 0.05, 2)[1]
    assert found["uniform"]["0.1"] >= 15


def test_joints_of_laws_are_calibrated_in_the_mean(studies):
    joint = studies("laws").LAWS["polarised"].population(500)
    assert isinstance(joint, Joint)
    assert abs(joint.residual()).max() < 1e-15


def test_the_study_of_several_classes_reduced(studies):
    multiclass = studies("multiclass")
    assert len(multiclass.LAWS) >= 8
    assert multiclass.truth("peaked", 3) == 0
    assert multiclass.truth("sharp", 2) > multiclass.truth("mild", 2) > 0
    plan = multiclass.Plan(data_sets=2, many_classes=1)
    rows = multiclass.limits_cell("sharp", 3, 100, plan=plan)
    text = multiclass.page(rows, plan, "python -m studies multiclass")
    assert "1 of 1 cells hold." in text
    assert "| 3 | 100 |" in text
    failing = [rows[0] | {"lower_misses": "1.0"}]
    assert "0 of 1 cells hold" in multiclass.page(failing, plan, "command")
