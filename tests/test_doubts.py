"""Scores that no check refuses and nobody can have meant: a warning, from one pass."""

import re
import warnings

import numpy as np
import pytest

import caldist
from caldist.data import rows as data_rows
from caldist.data.doubts import doubts_of
from caldist.data.rows import Rows
from command_lines import run, write_csv

RNG = np.random.default_rng(5)
P = RNG.random(400)
Y = (RNG.random(400) < P).astype(int)
DOUBTS = {
    "labels": (Y, "the scores are the labels"),
    "decisions": (np.round(P), "the scores are only 0 and 1"),
    "backwards": (1 - P, r"the scores rank backwards.*\(AUC 0\.1"),
}


@pytest.mark.parametrize("kind", DOUBTS)
def test_evaluate_warns(kind):
    score, words = DOUBTS[kind]
    with pytest.warns(UserWarning, match=words) as caught:
        caldist.evaluate(Y, score, measures=["smooth_ce"])
    assert caught[0].filename == __file__  # at the caller's line
    for joint in (
        caldist.Joint.from_arrays(Y, score),
        caldist.Joint.from_arrays(Y, score).coarsen(12),
    ):
        with pytest.warns(UserWarning, match=words):
            caldist.evaluate(joint, measures=["smooth_ce"])
    [found] = doubts_of(Rows.of(Y, score))
    assert found == doubts_of(Rows.of(Y, score, sample_weight=np.full(400, 2.5)))[0]


@pytest.mark.parametrize("kind", DOUBTS)
@pytest.mark.parametrize("command", ["measure", "test"])
def test_the_command_line_warns_on_stderr_and_goes_on(tmp_path, kind, command):
    score, _ = DOUBTS[kind]
    path = write_csv(tmp_path / "rows.csv", {"y": Y, "p": score})
    options = {"measure": ("--measures", "smooth_ce"), "test": ("--resamples", "19")}[command]
    result = run(command, path, "--label", "y", "--score", "p", *options, "--format", "csv")
    assert result.exit_code == 0
    [said] = [line for line in result.stderr.splitlines() if "warning" in line]
    assert said == f"warning: p: {doubts_of(Rows.of(Y, score))[0]}"


def test_a_report_says_it_first_in_every_format():
    score, words = DOUBTS["decisions"]
    found = caldist.report(Y, {"a": P, "b": score}, n_resamples=99)
    [doubt] = found.data.doubts
    assert doubt.startswith(f"b: {words}")
    assert caldist.Report.from_json(found.to_json()).data.doubts == (doubt,)
    assert str(found).startswith(f"Warning: {doubt}\n")
    head, _, _ = found.to_markdown().partition("|")
    assert f"Warning: b: {words}" in head
    [(alert, _)] = re.findall(r'role="alert">(.*?)</p>(.*?)<h2', found.to_html(), re.DOTALL)
    assert words in alert


def test_chance_and_ordinary_scores_are_not_doubted():
    ordinary = [P, np.full(400, 0.5), RNG.random(400), np.zeros(400) + 1e-9, P**9]
    assert [doubts_of(Rows.of(Y, score)) for score in ordinary] == [[]] * len(ordinary)
    few = slice(0, 49)
    assert doubts_of(Rows.of(Y[few], 1 - P[few])) == doubts_of(Rows.of(Y[few], Y[few])) == []
    masses = caldist.Joint.from_masses([0.2, 0.8], [1.0, 9.0], [9.0, 1.0])
    assert doubts_of(Rows.of(masses)) == []  # nobody knows of how many rows


def test_backwards_is_not_said_by_chance():
    """Of 300 samples whose scores say nothing, none is doubted: four standard errors at most."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        label = rng.random(60) < 0.3
        assert doubts_of(Rows.of(label, rng.beta(0.5, 2, 60))) == []


def test_a_few_rows_of_large_weight_are_few():
    weight = np.ones(400)
    weight[:3] = 1e6
    assert doubts_of(Rows.of(Y, 1 - P, sample_weight=weight)) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (1e200, 1e-200):
            doubts_of(Rows.of(Y, 1 - P, sample_weight=np.full(400, size)))
            doubts_of(Rows.of(caldist.Joint.from_arrays(Y, 1 - P, sample_weight=[1e-200] * 400)))


def test_scores_within_one_cell_are_not_taken_for_backwards():
    """A grid does not tell their order, which may be right."""
    tiny = P * 2.0**-20
    assert doubts_of(Rows.of(Y, tiny)) == doubts_of(Rows.of(Y, 2.0**-20 - tiny)) == []


def test_nothing_is_sorted_for_it(monkeypatch):
    def fail(*_, **__):
        raise AssertionError

    monkeypatch.setattr(data_rows, "sorting_order", fail)
    monkeypatch.setattr("caldist.data.joint.sort_rows", fail)
    monkeypatch.setattr(data_rows, "sort_residuals", fail)
    assert doubts_of(Rows.of(Y, P)) == []
