"""Names from the data, in every output: shown, never obeyed."""

import csv
import io
import json
import re

import numpy as np
import pytest

import caldist
from caldist._util import escaping
from caldist.reporting import monitor_report
from command_lines import run, write_csv, write_json_lines

# Clears the screen, renames the window, rings, goes back, a C1 control, NUL, writes backwards.
HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\x9b31m\x00\u202e"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
STYLES = ["table", "csv", "markdown", "json"]
FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1+1"]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    p = rng.random(80)
    return {"won": (rng.random(80) < p).astype(int), "p": p, "site": ["a", HOSTILE + "b"] * 40}


def is_clean(text):
    return OBEYED.search(text) is None


@pytest.mark.parametrize("style", STYLES)
def test_measure_shows_control_characters(tmp_path, rows, style):
    path = write_json_lines(tmp_path / "rows.jsonl", rows)
    options = ("--label", "won", "--score", "p", "--by", "site", "--format", style)
    result = run("measure", path, *options, "--fail-above", "0.00001")
    assert result.exit_code in (0, 1), result.output
    assert is_clean(result.stdout)
    assert is_clean(result.stderr)
    shown = {"json": r"\u001b[2J", "markdown": r"\\x1b\[2J"}.get(style, r"\x1b[2J")
    assert shown in result.stdout


@pytest.mark.parametrize(
    "command", ["measure", "test", "report", "recalibrate", "monitor", "summarize"]
)
def test_a_refused_name_is_shown_in_the_message(tmp_path, rows, command):
    path = write_json_lines(tmp_path / "rows.jsonl", {HOSTILE: rows["p"], **rows})
    out = {"report": ".html", "recalibrate": ".json", "summarize": ".npz"}.get(command)
    more = ["-o", tmp_path / f"out{out}"] if out else []
    more += ["--state", tmp_path / "state.npz", "--date", "site"] if command == "monitor" else []
    result = run(command, path, "--label", "won", "--score", f"no{HOSTILE}", *more)
    assert result.exit_code == 2
    assert is_clean(result.stderr)
    assert "x1b[2J" in result.stderr


def test_usage_errors_show_control_characters(tmp_path):
    for arguments in ([f"--{HOSTILE}"], [HOSTILE], ["verify", tmp_path / "\x1b[2J.npz"]):
        result = run(*arguments)
        assert result.exit_code == 2
        assert is_clean(result.stderr)
        assert r"\x1b[2J" in result.stderr


def test_a_file_whose_name_is_no_text(tmp_path):
    result = run("measure", str(tmp_path / "\udcff.csv"))  # a byte that is not UTF-8
    assert result.exit_code == 2
    assert r"\udcff.csv" in result.stderr


def test_recalibration_and_apply_show_control_characters(tmp_path, rows):
    pytest.importorskip("duckdb")
    table = write_csv(tmp_path / "rows.csv", {"won": rows["won"], "p": rows["p"]})
    named = tmp_path / "\x1b[2Jmap.json"
    found = run("recalibrate", table, "--label", "won", "--score", "p", "-o", named)
    assert found.exit_code == 0, found.output
    assert is_clean(found.output)
    options = ("--score", "p", "--column", "\x1b[2Jq", "-o", tmp_path / "out.csv")
    applied = run("apply", named, table, *options)
    assert applied.exit_code == 0, applied.output
    assert is_clean(applied.output)
    assert r"\x1b[2Jq from p" in applied.output


@pytest.mark.parametrize("style", ["table", "csv", "json", "prometheus"])
def test_monitor_shows_control_characters(tmp_path, style):
    pytest.importorskip("duckdb")
    rng = np.random.default_rng(1)
    p = rng.random(1200)
    rows = {
        "day": ["2026-11-01", "2026-11-02"] * 600,
        "won": (rng.random(1200) < p**4).astype(int),
        "p": p,
        "site": ["\x1b[2Ja", "=1+1", "\x9bc"] * 400,
    }
    path = write_json_lines(tmp_path / "rows.jsonl", rows)
    state = tmp_path / "\x1b[2Js.npz"
    options = ("--label", "won", "--score", "p", "--date", "day", "--by", "site")
    result = run("monitor", path, *options, "--state", state, "--format", style)
    assert result.exit_code == 0, result.output
    assert "x1b[2J" in result.stdout or r"\u001b" in result.stdout
    assert is_clean(result.stdout)
    assert is_clean(result.stderr)
    assert "alarm on" in result.stderr
    if style == "prometheus":
        assert r'group="\\x1b[2Ja"' in result.stdout  # in which \x would be an error


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_text_in_csv(tmp_path, rows, name):
    path = write_json_lines(tmp_path / "rows.jsonl", rows | {"site": [name, "-1"] * 40})
    options = ("--label", "won", "--score", "p", "--by", "site", "--format", "csv")
    cells = [
        line["group"] for line in csv.DictReader(io.StringIO(run("measure", path, *options).stdout))
    ]
    assert "-1" in cells
    [found] = set(cells) - {"-1"}
    assert found.startswith("'" + name.strip()[0] if name.strip() == name else "'")
    exact = json.loads(run("measure", path, *options[:-1], "json").stdout)["results"]
    assert name in {line["group"] for line in exact}


def test_numbers_and_words_stay_as_they_are():
    for text in ("-1", "+2.5e-3", "-.5", "a=b", "", "Köln", "日本", "a\tb"):
        assert escaping.for_csv(text) == text


@pytest.mark.slow
def test_reports_hold_no_control_characters(rows):
    model, group = f"m{HOSTILE}", [f"g{HOSTILE}", "b\ud800"] * 40
    found = caldist.report(rows["won"], {model: rows["p"]}, by=group, n_resamples=99)
    for text in (found.to_html(), str(found), found.to_json()):
        assert is_clean(text)
        text.encode("utf-8")
    assert is_clean(found._repr_html_())
    assert {line.group for line in found.groups} == set(group)


def test_results_hold_no_control_characters(rows):
    group = [f"g{HOSTILE}", "b"] * 40
    groups = caldist.evaluate_groups(rows["won"], rows["p"], by=group, n_resamples=99)
    monitor = caldist.Monitor(by=sorted(set(group)))
    step = monitor.update(rows["won"], rows["p"], by=group, batch=f"d{HOSTILE}")
    page = monitor_report(monitor, name=HOSTILE)
    for text in (str(groups), groups._repr_html_(), str(step), step._repr_html_()):
        assert is_clean(text)
    assert is_clean(str(page))
    assert is_clean(page.to_html())
