"""The benchmarks run and print what they promise. No time is asserted: machines differ."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import caldist
from command_lines import HAS_DUCKDB

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").is_dir(), reason="the benchmarks are not part of an installation"
)


@pytest.fixture
def benchmarks(monkeypatch):
    """Return a function that imports a module of the benchmarks."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    return lambda name: import_module(f"benchmarks.{name}")


def _rows(text):
    """Return the first two columns of each line."""
    return {tuple(line.split()[:2]) for line in text.splitlines()}


@pytest.mark.slow
def test_quick_run_shows_every_measure_and_family(benchmarks, capsys, tmp_path):
    page = tmp_path / "benchmarks.md"
    assert benchmarks("__main__").main(["--quick", "--markdown", str(page)]) == 0
    rows = _rows(capsys.readouterr().out)
    text = page.read_text(encoding="utf-8")
    for measure in benchmarks("measures").MEASURES.values():
        for family in benchmarks("families").FAMILIES.values():
            wanted = not family.only or measure.name in family.only
            assert ((measure.name, family.name) in rows) == wanted
            assert (f"| {measure.name} | {family.name} |" in text) == wanted
    assert f"NumPy {np.__version__}" in text
    assert "python -m benchmarks --quick" in text
    assert "import caldist" in text
    assert [path.name for path in tmp_path.iterdir()] == ["benchmarks.md"]


def test_selection_by_name(benchmarks, capsys):
    arguments = ["--quick", "--sizes", "50,1e2", "--measures", "ece", "--families", "beta=10,tied"]
    assert benchmarks("__main__").main(arguments) == 0
    rows = _rows(capsys.readouterr().out)
    assert {row for row in rows if row[:1] == ("ece",)} == {("ece", "beta=10"), ("ece", "tied")}


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here")
def test_cores_are_given_back(benchmarks, capsys):
    cores = os.sched_getaffinity(0)
    assert benchmarks("__main__").main(["--cores", "--quick"]) == 0
    assert os.sched_getaffinity(0) == cores
    rows = _rows(capsys.readouterr().out)
    for measure in benchmarks("cores").NAMES:
        assert {(measure, family) for family in benchmarks("cores").FAMILY_NAMES} <= rows


@pytest.mark.parametrize("option", ["--measures", "--families"])
def test_unknown_names_are_refused(benchmarks, capsys, option):
    with pytest.raises(SystemExit):
        benchmarks("__main__").main([option, "nothing"])
    assert "nothing; known: " in capsys.readouterr().err


def test_families_are_reproducible_and_valid(benchmarks):
    for family in benchmarks("families").FAMILIES.values():
        first, second = family.make(200), family.make(200)
        assert first.y_true.dtype == np.int64
        assert first.y_prob.dtype == np.float64
        assert first.y_true.shape == first.y_prob.shape == (200,)
        assert np.array_equal(first.y_true, second.y_true)
        assert np.array_equal(first.y_prob, second.y_prob)
        assert (np.diff(first.y_prob) < 0).any()
        assert (first.sample_weight is not None) == family.weighted
        assert 0 <= caldist.ece(first.y_true, first.y_prob) <= 1


def test_misses_are_marked(benchmarks):
    ratios, timing = benchmarks("ratios"), benchmarks("timing")
    measure = benchmarks("measures").MEASURES["smooth_ce"]
    family = benchmarks("families").FAMILIES["tied"]
    sizes = (10**6, 10**7)
    for slow, wanted in (((1, 1), "ok"), ((1, 1.9), "MISS growth"), ((2.5, 2.5), "MISS 1e6, 1e7")):
        timings = {
            (measure.name, family.name, n): timing.Timing(ratio, 1.0, None)
            for n, ratio in zip(sizes, slow, strict=True)
        }
        table = ratios.ratio_table([measure], [family], sizes, timings, timing.ONCE)
        assert table.rows[0][-1] == wanted


@pytest.mark.parametrize(
    ("peer", "module", "ours"),
    [
        ("highs", "scipy", caldist.smooth_ce),
        ("clarabel", "clarabel", caldist.smooth_ce),
        ("dense_kernel", "numpy", caldist.kernel_ce),
    ],
)
def test_solvers_reach_the_same_value(benchmarks, peer, module, ours):
    pytest.importorskip(module)
    for name in ("beta=3", "tied"):
        sample = benchmarks("families").FAMILIES[name].make(200)
        value = getattr(benchmarks("peers"), peer)(sample)
        assert value == pytest.approx(ours(sample.y_true, sample.y_prob), abs=1e-6)


def test_peers_that_are_absent_are_named(benchmarks, monkeypatch):
    peers = benchmarks("peers")
    monkeypatch.setattr(peers, "find_spec", lambda module: None if module == "sklearn" else True)
    monkeypatch.setattr(
        peers, "PEERS", [p for p in peers.PEERS if p.module in {"numpy", "sklearn"}]
    )
    table = peers.peer_table(100, None, benchmarks("timing").ONCE)
    assert [row[0] for row in table.rows] == ["dense kernel sum, NumPy"]
    assert "Not installed, so not measured: sklearn." in table.note


@pytest.mark.slow
def test_sums_over_rows_are_timed_beside_their_peers(benchmarks, capsys):
    assert benchmarks("__main__").main(["--quick", "--sums", "--sizes", "50"]) == 0
    text = capsys.readouterr().out
    for name in benchmarks("sums").MEASURES:
        assert f"{name} " in text
    assert "np.sort" in text
    assert "Rows that a peer wins: " in text
    assert "Memory of sums over rows" in text
    assert "A diagram without band" in text


def test_growth_is_shown(benchmarks, capsys):
    names = "smooth_ce,brier_score"
    options = ["--quick", "--growth", "--measures", names]
    assert benchmarks("__main__").main(options) == 0
    text = capsys.readouterr().out
    for name in names.split(","):
        assert f"{name} " in text
    assert "np.sort itself: " in text


def test_slow_measures_are_not_tried_on_more_rows(benchmarks, monkeypatch):
    growth, measures = benchmarks("growth"), benchmarks("measures").MEASURES
    monkeypatch.setattr(growth, "_PATIENCE", -1.0)
    once = benchmarks("timing").ONCE
    ratios, sorting = growth.measure_growth([measures["ece"]], (50, 100), once)
    assert list(ratios["ece"]) == [50]
    assert growth.growth_table(ratios, sorting, once).rows[0][2:] == ["–", ""]


def test_peers_of_sums_over_rows_give_the_same_number(benchmarks):
    sums, sample = benchmarks("sums"), benchmarks("families").FAMILIES["beta=3"].make(300)
    for name, (measure, rivals) in sums.MEASURES.items():
        for rival in rivals:
            if rival.module in {"numpy", "sklearn"}:
                value = rival.function(sample)
                assert value == pytest.approx(measure(sample.y_true, sample.y_prob), rel=1e-13), (
                    name
                )


def test_the_kernel_of_chains_is_timed_on_every_spread_and_every_narrow_family(benchmarks):
    table = benchmarks("chain").chain_table((50, 100), benchmarks("timing").ONCE)
    names = {f.name for f in benchmarks("families").FAMILIES.values() if not f.only}
    assert {row[0] for row in table.rows} == names
    assert {len(row) for row in table.rows} == {len(table.header)}


@pytest.mark.slow
def test_the_monitor_is_timed_along_a_stream(benchmarks, capsys):
    assert benchmarks("__main__").main(["--quick", "--monitor"]) == 0
    text = capsys.readouterr().out
    assert "a batch of 1e3 rows after 5 days" in text
    assert "the file after 5 days" in text
    assert "a batch of 1e4 rows" in text
    assert ("3 Parquet files of 1e4 rows each" in text) is HAS_DUCKDB


@pytest.mark.slow
def test_recalibrations_are_timed(benchmarks, capsys):
    pytest.importorskip("duckdb")
    assert benchmarks("__main__").main(["--quick", "--recalibration"]) == 0
    text = capsys.readouterr().out
    for what in (
        "the kernel at its worst, 2,000 terms", "a map by auto, 2,000 rows, s by the clock",
        "and a statement, 99 replicates", "the same from 16 bits of 1e5 rows",
        "1e5 rows against 1e4, ratio", "caldist apply, 1e3 rows of Parquet, auto, bare copies",
    ):  # fmt: skip
        assert what in text


@pytest.mark.slow
def test_many_groups_and_reports(benchmarks, capsys):
    assert benchmarks("__main__").main(["--quick", "--many"]) == 0
    text = capsys.readouterr().out
    for what in (
        "evaluate_groups, 3 groups, 600 rows", "the same, 4 groups, smooth_ce alone",
        "report with HTML, 600 rows", "the same by 3 groups",
        "report with HTML, a summary of 1,200 rows", "10 s, 300 MB", "10 s, 1000 MB",
    ):  # fmt: skip
        assert what in text


def test_several_classes(benchmarks, capsys):
    assert benchmarks("__main__").main(["--quick", "--multiclass"]) == 0
    text = capsys.readouterr().out
    for case in benchmarks("multiclass").CASES:
        assert case.name in text
    assert "naive Bayes" in text


def test_statements_about_many_rows_are_timed(benchmarks):
    table = benchmarks("intervals").statistics_table(300, benchmarks("timing").ONCE)
    assert {row[0].split(",")[0] for row in table.rows} == {
        "confidence_interval", "calibration_test", "compare", "miscalibrated_regions",
    }  # fmt: skip
    assert all(float(row[2]) > 0 for row in table.rows)


def test_limits_without_replicates_are_timed(benchmarks):
    table = benchmarks("intervals").limits_table(300, benchmarks("timing").ONCE)
    assert {len(row) for row in table.rows} == {len(table.header)}
    assert all(float(row[3]) > 0 for row in table.rows)
