"""The command line on files as people have them: columns, encodings, names, interruptions."""

import gzip
import io
import json
import os
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import caldist
from caldist._util.numbers import down
from caldist.cli import _columns, _source
from caldist.cli._progress import working
from caldist.errors import ToleranceError
from command_lines import HAS_DUCKDB, run, sample_rows, write_csv, write_json_lines

COLUMNS = ("--label", "y", "--score", "p")


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


def test_a_missing_value_makes_no_column_the_obvious_one(reader, tmp_path, rows):
    gaps = ["" if at == 7 else value for at, value in enumerate(rows["second"])]
    few = {"won": rows["won"], "first": rows["first"], "second": gaps}
    result = run("measure", write_csv(tmp_path / "gaps.csv", few))
    assert result.exit_code == 2
    assert "2 columns do: first, second" in result.stderr


@pytest.mark.parametrize("kind", ["csv", "jsonl", "csv.gz", "parquet"])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize(
    "command",
    [
        ("measure", *COLUMNS),
        ("report", *COLUMNS, "-o", "out.html"),
        ("test", *COLUMNS),
        ("compare", *COLUMNS, "--score", "day"),
        ("recalibrate", *COLUMNS, "-o", "out.json"),
        ("summarize", *COLUMNS, "-o", "out.npz"),
        ("monitor", *COLUMNS, "--date", "day", "--state", "out.npz"),
        ("apply", "map.json", "--score", "p", "--column", "q", "-o", "out.csv"),
    ],
    ids=lambda command: command[0],
)
def test_an_empty_file_is_refused_by_every_command(tmp_path, monkeypatch, kind, header, command):
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    caldist.recalibration.CalibrationMap([0.0, 1.0], [0.25, 0.75]).save("map.json")
    content = b""
    if kind == "parquet" and header:
        empty = pd.DataFrame({"day": pd.Series([], dtype="datetime64[s]")})
        content = empty.assign(y=1.0, p=0.5).to_parquet()
    elif header:
        content = b"\n\n" if kind == "jsonl" else b"day,y,p\n"
    (tmp_path / f"rows.{kind}").write_bytes(
        gzip.compress(content) if kind.endswith("gz") else content
    )
    at = 2 if command[0] == "apply" else 1
    result = run(*command[:at], f"rows.{kind}", *command[at:])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "empty" in result.stderr or "no rows" in result.stderr or "too small" in result.stderr
    assert [path.name for path in tmp_path.glob("out*")] == []


def test_a_monitor_names_standard_input_that_has_no_rows(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    state = ("--date", "day", "--state", "state.npz")
    result = run("monitor", "-", *COLUMNS, *state, stdin="day,y,p\n")
    assert result.exit_code == 2
    assert "standard input has no rows" in result.stderr


def test_fail_above_names_what_exceeds_it(file):
    options = ("--label", "won", "--score", "second", "--by", "site", "--measure", "smooth_ce")
    result = run("measure", file, *options, "--fail-above", "0", "--format", "json")
    line = json.loads(result.stdout)["results"][1]
    assert line["lower_limit"] > 0
    assert f"second / south, east (at least {down(line['lower_limit'], 6)})" in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["report", "FILE", "-o", "OUT.html"],
        ["summarize", "FILE", "-o", "OUT.npz"],
    ],
)
def test_a_missing_folder_is_said_before_anything_is_computed(file, tmp_path, command):
    away = str(tmp_path / "away" / "x")
    names = {"FILE": str(file), "OUT.html": f"{away}.html", "OUT.npz": f"{away}.npz"}
    result = run(*(names.get(part, part) for part in command))
    assert result.exit_code == 2
    assert "there is no folder" in result.stderr


def test_what_is_not_installed_is_said_before_anything_is_read(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = run("report", "absent.csv")
    assert result.exit_code == 2
    assert "caldist[report]" in result.stderr


def test_markdown_escapes_what_comes_from_the_data(tmp_path, rows):
    hostile = "<b>a|b</b> *c*"
    few = {"won": rows["won"], hostile: rows["first"]}
    path = write_csv(tmp_path / "hostile.csv", few)
    result = run("measure", path, "--measure", "ece", "--format", "markdown")
    assert result.stdout.splitlines()[2].startswith("| &lt;b&gt;a\\|b&lt;/b&gt; \\*c\\* | 200 |")


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffy,p\n0,0.25\n1,0.5\n",
        "y;p\r\n0;0.25\r\n1;0.5\r\n",
        'y,"a ""note""",p\n0,"two\nlines; one",0.25\n1,b,0.5\n',
        "y,p\nfalse,0.25\nTRUE,0.5\n",
        "y,p,п\n0,0.25,a\n1,0.5,b\n",
    ],
    ids=["byte order mark", "semicolons and CRLF", "quoted line break", "booleans", "unicode"],
)
def test_kinds_of_csv(reader, tmp_path, content):
    path = tmp_path / "rows.csv"
    path.write_bytes(content.encode("utf-8"))
    result = run("measure", path, "--label", "y", "--score", "p", "--format", "json")
    assert result.exit_code == 0, result.stderr
    [line] = json.loads(result.stdout)["results"]
    assert line["smooth_ce"] == caldist.smooth_ce([0, 1], [0.25, 0.5])


def test_nested_json_beside_the_columns_does_no_harm(reader, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"y": 1, "p": 0.5, "m": {"a": 1}}\n{"y": 0, "p": 0.25, "m": {"a": [2]}}\n')
    result = run("measure", path, "--measure", "ece", "--format", "csv")
    assert result.stdout.splitlines()[1].startswith("p,2,")


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt, 130), (ToleranceError("not reached", 0.1, 0.2), 2)]
)
def test_an_interruption_is_not_an_exceeded_limit(monkeypatch, file, error, code):
    def stop(*_, **__):
        raise error

    monkeypatch.setattr("caldist.measures.evaluation.evaluate", stop)
    assert run("measure", file, "--label", "won", "--score", "first").exit_code == code


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_pipe_that_nobody_reads_is_no_exceeded_limit(file):
    command = [sys.executable, "-m", "caldist", "measure", str(file), "--label", "won"]
    command += ["--score", "first", "--fail-above", "0.9"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (2, "Error: [Errno 32] Broken pipe\n")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "shown"), [(Terminal, True), (io.StringIO, False)])
def test_a_sign_of_life_on_a_terminal_only(monkeypatch, stream, shown):
    terminal = stream()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("caldist.cli._progress.DELAY", 0.01)
    with working("reading"):
        time.sleep(0.2)
    assert ("reading" in terminal.getvalue()) == shown


def test_what_is_quick_shows_nothing(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with working("reading"):
        pass
    assert terminal.getvalue() == ""


def test_whole_numbers_stay_whole_as_names_of_groups(reader, tmp_path):
    rows = {"won": [0, 1] * 20, "p": [0.25, 0.75] * 20, "season": [2020] * 20 + [2021] * 20}
    path = write_csv(tmp_path / "seasons.csv", rows)
    options = ("--label", "won", "--score", "p", "--by", "season", "--format", "json")
    found = json.loads(run("measure", path, *options).stdout)["results"]
    assert [line["group"] for line in found] == ["2020", "2021"]


def test_sub_groups_come_in_their_order(reader, tmp_path):
    rows = {"won": [0, 1] * 20, "p": [0.25, 0.75] * 20, "team": [10] * 20 + [9] * 20}
    for column, expected in (
        ([10] * 20 + [9] * 20, ["9", "10"]),
        (["b", "a"] * 20, ["a", "b"]),
        ([2.0, 1.5] * 20, ["1.5", "2.0"]),
    ):
        path = write_csv(tmp_path / "teams.csv", rows | {"team": column})
        options = ("--label", "won", "--score", "p", "--by", "team", "--format", "json")
        found = json.loads(run("measure", path, *options).stdout)["results"]
        assert [line["group"] for line in found] == expected


def test_a_measurement_makes_no_sub_groups(reader, tmp_path):
    ages = [20.0, 30.0, *(30 + at / 8 for at in range(1, 39))]
    rows = {"won": [0, 1] * 20, "p": [0.25, 0.75] * 20, "age": ages}
    path = write_csv(tmp_path / "ages.csv", rows)
    options = (path, "--label", "won", "--score", "p", "--by", "age")
    result = run("measure", *options)
    assert result.exit_code == 2
    assert "column 'age' is '30.125': one of 40 different measurements" in result.stderr
    assert result.stdout == ""
    out = tmp_path / "report.json"  # which puts measurements into bins, as the library does
    assert run("report", *options, "-o", out).exit_code == 0
    groups = json.loads(out.read_text(encoding="utf-8"))["groups"]
    assert groups[0]["group"].startswith("20 to ")
    assert sum(group["n_rows"] for group in groups) == 40


@pytest.mark.parametrize("option", ["--by", "--clusters"])
def test_a_row_without_its_group_is_an_error(reader, tmp_path, rows, option):
    sites = ["" if at == 7 else site for at, site in enumerate(rows["site"])]
    path = write_csv(tmp_path / "sites.csv", rows | {"site": sites})
    command = "measure" if option == "--by" else "test"
    result = run(command, path, "--label", "won", "--score", "first", option, "site")
    assert result.exit_code == 2
    assert "sites.csv, line 9: column 'site' is empty: a value is missing. Fill it" in result.stderr


def test_a_sub_group_without_weight_is_an_error(reader, tmp_path):
    rows = {"won": [0, 1] * 2, "p": [0.25, 0.75] * 2, "w": [1, 1, 0, 0], "s": list("aabb")}
    path = write_csv(tmp_path / "rows.csv", rows)
    result = run("measure", path, "--label", "won", "--score", "p", "--weight", "w", "--by", "s")
    assert result.exit_code == 2
    assert "--weight is 0 in all rows of group b" in result.stderr


def test_names_of_groups_that_differ_in_a_final_zero_are_two_groups(reader, tmp_path):
    names = ["a", "a\0", "a"] * 20
    rows = {"won": [0, 1] * 30, "p": [0.25, 0.75] * 30, "site": names}
    path = write_json_lines(tmp_path / "sites.jsonl", rows)
    options = ("--label", "won", "--score", "p", "--by", "site", "--format", "json")
    found = json.loads(run("measure", path, *options).stdout)["results"]
    assert [(line["group"], line["rows"]) for line in found] == [("a", 40), ("a\0", 20)]


def test_one_long_name_does_not_take_its_room_for_every_row():
    values = np.array(["short"] * 99_999 + ["long" * 1_000_000], dtype=object)
    names, code = _columns.groups_of("site", values)  # as NumPy's text, 1.6 terabytes
    assert [len(name) for name in names] == [4_000_000, 5]
    assert code.sum() == 99_999


def test_columns_that_cannot_be_meant_are_not_read_whole(reader, tmp_path, monkeypatch):
    rows = {"won": [0, 1] * 20, "p": [0.25, 0.75] * 20}
    rows |= {f"c{at}": [at + 2] * 40 for at in range(200)}
    source = _source.open_source([str(write_csv(tmp_path / "wide.csv", rows))])
    asked = []
    read = source.read

    def noted(numbers, names=(), rows=None):
        asked.append((list(numbers), rows))
        return read(numbers, names, rows)

    monkeypatch.setattr(source, "read", noted)
    assert _columns.guess(source, None, [], []) == ("won", ["p"])
    assert [len(names) for names, rows in asked if rows is not None] == [202]
    assert [names for names, rows in asked if rows is None] == [["won", "p"]]


@pytest.mark.parametrize("options", [(), ("--label", "none", "--score", "p")])
def test_a_message_about_many_columns_is_short(reader, tmp_path, options):
    rows = {f"c{at}": [2, 3] for at in range(500)}
    result = run("measure", write_csv(tmp_path / "wide.csv", rows), *options)
    assert result.exit_code == 2
    assert "c39 and 460 more." in result.stderr
    assert len(result.stderr) < 600


def test_columns_of_one_name_do_not_keep_others_from_being_found(reader, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("y,p,note,note\n" + "0,0.4,a,b\n1,0.6,c,d\n" * 20, encoding="utf-8")
    result = run("measure", path)
    assert result.exit_code == 0, result.output
    assert "using label 'y' and score 'p'" in result.stderr


def test_a_file_without_a_header_is_not_guessed(reader, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("0,0.4\n1,0.6\n" * 20, encoding="utf-8")
    result = run("measure", path)
    assert result.exit_code == 2
    assert "the first line is taken for the header, and holds numbers" in result.stderr


def test_percentages_are_suspected_where_no_score_is_found(reader, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("y,p,age\n" + "0,40.5,31\n1,6.25,52\n" * 20, encoding="utf-8")
    result = run("measure", path)
    assert result.exit_code == 2
    assert (
        "none does. Name the column. If 'p' holds percentages, divide them by 100. Columns: y"
        in result.stderr
    )
    path.write_text("y,p\n" + "0,-2.5\n1,0.5\n" * 20, encoding="utf-8")
    assert "percent" not in run("measure", path).stderr


def test_a_sheet_is_to_be_saved_as_csv(tmp_path):
    path = tmp_path / "rows.xlsx"
    path.write_bytes(b"PK")
    assert "Save the sheet as CSV." in run("measure", path).stderr


def test_files_elsewhere_are_not_looked_for():
    result = run("measure", "s3://bucket/rows.parquet")
    assert result.exit_code == 2
    assert "only local files are read here" in result.stderr
    assert "remote=True" in result.stderr
