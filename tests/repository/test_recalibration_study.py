"""The study of recalibration: its laws, its peers, its page, and its results reduced."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import caldist
from caldist.kernels import loader

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not (ROOT / "studies").is_dir(), reason="the studies are not part of an installation"
)
compiled = pytest.mark.skipif(not loader.COMPILED, reason="minutes with plain kernels")


@pytest.fixture
def studies(monkeypatch):
    """Return a function that imports a module of the studies."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    return lambda name: import_module(f"studies.{name}")


@pytest.fixture
def small(studies):
    return studies("recalibration").Plan(
        data_sets=(3, 3, 3), bound_sets=2, quality_sets=2, real_splits=1, few_sets=2
    )


def test_there_are_enough_laws(studies):
    recalibration = studies("recalibration")
    u = np.linspace(1e-9, 1 - 1e-9, 1001)
    assert len(recalibration.RECALIBRATED) >= 8
    for law in recalibration.RECALIBRATED.values():
        for value in (law.prediction(u), law.frequency(u)):
            assert (value >= 0).all()
            assert (value <= 1).all()
    cells = recalibration.cells()
    for law in recalibration.RECALIBRATED:
        for n in (300, 1000, 4000):
            for family in ("auto", "sigmoid", "isotonic"):
                assert ("coverage", law, n, family) in cells


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("family", ["auto", "sigmoid", "isotonic"])
def test_statements_hold(studies, family):
    """Of 20 data sets at 5% on each side, three misses or fewer: 98.4% of the time at 5%."""
    recalibration = studies("recalibration")
    plan = recalibration.Plan(data_sets=(20, 20, 20))
    rows = recalibration.recalibration_cell("coverage", "mild", 300, family, plan=plan)
    found = {row["quantity"]: row for row in rows}
    assert found["smooth_ce, after misses"]["data_sets"] == "20"
    for quantity, row in found.items():
        if quantity.endswith(("after misses", "before misses")):
            assert float(row["mean"]) <= 3 / 20, quantity


@compiled
def test_the_bound_is_below_that_of_rows_held_out(studies, small):
    rows = studies("recalibration").recalibration_cell(
        "bound", "strong", 800, "sigmoid", plan=small
    )
    ours, theirs = (float(row["mean"]) for row in rows)
    assert ours < 0.8 * theirs
    assert ours < 0.06


@compiled
def test_maps_are_compared_on_populations_and_on_rows_held_out(studies, small):
    recalibration = studies("recalibration")
    law = recalibration.recalibration_cell("quality", "strong", 300, "all", plan=small)
    real = recalibration.recalibration_cell("real", "cancer: naive Bayes", 0, "all", plan=small)
    for rows in (law, real):
        loss = {row["method"]: float(row["mean"]) for row in rows if row["quantity"] == "log loss"}
        assert {"none", "caldist auto", "sklearn isotonic"} <= set(loss)
        assert loss["caldist auto"] < loss["none"]
        assert all(value > -1e-9 for value in loss.values())


@pytest.mark.slow
@compiled
def test_few_rows_get_a_sigmoid_and_are_compared_with_a_selection(studies, small):
    recalibration = studies("recalibration")
    for cell in (("few", "blend", 100, "all"), ("few real", "cancer: boosting", 0, "all")):
        rows = [
            row
            for row in recalibration.recalibration_cell(*cell, plan=small)
            if row["rows"] == "100"
        ]
        loss = {row["method"]: float(row["mean"]) for row in rows}
        assert set(loss) == {"sigmoid", "selection", "gain"}
        assert loss["gain"] == pytest.approx(loss["selection"] - loss["sigmoid"], abs=1e-5)
    p = np.linspace(0.01, 0.99, 70)
    y = (np.random.default_rng(0).random(70) < p).astype(int)
    sigmoid = caldist.recalibrate(y, p, family="sigmoid", confidence_level=None).map
    as_it_is, selected = (fit(y, p) for fit in recalibration.RULES.values())
    assert as_it_is == sigmoid
    assert selected != sigmoid
    assert caldist.recalibrate(y, p, confidence_level=None).map == sigmoid  # nothing stays switched


def test_peers_that_fail_are_counted_not_hidden(studies):
    recalibration = studies("recalibration")
    y, p = np.array([0, 1]), np.array([0.2, 0.7])

    def broken(_y, _p):
        raise ZeroDivisionError

    assert recalibration._mapped(broken, y, p, p) is None
    assert recalibration._mapped(lambda _y, _p: lambda v: v + np.nan, y, p, p) is None
    assert recalibration._mapped(lambda _y, _p: lambda v: v + 3, y, p, p) is None
    assert recalibration._mapped(lambda _y, _p: lambda v: v, y, p, p) is p


def made_up(recalibration, misses, *, gain=0.001):
    """Return rows of all cells, with these misses everywhere."""
    rows = []
    quantities = {
        "coverage": ["smooth_ce, after misses", "smooth_ce, before misses", "smooth_ce, bound"],
        "bound": ["all rows", "half held out"],
        "quality": ["log loss", "Brier", "smCE"],
        "real": ["log loss", "Brier", "smCE", "failures"],
    }
    for kind, law, n, method in recalibration.cells():
        name = {"cell": f"{kind} / {law} / {n} / {method}"}
        if kind in {"few", "few real"}:
            for size in [n] if n else recalibration.FEW_ROWS:
                for key, value in (("sigmoid", 0.1), ("selection", 0.1 + gain), ("gain", gain)):
                    rows.append(
                        name | recalibration._row(kind, law, size, key, "log loss", [value] * 9)
                    )
            continue
        methods = [method] if method != "all" else ["none", "caldist auto"]
        for key in methods:
            for at, quantity in enumerate(quantities[kind]):
                value = misses if "misses" in quantity else 0.01 * (at + 1)
                rows.append(name | recalibration._row(kind, law, n, key, quantity, [value] * 300))
    return rows


@pytest.mark.slow
def test_the_page_says_what_fails(studies):
    """A cell may miss two standard errors more often, 0.034 at 12%; all laws together may not."""
    recalibration, page = studies("recalibration"), studies("recalibration_page")
    number = 9 * len(recalibration.RECALIBRATED)
    text = page.recalibration_page(made_up(recalibration, 0.069), recalibration.FULL, "command")
    assert f"{number} of {number} cells hold their level" in text
    assert "FAIL" not in text
    assert "Run again: `command`" in text
    assert "the rule is confirmed" in text
    together = page.recalibration_page(made_up(recalibration, 0.071), recalibration.FULL, "command")
    assert f"{number} of {number} cells hold their level" in together
    assert together.count("FAIL") == 9
    wrong = page.recalibration_page(made_up(recalibration, 0.12), recalibration.FULL, "command")
    assert f"0 of {number} cells hold their level" in wrong
    assert wrong.count("FAIL") == number + 9
    assert page.recalibration_figure(made_up(recalibration, 0.069)).startswith(b"<?xml")


def test_the_page_says_whether_the_rule_for_few_rows_is_confirmed(studies):
    recalibration, page = studies("recalibration"), studies("recalibration_page")
    text = page.recalibration_page(
        made_up(recalibration, 0.01, gain=-0.001), recalibration.FULL, "command"
    )
    assert "the rule is not confirmed" in text
    assert text.count("FAIL") == 1
