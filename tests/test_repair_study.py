"""The study of repair: its laws, its peers, its page, and its results reduced."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from caldist import _kernels

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.skipif(
    not (ROOT / "studies").is_dir(), reason="the studies are not part of an installation"
)
compiled = pytest.mark.skipif(not _kernels.COMPILED, reason="minutes with plain kernels")


@pytest.fixture
def studies(monkeypatch):
    """Return a function that imports a module of the studies."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    return lambda name: import_module(f"studies.{name}")


@pytest.fixture
def small(studies):
    return studies("repair").Plan(data_sets=(3, 3, 3), bound_sets=2, quality_sets=2, real_splits=1)


def test_there_are_enough_laws(studies):
    repair = studies("repair")
    u = np.linspace(1e-9, 1 - 1e-9, 1001)
    assert len(repair.REPAIRED) >= 8
    for law in repair.REPAIRED.values():
        for value in (law.prediction(u), law.frequency(u)):
            assert (value >= 0).all()
            assert (value <= 1).all()
    cells = repair.cells()
    for law in repair.REPAIRED:
        for n in (300, 1000, 4000):
            for method in ("auto", "sigmoid", "isotonic"):
                assert ("coverage", law, n, method) in cells


@compiled
@pytest.mark.parametrize("method", ["auto", "sigmoid", "isotonic"])
def test_statements_hold(studies, method):
    """Of 20 data sets at 5% on each side, three misses or fewer: 98.4% of the time at 5%."""
    repair = studies("repair")
    plan = repair.Plan(data_sets=(20, 20, 20))
    rows = repair.repair_cell("coverage", "mild", 300, method, plan=plan)
    found = {row["quantity"]: row for row in rows}
    assert found["smooth_ce, after misses"]["data_sets"] == "20"
    for quantity, row in found.items():
        if quantity.endswith(("after misses", "before misses")):
            assert float(row["mean"]) <= 3 / 20, quantity


@compiled
def test_the_bound_is_below_that_of_rows_held_out(studies, small):
    rows = studies("repair").repair_cell("bound", "strong", 800, "sigmoid", plan=small)
    ours, theirs = (float(row["mean"]) for row in rows)
    assert ours < 0.8 * theirs
    assert ours < 0.06


@compiled
def test_maps_are_compared_on_populations_and_on_rows_held_out(studies, small):
    repair = studies("repair")
    law = repair.repair_cell("quality", "strong", 300, "all", plan=small)
    real = repair.repair_cell("real", "cancer: naive Bayes", 0, "all", plan=small)
    for rows in (law, real):
        loss = {row["method"]: float(row["mean"]) for row in rows if row["quantity"] == "log loss"}
        assert {"none", "caldist auto", "sklearn isotonic"} <= set(loss)
        assert loss["caldist auto"] < loss["none"]
        assert all(value > -1e-9 for value in loss.values())


def test_peers_that_fail_are_counted_not_hidden(studies):
    repair = studies("repair")
    y, p = np.array([0, 1]), np.array([0.2, 0.7])

    def broken(_y, _p):
        raise ZeroDivisionError

    assert repair._mapped(broken, y, p, p) is None
    assert repair._mapped(lambda _y, _p: lambda v: v + np.nan, y, p, p) is None
    assert repair._mapped(lambda _y, _p: lambda v: v + 3, y, p, p) is None
    assert repair._mapped(lambda _y, _p: lambda v: v, y, p, p) is p


def made_up(repair, misses):
    """Return rows of all cells, with these misses everywhere."""
    rows = []
    quantities = {
        "coverage": ["smooth_ce, after misses", "smooth_ce, before misses", "smooth_ce, bound"],
        "bound": ["all rows", "half held out"],
        "quality": ["log loss", "Brier", "smCE"],
        "real": ["log loss", "Brier", "smCE", "failures"],
    }
    for kind, law, n, method in repair.cells():
        methods = [method] if method != "all" else ["none", "caldist auto"]
        for name in methods:
            for at, quantity in enumerate(quantities[kind]):
                value = misses if "misses" in quantity else 0.01 * (at + 1)
                row = repair._row(kind, law, n, name, quantity, [value] * 300)
                rows.append({"cell": f"{kind} / {law} / {n} / {method}"} | row)
    return rows


def test_the_page_says_what_fails(studies):
    repair, page = studies("repair"), studies("repair_page")
    good, bad = (made_up(repair, misses) for misses in (0.069, 0.071))
    text = page.repair_page(good, repair.FULL, "command")
    number = 9 * len(repair.REPAIRED)
    assert f"{number} of {number} cells hold their level" in text
    assert "FAIL" not in text
    assert "Run again: `command`" in text
    wrong = page.repair_page(bad, repair.FULL, "command")
    assert f"0 of {number} cells hold their level" in wrong
    assert wrong.count("FAIL") == number
    assert page.repair_figure(good).startswith(b"<?xml")
