"""The study of the penalty in training, reduced: its networks, its arithmetic and its files."""

from __future__ import annotations

import csv
import sys
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

ROOT = Path(__file__).resolve().parents[1]

pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytestmark = pytest.mark.skipif(
    not (ROOT / "studies").is_dir(), reason="the studies are not part of an installation"
)

COLUMNS = [
    "weight",
    "seed",
    "accuracy",
    "smooth_ce",
    "lower_distance",
    "log_loss",
    "train_log_loss",
    "smooth_ce_by_chance",
]


@pytest.fixture
def training(monkeypatch):
    """Return the module of the study, with a plan that takes a second."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    module = import_module("studies.training")
    monkeypatch.setattr(module, "QUICK", replace(module.QUICK, epochs=5))
    return module


def test_a_seed_gives_the_same_network(training):
    first, again, other = (training.train(10.0, seed, training.QUICK) for seed in (1, 1, 2))
    assert first == again
    assert first.log_loss != other.log_loss


def test_the_penalty_counts(training):
    with_penalty, without = (training.train(weight, 1, training.QUICK) for weight in (10.0, 0.0))
    assert with_penalty.train_log_loss != without.train_log_loss


def test_runs_are_of_all_weights_and_seeds_and_plausible(training):
    import torch

    threads = torch.get_num_threads()
    runs = training.study(training.QUICK)
    assert torch.get_num_threads() == threads
    assert [(run.seed, run.weight) for run in runs] == [(0, 0.0), (0, 10.0), (1, 0.0), (1, 10.0)]
    for run in runs:
        assert list(asdict(run)) == COLUMNS
        assert 0.6 < run.accuracy <= 1
        assert 0 < run.lower_distance <= 2 * run.smooth_ce
        assert 0 < run.train_log_loss < np.log(2)
        assert 0 < run.log_loss < np.log(2)
        assert 0 < run.smooth_ce_by_chance < 0.02


def test_intervals_are_student_s(training):
    values = np.random.default_rng(0).normal(size=7)
    mean, half = training.mean_and_error(values.tolist())
    low, high = stats.t.interval(0.95, 6, loc=values.mean(), scale=stats.sem(values))
    assert (mean - half, mean + half) == pytest.approx((low, high))


def made_up(training):
    """Return runs whose penalty adds exactly 0.25 to all outcomes, and changes no spread."""
    return [
        training.Run(weight, seed, *[0.25 * (weight > 0) + seed / 2] * 6)
        for seed in (0, 1)
        for weight in (0.0, 10.0)
    ]


def test_differences_are_paired_and_marked(training):
    page = training.page(made_up(training), training.QUICK, "the command")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| 10 |")]
    assert [cell.strip(" |") for cell in rows[1]][1:] == ["+0.2500 ± 0.0000 *"] * 4
    # Two seeds half a unit apart: the unpaired interval is 12.7 times 1/4.
    assert [cell.strip(" |") for cell in rows[0]][1:] == ["0.5000 ± 3.1766"] * 6
    assert "`the command`: 2 seeds, 5 epochs" in page


def test_page_figure_and_table_are_written(training, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(training, "study", lambda _plan: made_up(training))
    assert training.main(["--quick", "--out", str(tmp_path / "new")]) == 0
    with (tmp_path / "new" / "training.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == COLUMNS
    assert len(rows) == 4
    assert b"<svg" in (tmp_path / "new" / "training.svg").read_bytes()
    page = (tmp_path / "new" / "training.md").read_text(encoding="utf-8")
    assert "python -m studies.training --quick" in page
    assert "](training.svg)" in page


def test_the_page_in_the_documentation_is_that_of_its_table(training):
    """Each number on it comes from the table next to it."""
    folder = ROOT / "docs" / "studies"
    with (folder / "training.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == COLUMNS
    runs = [training.Run(float(w), int(seed), *map(float, more)) for w, seed, *more in rows]
    page = training.page(runs, training.Plan(), "python -m studies.training")
    assert (folder / "training.md").read_text(encoding="utf-8") == page
