"""The command line: values, formats, exit codes, and what it says about bad input."""

import csv
import io
import json
import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import pandas as pd
import pytest

import caldist
from caldist._util.numbers import down
from caldist.cli import _source, main
from caldist.data import joint as data_joint
from caldist.data import rows as data_rows
from caldist.data import validate
from caldist.errors import CertificateError, InvalidInput, InvalidType, ToleranceError
from caldist.measures.registry import shown_in
from command_lines import (
    HAS_DUCKDB,
    run,
    sample_rows,
    write_csv,
    write_json_lines,
)


@pytest.fixture(params=["duckdb", "standard library"])
def reader(request, monkeypatch):
    """Read files in both ways."""
    if request.param == "duckdb" and not HAS_DUCKDB:
        pytest.skip("duckdb is not installed")
    if request.param == "standard library":
        monkeypatch.setattr(_source, "find_spec", lambda _: None)


@pytest.fixture
def rows():
    return sample_rows()


@pytest.fixture
def file(tmp_path, rows):
    return write_csv(tmp_path / "rows.csv", rows)


def test_json_has_full_precision_and_says_what_was_read(reader, file, rows):
    result = run("measure", file, "--label", "won", "--score", "first", "--format", "json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    [line] = found["results"]
    assert line["smooth_ce"] == caldist.smooth_ce(rows["won"], rows["first"])
    assert line["lower_distance"] == caldist.lower_distance(rows["won"], rows["first"])
    assert (line["score"], line["rows"], found["label"]) == ("first", 200, "won")


@pytest.mark.parametrize("style", ["table", "json", "csv", "markdown"])
def test_every_format_has_smooth_ce_and_says_what_is_left_out(file, style):
    result = run("measure", file, "--label", "won", "--score", "first", "--format", style)
    assert "smooth_ce" in result.stdout
    assert "ecce_mad" in result.stdout + result.stderr
    assert "--measure all" in result.stdout + result.stderr


def test_csv_reads_back_to_the_same_numbers(file, rows):
    result = run(
        "measure", file, "--label", "won", "--score", "first", "--score", "second",
        "--measure", "all", "--format", "csv",
    )  # fmt: skip
    lines = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [line["score"] for line in lines] == ["first", "second"]
    expected = caldist.evaluate(caldist.Joint.from_arrays(rows["won"], rows["second"]))
    assert list(lines[1]) == ["score", "rows", *expected]
    assert {name: float(lines[1][name]) for name in expected} == {
        name: found.value for name, found in expected.items()
    }
    assert result.stderr == ""


def test_the_measures_are_those_that_say_so(file):
    command = ("measure", file, "--label", "won", "--score", "first", "--format", "json")
    for options, expected in (
        ((), shown_in("measure")),
        (("--measure", "all"), shown_in("evaluate")),
        (("--measure", "ece,  log_loss,ece"), [caldist.ece, caldist.log_loss]),
        (("--measure", "ece", "--measure", "log_loss"), [caldist.ece, caldist.log_loss]),
    ):
        [line] = json.loads(run(*command, *options).stdout)["results"]
        assert list(line) == ["score", "file", "rows", *map(str, expected), "lower", "upper"]


def test_a_value_that_is_not_finite(tmp_path):
    path = write_csv(tmp_path / "certain.csv", {"y": [1, 0], "p": [0.0, 0.5]})
    options = ("--label", "y", "--score", "p", "--measure", "log_loss,normalized_cross_entropy")
    [line] = json.loads(run("measure", path, *options, "--format", "json").stdout)["results"]
    assert (line["log_loss"], line["normalized_cross_entropy"]) == ("Infinity", "-Infinity")
    assert "p,2,inf,-inf" in run("measure", path, *options, "--format", "csv").stdout
    refused = run("measure", path, *options, "--fail-above", "1e300")
    assert refused.exit_code == 2
    assert "--fail-above cannot be judged by log_loss" in refused.stderr


def test_weights_and_groups(reader, file, rows):
    result = run(
        "measure", file, "--label", "won", "--score", "first", "--weight", "weight", "--by", "site",
        "--measure", "smooth_ce", "--format", "json",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    for line in json.loads(result.stdout)["results"]:
        inside = rows["site"] == line["group"]
        assert line["rows"] == inside.sum()
        assert line["smooth_ce"] == caldist.smooth_ce(
            rows["won"][inside], rows["first"][inside], sample_weight=rows["weight"][inside]
        )


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "ndjson"])
def test_kinds_of_files(reader, tmp_path, rows, ending):
    path = tmp_path / f"rows.{ending}"
    if ending in {"csv", "tsv"}:
        write_csv(path, rows, "," if ending == "csv" else "\t")
    else:
        write_json_lines(path, rows)
    result = run(
        "measure", path, "--label", "won", "--score", "first", "--measure", "ece",
        "--format", "json",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    expected = caldist.ece(rows["won"], rows["first"])
    assert json.loads(result.stdout)["results"][0]["ece"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.skipif(not HAS_DUCKDB, reason="duckdb is not installed")
def test_parquet(tmp_path, rows):
    pd.DataFrame(rows).to_parquet(tmp_path / "rows.parquet")
    result = run(
        "measure", tmp_path / "rows.parquet", "--label", "won", "--score", "first",
        "--format", "json",
    )  # fmt: skip
    expected = caldist.smooth_ce(rows["won"], rows["first"])
    assert json.loads(result.stdout)["results"][0]["smooth_ce"] == expected


def test_a_glob_and_several_files_are_one_table(reader, tmp_path, rows):
    halves = [{name: column[part::2] for name, column in rows.items()} for part in (0, 1)]
    paths = [write_csv(tmp_path / f"part{at}.csv", half) for at, half in enumerate(halves)]
    expected = caldist.smooth_ce(rows["won"], rows["first"])
    for files in ([tmp_path / "part*.csv"], paths):
        result = run("measure", *files, "--label", "won", "--score", "first", "--format", "json")
        [line] = json.loads(result.stdout)["results"]
        assert line["smooth_ce"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_standard_input(reader, tmp_path, rows, ending):
    write = write_csv if ending == "csv" else write_json_lines
    content = write(tmp_path / f"rows.{ending}", rows).read_bytes()
    result = run(
        "measure", "-", "--label", "won", "--score", "first", "--format", "json", stdin=content
    )
    assert result.exit_code == 0, result.stderr
    [line] = json.loads(result.stdout)["results"]
    assert line["smooth_ce"] == caldist.smooth_ce(rows["won"], rows["first"])


def test_columns_are_guessed_where_unambiguous_and_said(reader, tmp_path, rows):
    few = {name: rows[name] for name in ("won", "first", "site")}
    path = write_csv(tmp_path / "few.csv", few)
    result = run("measure", path, "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert "using label 'won' and score 'first'" in result.stderr
    assert json.loads(result.stdout)["label"] == "won"


def test_columns_are_not_guessed_where_ambiguous(reader, file):
    result = run("measure", file)
    assert result.exit_code == 2
    assert "2 columns do: first, second" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("option", ["--fail-above", "--require-below"])
@pytest.mark.parametrize("limit", ["nan", "inf", "-inf", "-0.1", "1e999", "1", "5", "100"])
def test_a_limit_that_limits_nothing_is_refused(file, option, limit):
    result = run("measure", file, "--label", "won", "--score", "first", option, limit)
    assert result.exit_code == 2
    between = {"--fail-above": "be at least 0 and below 1", "--require-below": "lie strictly bet"}
    assert f"{option} is {float(limit)}: it must {between[option]}" in result.stderr
    assert ("For 5% pass 0.05." in result.stderr) == (limit == "5")
    assert result.stdout == ""


def test_nothing_can_be_required_to_be_below_zero(file):
    result = run("measure", file, "--label", "won", "--score", "first", "--require-below", "0")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--require-below is 0.0" in result.stderr


@pytest.mark.parametrize(
    ("option", "limit", "code"),
    [
        ("--fail-above", "0", 1),  # the second score is far from calibrated
        ("--fail-above", "0.9", 0),
        ("--require-below", "0.0001", 1),
        ("--require-below", "0.15", 3),
        ("--require-below", "0.9", 0),
    ],
)
def test_gates_have_three_outcomes(file, rows, option, limit, code):
    result = run(
        "measure", file, "--label", "won", "--score", "first", "--score", "second", option, limit,
        "--format", "json",
    )  # fmt: skip
    assert result.exit_code == code
    lines = json.loads(result.stdout)["results"]
    for line in lines:
        found = caldist.gate(
            rows["won"], rows[line["score"]], tolerance=float(limit), measure="smooth_ce"
        )
        assert (line["lower_limit"], line["upper_limit"]) == (found.lower, found.upper)
        assert (line["decision"], line["limit"]) == (found.outcome, float(limit))
    second = lines[1]["lower_limit"]
    if code == 1:
        words = (
            f"smooth_ce is above {limit}, with 95% confidence: second (at least {down(second, 6)})"
        )
        assert words in result.stderr
    assert ("undecided: not enough rows" in result.stderr) == (
        option == "--require-below" and code != 0
    )


def test_a_calibrated_model_does_not_fail_though_its_value_exceeds_the_limit(file, rows):
    value = caldist.smooth_ce(rows["won"], rows["first"])
    options = ("--label", "won", "--score", "first", "--measure", "smooth_ce")
    limit = str(value / 2)
    assert run("measure", file, *options, "--fail-above", limit).exit_code == 0
    assert run("measure", file, *options, "--require-below", limit).exit_code == 3


def test_both_limits_and_clusters(file, rows):
    options = ("--label", "won", "--score", "second", "--clusters", "team")
    both = ("--fail-above", "0.9", "--require-below", "0.01", "--format", "json")
    result = run("measure", file, *options, *both)
    [line] = json.loads(result.stdout)["results"]
    found = caldist.gate(
        rows["won"], rows["second"], tolerance=0.01, measure="smooth_ce", clusters=rows["team"]
    )
    assert line["lower_limit"] == found.lower
    assert (line["decision"], line["limit"]) == (found.outcome, 0.01)  # the worse of both
    assert result.exit_code == {"fail": 1, "undecided": 3}[found.outcome]


def test_gates_look_at_the_first_measure(file):
    for measures, code in (("smooth_ce,ece", 0), ("ece,smooth_ce", 2)):
        options = ("--label", "won", "--score", "first", "--measure", measures)
        result = run("measure", file, *options, "--fail-above", "0.1")
        assert result.exit_code == code
        assert ("cannot be judged by ece" in result.stderr) == (code == 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": 1.5}, "bad.csv, line 9: column 'first' is '1.5': a probability"),
        ({"first": -0.25}, "bad.csv, line 9: column 'first' is '-0.25': a probability"),
        ({"first": ""}, "bad.csv, line 9: column 'first' is empty: a value is missing. Fill it"),
        ({"won": 2}, "bad.csv, line 9: column 'won' is '2': a label is 0 or 1."),
        ({"won": ""}, "bad.csv, line 9: column 'won' is empty: a value is missing. Fill it"),
        ({"weight": -1}, "bad.csv, line 9: column 'weight' is '-1': it must not be negative"),
    ],
)
def test_a_bad_value_is_an_error_with_its_place(reader, tmp_path, rows, change, message):
    [(name, value)] = change.items()
    column = list(rows[name])
    column[7] = value
    path = write_csv(tmp_path / "bad.csv", rows | {name: column})
    options = ("--label", "won", "--score", "first", "--weight", "weight")
    result = run("measure", path, *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["measure", "absent.csv"], "no such file"),
        (["measure", "FILE", "--label", "wom", "--score", "first"], "Did you mean 'won'"),
        (["measure", "FILE", "--label", "site", "--score", "first"], "not text"),
        (
            ["measure", "FILE", "--label", "won", "--score", "first", "--measure", "x"],
            "smooth_ce, ",
        ),
        (["measure", "FILE", "--measure", " ,"], "--measure names no measure"),
        (
            ["measure", "FILE", "--measure", "weighted_ce"],
            "--measure is 'weighted_ce': this measure needs",
        ),
        (["measure", "FILE", "--groups", "site"], "--groups"),
        (["test", "FILE", "--by", "site"], "--by"),
        (["test", "FILE", "--groups", "site"], "--groups"),
        (["measure", "FILE", "-"], "cannot be combined"),
        (["measure", "FILE", "--label", "first", "--score", "won"], "Exchange --label and --score"),
        (["measure", "FILE", "--format", "xml"], "xml"),
        (["compare", "FILE", "--label", "won", "--score", "first"], "at least two"),
        (["summarize", "FILE", "--label", "won", "--score", "first", "-o", "x.csv"], ".npz"),
        (["report", "FILE", "--label", "won", "--score", "first", "-o", "x.md"], ".html, .json"),
        (["measure", "FILE", "--measure", "ece", "--measure", "all"], "'all' among other names"),
        (["test", "FILE", "--measure", "ece", "--measure", "smooth_ce"], "test takes one measure"),
        (["compare", "FILE", "--measure", "ece,smooth_ce"], "compare takes one measure"),
        (["measure", "FILE", "--by", "site", "--by", "team"], "--by was given 2 times"),
        (["merge", "FILE", "-o", "x.npz"], "merge"),
        (["--debug", "measure", "FILE"], "--debug"),
        (["test", "FILE", "--label", "won", "--score", "first", "--measure", "x"], "measure"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_usage_ends_with_exit_code_2_and_a_line(file, arguments, message):
    result = run(*(file if part == "FILE" else part for part in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


BREAKDOWNS = [
    (MemoryError, "", "Error: not enough memory."),
    (MemoryError, "8 bits would fit", "Error: not enough memory: 8 bits would fit"),
    (KeyError, "cell", "Error: KeyError: 'cell'. This is a bug in caldist: please report it"),
    (AssertionError, "", "Error: AssertionError. This is a bug in caldist: please report it"),
    (RecursionError, "too deep.\nmore", "Error: RecursionError: too deep. This is a bug"),
    (EOFError, "", "Error: EOFError. This is a bug"),
    (ValueError, "math domain error", "Error: ValueError: math domain error. This is a bug"),
    (TypeError, "no len()", "Error: TypeError: no len(). This is a bug"),
    (ZeroDivisionError, "by zero", "Error: ZeroDivisionError: by zero. This is a bug"),
]


@pytest.mark.parametrize(("error", "text", "message"), BREAKDOWNS)
def test_what_is_no_fault_of_the_input_ends_with_exit_code_70(
    monkeypatch, file, error, text, message
):
    def fail(*_, **__):
        raise error(text)

    monkeypatch.setattr("caldist.measures.evaluation.evaluate", fail)
    command = ("measure", file, "--label", "won", "--score", "first")
    result = run(*command)
    assert result.exit_code == 70
    assert result.stderr.startswith(message)
    assert ("CALDIST_DEBUG=1 caldist measure" in result.stderr) == (error is not MemoryError)
    assert len(result.stderr.splitlines()) == 1
    monkeypatch.setenv("CALDIST_DEBUG", "1")
    traced = run(*command)
    assert traced.exit_code == 70
    assert traced.stderr.startswith("Traceback")
    assert traced.stderr.rstrip().splitlines()[-1].startswith((error.__name__, "more"))


REFUSALS = [
    (InvalidInput(argument="line 3", reason="is broken"), "line 3 is broken"),
    (InvalidInput(argument="label", reason="is a set"), "--label is a set"),
    (InvalidType(argument="y_prob", value=1, reason="no column"), "y_prob is 1: no column"),
    (OSError("the disk is gone"), "the disk is gone"),
    (ImportError("jinja2 is missing"), "jinja2 is missing"),
    (ToleranceError("tol cannot be met", 0.1, 0.2), "tol cannot be met"),
    (CertificateError("the proof does not hold"), "the proof does not hold"),
]


@pytest.mark.parametrize(("error", "message"), REFUSALS)
def test_what_is_refused_ends_with_exit_code_2(monkeypatch, file, error, message):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("caldist.measures.evaluation.evaluate", fail)
    result = run("measure", file, "--label", "won", "--score", "first")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {message}")
    assert len(result.stderr.splitlines()) == 1


def test_debug_shows_where_input_was_refused_and_changes_no_exit_code(file, monkeypatch):
    wrong = ("measure", file, "--label", "first", "--score", "won")
    plain = run(*wrong)
    monkeypatch.setenv("CALDIST_DEBUG", "1")
    traced = run(*wrong)
    assert traced.exit_code == plain.exit_code == 2
    assert "Traceback" in traced.stderr
    assert "Traceback" not in plain.stderr
    right = ("measure", file, "--label", "won", "--score", "first", "--fail-above")
    for limit, code in (("0", 0), ("0.9", 0)):
        result = run(*right, limit)
        assert result.exit_code == code
        assert "Traceback" not in result.output
    assert run("measure", "--nonsense").exit_code == 2


def test_the_help_lists_the_exit_codes():
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text("utf-8")
    for code in (0, 1, 2, 3, 70, 130):
        assert f"\n    {code} " in run("--help").stdout
        assert f"\n| {code} |" in page


def test_an_empty_file_is_an_error(reader, tmp_path):
    (tmp_path / "empty.csv").write_text("won,first\n")
    result = run("measure", tmp_path / "empty.csv", "--label", "won", "--score", "first")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert run("measure", "-", stdin=b"").exit_code == 2


@pytest.mark.parametrize("options", [(), ("--weight", "weight"), ("--clusters", "team")])
def test_test_and_compare_agree_with_the_library(reader, file, rows, options):
    names = {"--weight": "sample_weight", "--clusters": "clusters"}
    given = {names[options[0]]: rows[options[1]]} if options else {}
    shared = ("--label", "won", "--format", "json", *options)
    draws = {"n_resamples": 99, "rng": 0, **given}
    found = json.loads(run("test", file, "--score", "second", *shared).stdout)
    expected = caldist.calibration_test(rows["won"], rows["second"], **draws)
    assert found["results"][0] == {
        "score": "second",
        "file": None,
        "rows": 200,
        "measure": "auto",
        "statistic": expected.statistic,
        "pvalue": expected.pvalue,
        "rounding": 0.0,
    }
    assert (found["seed"], found["notes"]) == (0, [])
    assert found["clusters"] == ("team" if options[:1] == ("--clusters",) else None)
    scores = ("--score", "first", "--score", "second")
    [compared] = json.loads(run("compare", file, *scores, *shared).stdout)["results"]
    pair = caldist.inference.compare_all(
        rows["won"], {name: rows[name] for name in ("first", "second")}, **draws
    ).pairs["first", "second"]
    assert compared == {
        "score_a": "first",
        "file_a": None,
        "score_b": "second",
        "file_b": None,
        "smooth_ce_a": pair.value_a,
        "smooth_ce_b": pair.value_b,
        **{key: getattr(pair, key) for key in ("difference", "lower", "upper", "pvalue")},
        "rounding": 0.0,
    }


def test_a_tolerance_is_tested(file, rows):
    options = ("--label", "won", "--score", "second", "--tolerance", "0.01")
    found = json.loads(run("test", file, *options, "--format", "json").stdout)
    expected = caldist.calibration_test(
        rows["won"], rows["second"], tolerance=0.01, n_resamples=99, rng=0
    )
    assert (found["tolerance"], found["results"][0]["pvalue"]) == (0.01, expected.pvalue)


def test_a_warning_about_the_data_is_a_note(tmp_path, rows):
    few = {name: column[:12] for name, column in rows.items()}
    command = ("compare", write_csv(tmp_path / "few.csv", few), "--label", "won")
    command += ("--score", "first", "--score", "second", "--format")
    [note] = json.loads(run(*command, "json").stdout)["notes"]
    assert note.startswith("only ")
    for style in ("csv", "markdown"):
        assert run(*command, style).stderr == f"{note}\n"
    assert run(*command, "table").stdout.endswith(f"\n\n{note}\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("measure", ()),
        ("measure", ("--by", "site")),
        ("measure", ("--weight", "weight", "--by", "site")),
        ("test", ()),
        ("test", ("--weight", "weight", "--clusters", "team")),
        ("compare", ()),
        ("compare", ("--weight", "weight", "--clusters", "team")),
        pytest.param("report", ("--by", "site")),
        pytest.param("report", ("--weight", "weight", "--clusters", "team")),
    ],
)
def test_rows_are_checked_once_and_sorted_once(monkeypatch, tmp_path, file, command, more):
    if command == "report":
        more += ("-o", tmp_path / "report.json")
    calls = Counter()

    def counted(module, name):
        function = getattr(module, name)

        def count(*args, **kwargs):
            calls[name] += 1
            return function(*args, **kwargs)

        monkeypatch.setattr(module, name, count)

    for name in ("labels", "probabilities", "weights"):
        counted(validate, name)
    counted(data_rows, "sorting_order")
    counted(data_joint, "sort_rows")
    counted(data_rows, "sort_residuals")
    scores = ("--score", "first", "--score", "second")
    assert run(command, file, "--label", "won", *scores, *more).exit_code == 0
    assert (calls["labels"], calls["probabilities"]) == (1, 2)
    assert calls["weights"] == ("--weight" in more)
    assert calls["sorting_order"] + calls["sort_rows"] + calls["sort_residuals"] == 2


def test_nothing_is_written_when_the_input_is_bad(tmp_path, rows):
    path = write_csv(tmp_path / "bad.csv", rows | {"first": [2.0] * 200})
    names = ("--label", "won", "--score", "first")
    out = tmp_path / "out"
    out.mkdir()
    assert run("report", path, *names, "-o", out / "report.html").exit_code == 2
    if HAS_DUCKDB:
        assert run("summarize", path, *names, "-o", out / "summary.npz").exit_code == 2
    assert list(out.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["html", "json"])
def test_a_report_is_written_in_the_format_of_its_name(file, tmp_path, ending):
    path = tmp_path / f"report.{ending}"
    options = ("--label", "won", "--score", "first", "--by", "site", "--clusters", "team")
    options += ("--weight", "weight")
    result = run("report", file, *options, "-o", path)
    assert result.exit_code == 0, result.stderr
    content = path.read_text(encoding="utf-8")
    assert {"html": "<!DOCTYPE html>", "json": "caldist-report-1"}[ending] in content
    assert "confidence this model is at most" in result.stdout


def test_help_of_every_command():
    for name in main.commands:
        result = run(name, "--help")
        assert result.exit_code == 0
        assert "Usage:" in result.stdout


def test_help_imports_neither_scipy_nor_engines():
    code = (
        "import sys; from click.testing import CliRunner; from caldist.cli import main;"
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0;"
        "heavy = {'scipy', 'matplotlib', 'duckdb', 'narwhals', 'pandas', 'torch', 'tqdm'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_program_runs_as_a_module():
    demo = Path(caldist.__file__).parent / "datasets" / "demo.csv"
    command = [sys.executable, "-m", "caldist", "measure", str(demo), "--label", "label"]
    command += ["--score", "decision_tree", "--measure", "smooth_ce", "--format", "csv"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    header, line = done.stdout.splitlines()
    assert header == "score,rows,smooth_ce"
    assert line.startswith("decision_tree,1797,0.05")


def test_a_small_pvalue_fails_where_that_is_asked_for(file):
    options = ("--label", "won", "--score", "first", "--score", "second")
    assert run("test", file, *options).exit_code == 0
    failed = run("test", file, *options, "--fail-below", "0.05", "--format", "json")
    assert failed.exit_code == 1
    lines = json.loads(failed.stdout)["results"]
    found = {line["score"]: line["pvalue"] for line in lines}
    assert found["first"] >= 0.05 > found["second"]
    assert f"failed: the p-value is below 0.05: second ({found['second']:.3g})" in failed.stderr
    assert run("test", file, *options[:4], "--fail-below", "0.05").exit_code == 0
    for option, wrong in product(("--fail-below", "--tolerance"), ("1", "1.5", "nan", "5")):
        refused = run("test", file, *options, option, wrong)
        assert refused.exit_code == 2
        assert f"{option} is {float(wrong)}" in refused.stderr
        assert ("For 5% pass 0.05." in refused.stderr) == (wrong == "5")
    assert run("test", file, *options, "--fail-below", "0").exit_code == 2


@pytest.mark.slow
def test_a_report_goes_to_standard_output(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ("--label", "won", "--score", "first", "--drop-missing")
    result = run("report", file, *options, "-o", "-")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("<!DOCTYPE html>")
    assert result.stdout.rstrip().endswith("</html>")
    assert "confidence this model is at most" in result.stderr
    assert "no row was left out" in result.stderr
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("gone", "now"),
    [
        ("repair", "caldist recalibrate"),
        ("merge", "caldist summarize"),
        ("paper", "python -m caldist.paper"),
    ],
)
def test_a_command_that_was_renamed_is_answered_with_the_new_one(gone, now):
    done = run(gone, "rows.csv")
    assert done.exit_code == 2
    assert f"No such command '{gone}': it is '{now}' now." in done.stderr


@pytest.mark.parametrize("bits", [-1, 0, 31])
def test_summaries_have_1_to_30_bits(bits):
    done = run("summarize", "rows.csv", "--bits", bits, "-o", "rows.npz")
    assert done.exit_code == 2
    assert "--bits" in done.stderr


def test_a_file_that_is_not_there_is_named():
    done = run("verify", "nothing.npz")
    assert (done.exit_code, done.stderr) == (2, "nothing.npz: No such file or directory\n")
