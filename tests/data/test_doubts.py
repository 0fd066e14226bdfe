"""Scores that no check refuses and nobody can have meant: a warning, from one pass."""

import re
import warnings

import numpy as np
import pytest
from scipy.stats import binom

import caldist
from caldist.data import rows as data_rows
from caldist.data.doubts import _is_surely_above, _of_runs, doubts_of
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
    options = {"measure": ("--measure", "smooth_ce"), "test": ()}[command]
    result = run(command, path, "--label", "y", "--score", "p", *options, "--format", "csv")
    assert result.exit_code == 0
    [said] = [line for line in result.stderr.splitlines() if "warning" in line]
    assert said == f"warning: p: {doubts_of(Rows.of(Y, score))[0]}"


@pytest.mark.slow
def test_a_report_says_it_first_in_every_format():
    score, words = DOUBTS["decisions"]
    found = caldist.report(Y, {"a": P, "b": score}, n_resamples=99)
    [doubt] = found.data.doubts
    assert doubt.startswith(f"b: {words}")
    assert caldist.reporting.Report.from_json(found.to_json()).data.doubts == (doubt,)
    assert str(found).startswith(f"Warning: {doubt}\n")
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
        for size in (1e99, 1e-49):
            doubts_of(Rows.of(Y, 1 - P, sample_weight=np.full(400, size)))
            doubts_of(Rows.of(caldist.Joint.from_arrays(Y, 1 - P, sample_weight=[1e-49] * 400)))


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


# -- rows that depend on each other --------------------------------------------------------------


def copies(rng, number, size, rate=1.0):
    """Return so many rows of one cluster after the other, all of them equal."""
    prediction = rng.random(number)
    label = (rng.random(number) < rate * prediction).astype(int)
    return np.repeat(label, size), np.repeat(prediction, size)


@pytest.mark.parametrize(
    ("number", "size", "rate"), [(1000, 2, 1), (1000, 30, 1), (12_000, 9, 0.02)]
)
def test_copies_of_rows_are_doubted(number, size, rate):
    rng = np.random.default_rng(0)
    y, p = copies(rng, number, size, rate)
    [found] = doubts_of(Rows.of(y, p))
    assert "equal scores and labels in runs" in found
    rows = re.search("as rows ([0-9,]+) to ([0-9,]+), counted", found).groups()
    first, last = (int(row.replace(",", "")) for row in rows)
    assert last - first + 1 == size
    assert len(set(p[first : last + 1])) == len(set(y[first : last + 1])) == 1
    assert doubts_of(Rows.of(y, p, clusters=np.repeat(np.arange(number), size))) == []
    assert doubts_of(Rows.of(caldist.Joint.from_arrays(y, p))) == []  # which has no order
    mixed = rng.permutation(y.size)
    assert doubts_of(Rows.of(y[mixed], p[mixed])) == []


ORDERS = {
    "as they come": lambda y, p, day: slice(None),
    "scores": lambda y, p, day: np.argsort(p, kind="stable"),
    "scores, largest first": lambda y, p, day: np.argsort(-p, kind="stable"),
    "labels": lambda y, p, day: np.argsort(y, kind="stable"),
    "scores, labels": lambda y, p, day: np.lexsort((y, p)),
    "labels, scores": lambda y, p, day: np.lexsort((p, y)),
    "days, labels": lambda y, p, day: np.lexsort((y, day)),
    "days, scores, labels": lambda y, p, day: np.lexsort((y, p, day)),
    "days, labels, scores": lambda y, p, day: np.lexsort((p, y, day)),
}
LAWS = {
    "calibrated": lambda p: p,
    "rare": lambda p: 0.02 * p,
    "certain": lambda p: p > 0.5,
    "backwards": lambda p: 1 - p,
    "drifting": lambda p: np.linspace(0.1, 0.9, p.size),
    "jagged": lambda p: np.random.default_rng(0).random(1001)[np.round(1000 * p).astype(int)],
}


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("law", LAWS)
def test_independent_rows_are_not_doubted_whatever_their_order(law, order):
    """Rounded scores have many runs of two and more; ten samples of each kind, none is doubted."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        for values in (4, 10, 100, 1000):
            p = np.round(rng.random(20_000) * values) / values
            y = rng.random(p.size) < LAWS[law](p)
            at = ORDERS[order](y, p, rng.integers(0, 300, p.size))
            assert _of_runs(Rows.of(y[at], p[at])) == []


def test_two_runs_of_four_rows_split_along_them_in_a_third_of_the_cases(monkeypatch):
    """All six arrangements of two labels 1 are equally likely, and two of them are split."""
    seen = []
    monkeypatch.setattr(
        "caldist.data.doubts._is_surely_above", lambda *counts: bool(seen.append(counts))
    )
    rng = np.random.default_rng(0)
    for _ in range(40):
        p = np.round(rng.random(50_000), 1)
        _of_runs(Rows.of(rng.random(p.size) < p**2, p))
    split, number, _ = np.sum(seen, axis=0)
    assert number > 3000
    assert abs(split / number - 1 / 3) < 4 * np.sqrt(2 / 9 / number)


def test_a_share_above_another_is_sure_by_an_exact_binomial_too():
    for count, number in ((34, 34), (35, 35), (90, 100), (80, 100), (95, 110), (400, 500)):
        exact = binom.sf(count - 1, number, 2 / 3) < 1e-6
        assert exact >= _is_surely_above(count, number, 2 / 3)  # a bound, and hardly more than that
    assert _is_surely_above(35, 35, 2 / 3)
    assert not _is_surely_above(34, 34, 2 / 3)
    assert not _is_surely_above(0, 0, 2 / 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["game_id", "gameId", "Patient", "USER ID", "customer-uuid", "id"])
def test_identifiers_that_repeat_are_doubted_on_the_command_line(tmp_path, name):
    columns = {"y": Y, "p": P, name: np.arange(400) // 4, "valid": np.arange(400) % 40}
    path = write_csv(tmp_path / "rows.csv", columns)
    rows = ("--label", "y", "--score", "p")
    result = run("measure", path, *rows, "--measure", "smooth_ce")
    [said] = [line for line in result.stderr.splitlines() if "warning" in line]
    assert said.startswith(
        f"warning: column {name} has 100 different values in the first 400 rows, and"
    )
    assert f"pass --clusters {name}." in said
    for given in ("--clusters", "--by"):
        result = run("measure", path, *rows, given, name, "--measure", "smooth_ce")
        assert result.exit_code == 0
        assert "warning" not in result.stderr
    page = tmp_path / "report.html"
    result = run("report", path, *rows, "-o", page)
    assert result.exit_code == 0
    assert f"pass --clusters {name}." in page.read_text(encoding="utf-8")


def test_identifiers_of_each_row_and_of_few_groups_are_not_doubted(tmp_path):
    columns = {"y": Y, "p": P, "id": np.arange(400), "model_id": np.arange(400) % 9}
    path = write_csv(tmp_path / "rows.csv", columns)
    result = run("measure", path, "--label", "y", "--score", "p", "--measure", "smooth_ce")
    assert result.exit_code == 0
    assert "warning" not in result.stderr
