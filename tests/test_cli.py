"""The command line: values, formats, exit codes, and what it says about bad input."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import caldist
from caldist.cli import _source, main
from caldist.measures.registry import MEASURES
from command_lines import HAS_DUCKDB, run, sample_rows, write_csv, write_json_lines


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
    assert "--measures all" in result.stdout + result.stderr


def test_csv_reads_back_to_the_same_numbers(file, rows):
    result = run(
        "measure", file, "--label", "won", "--score", "first", "--score", "second",
        "--measures", "all", "--format", "csv",
    )  # fmt: skip
    lines = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [line["score"] for line in lines] == ["first", "second"]
    expected = caldist.evaluate(caldist.Joint.from_arrays(rows["won"], rows["second"]))
    assert {name: float(lines[1][name]) for name in MEASURES} == {
        name: found.value for name, found in expected.items()
    }
    assert result.stderr == ""


def test_weights_and_groups(reader, file, rows):
    result = run(
        "measure", file, "--label", "won", "--score", "first", "--weight", "weight", "--by", "site",
        "--measures", "smooth_ce", "--format", "json",
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
        "measure", path, "--label", "won", "--score", "first", "--measures", "ece",
        "--format", "json",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    expected = caldist.ece(rows["won"], rows["first"])
    assert json.loads(result.stdout)["results"][0]["ece"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.skipif(not HAS_DUCKDB, reason="duckdb is not installed")
def test_parquet(tmp_path, rows):
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(rows).to_parquet(tmp_path / "rows.parquet")
    result = run(
        "measure", tmp_path / "rows.parquet", "--label", "won", "--score", "first",
        "--format", "json",
    )  # fmt: skip
    expected = caldist.smooth_ce(rows["won"], rows["first"])
    assert json.loads(result.stdout)["results"][0]["smooth_ce"] == expected


def test_parquet_without_duckdb_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(_source, "find_spec", lambda _: None)
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    result = run("measure", tmp_path / "rows.parquet", "--label", "a", "--score", "b")
    assert result.exit_code == 2
    assert "caldist[engines]" in result.stderr


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


@pytest.mark.parametrize("limit", ["0", "0.9"])
def test_fail_above_gives_exit_code_1(file, limit):
    result = run(
        "measure", file, "--label", "won", "--score", "first", "--score", "second",
        "--fail-above", limit,
    )  # fmt: skip
    assert result.exit_code == (1 if limit == "0" else 0)
    assert "smooth_ce" in result.stdout
    assert ("above 0" in result.stderr) == (limit == "0")


def test_fail_above_looks_at_the_first_measure(file, rows):
    values = {
        name: getattr(caldist, name)(rows["won"], rows["first"]) for name in ("ece", "smooth_ce")
    }
    assert values["smooth_ce"] < 0.1 < values["ece"]
    for measures, code in (("smooth_ce,ece", 0), ("ece,smooth_ce", 1)):
        options = ("--label", "won", "--score", "first", "--measures", measures)
        assert run("measure", file, *options, "--fail-above", "0.1").exit_code == code


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": 1.5}, "column 'first'[7] is 1.5"),
        ({"first": -0.25}, "column 'first'[7] is -0.25"),
        ({"first": ""}, "column 'first'[7] is nan"),
        ({"won": 2}, "column 'won'[7] is 2"),
        ({"won": ""}, "column 'won'[7] is nan"),
        ({"weight": -1}, "column 'weight'[7] is -1"),
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
        (["measure", "FILE", "--label", "won", "--score", "first", "--measures", "x"], "known are"),
        (["measure", "FILE", "-"], "cannot be combined"),
        (["measure", "FILE", "--label", "first", "--score", "won"], "Exchange --label and --score"),
        (["measure", "FILE", "--format", "xml"], "xml"),
        (["compare", "FILE", "--label", "won", "--score", "first"], "at least two"),
        (["summarize", "FILE", "--label", "won", "--score", "first", "-o", "x.csv"], ".npz"),
        (["report", "FILE", "--label", "won", "--score", "first", "-o", "x.pdf"], ".html"),
        (["merge", "FILE", "-o", "x.npz"], "not a saved joint"),
        (["test", "FILE", "--label", "won", "--score", "first", "--measure", "x"], "measure"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_usage_ends_with_exit_code_2_and_a_line(file, arguments, message):
    result = run(*(file if part == "FILE" else part for part in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_an_empty_file_is_an_error(reader, tmp_path):
    (tmp_path / "empty.csv").write_text("won,first\n")
    result = run("measure", tmp_path / "empty.csv", "--label", "won", "--score", "first")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert run("measure", "-", stdin=b"").exit_code == 2


def test_test_and_compare_agree_with_the_library(file, rows):
    options = ("--label", "won", "--resamples", "99", "--seed", "3", "--format", "json")
    tested = json.loads(run("test", file, "--score", "second", *options).stdout)
    expected = caldist.calibration_test(rows["won"], rows["second"], n_resamples=99, rng=3)
    assert tested["results"][0]["pvalue"] == expected.pvalue
    assert tested["seed"] == 3
    scores = ("--score", "first", "--score", "second")
    compared = json.loads(run("compare", file, *scores, *options).stdout)["results"][0]
    pair = caldist.compare_all(
        rows["won"], {name: rows[name] for name in ("first", "second")}, n_resamples=99, rng=3
    ).pairs["first", "second"]
    assert compared["difference"] == pair.difference
    assert (compared["low"], compared["high"]) == (pair.low, pair.high)


@pytest.mark.skipif(not HAS_DUCKDB, reason="duckdb is not installed")
def test_summaries_merge_to_what_one_pass_gives(tmp_path, rows):
    halves = [{name: column[part::2] for name, column in rows.items()} for part in (0, 1)]
    names = ("--label", "won", "--score", "first")
    for at, half in enumerate(halves):
        path = write_csv(tmp_path / f"{at}.csv", half)
        result = run("summarize", path, *names, "-o", tmp_path / f"{at}.npz")
        assert result.exit_code == 0, result.stderr
    merged = tmp_path / "all.npz"
    parts = (tmp_path / "1.npz", tmp_path / "0.npz")
    assert run("merge", *parts, "-o", merged).exit_code == 0
    whole = caldist.Joint.from_arrays(rows["won"], rows["first"]).coarsen(16)
    assert caldist.Joint.load(merged) == whole
    found = json.loads(run("measure", merged, "--format", "json").stdout)["results"]
    smooth = next(line for line in found if line["measure"] == "smooth_ce")
    assert smooth["lower"] <= caldist.smooth_ce(rows["won"], rows["first"]) <= smooth["upper"]
    assert run("measure", merged, "--fail-above", "0").exit_code == 1
    assert run("measure", merged, "--label", "won").exit_code == 2


def test_nothing_is_written_when_the_input_is_bad(tmp_path, rows):
    path = write_csv(tmp_path / "bad.csv", rows | {"first": [2.0] * 200})
    names = ("--label", "won", "--score", "first")
    out = tmp_path / "out"
    out.mkdir()
    assert run("report", path, *names, "-o", out / "report.html").exit_code == 2
    if HAS_DUCKDB:
        assert run("summarize", path, *names, "-o", out / "summary.npz").exit_code == 2
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("ending", ["html", "json", "md"])
def test_a_report_is_written_in_the_format_of_its_name(file, tmp_path, ending):
    path = tmp_path / f"report.{ending}"
    options = ("--label", "won", "--score", "first", "--by", "site", "--resamples", "99")
    result = run("report", file, *options, "-o", path)
    assert result.exit_code == 0, result.stderr
    content = path.read_text(encoding="utf-8")
    assert {"html": "<!DOCTYPE html>", "json": "caldist-report-1", "md": "# Calibration"}[
        ending
    ] in content
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
    demo = Path(caldist.__file__).parent / "_demo" / "demo.csv"
    command = [sys.executable, "-m", "caldist", "measure", str(demo), "--label", "label"]
    command += ["--score", "decision_tree", "--measures", "smooth_ce", "--format", "csv"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    header, line = done.stdout.splitlines()
    assert header == "score,rows,smooth_ce"
    assert line.startswith("decision_tree,1797,0.05")
