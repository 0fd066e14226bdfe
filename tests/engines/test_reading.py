"""Files as they come: the same cases with DuckDB, and with nothing but the standard library."""

import bz2
import gzip
import json
import lzma
import math
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caldist
from caldist.engines import cells
from caldist.engines.text import TextFile
from command_lines import HAS_DUCKDB, run, write_json_lines

Y = [0, 1, 0, 1, 1, 0]
P = [0.25, 0.5, 0.125, 0.75, 0.875, 0.375]
SITES = ["Köln", "Bonn", "Köln", "NA", "Bonn", "Köln"]
NAMES = ("--label", "y", "--score", "p")


@pytest.fixture(params=["duckdb", "nothing"])
def installed(request, monkeypatch):
    """Read files with DuckDB, and with no package but NumPy."""
    if request.param == "duckdb" and not HAS_DUCKDB:
        pytest.skip("duckdb is not installed")
    if request.param == "nothing":
        for package in ("duckdb", "pyarrow", "polars", "pandas"):
            monkeypatch.setitem(sys.modules, package, None)
    return request.param


def text(y=Y, p=P, s=SITES, delimiter=",", end="\n", header="y{0}p{0}s"):
    lines = [header.format(delimiter)]
    lines += [delimiter.join(map(str, row)) for row in zip(y, p, s, strict=True)]
    return end.join(lines) + end


WORDS = {"yes": ("no", "yes"), "Y": ("N", "Y"), "TRUE": ("FALSE", "TRUE"), "t": ("f", "t")}
COMMAS = [str(x).replace(".", ",") for x in P]
FILES = {
    "plain": ("rows.csv", text().encode()),
    "byte order mark": ("rows.csv", text().encode("utf-8-sig")),
    "CRLF": ("rows.csv", text(end="\r\n").encode()),
    "semicolons": ("rows.csv", text(delimiter=";").encode()),
    "semicolons and decimal commas": ("rows.csv", text(p=COMMAS, delimiter=";").encode()),
    "tabs and decimal commas": ("rows.csv", text(p=COMMAS, delimiter="\t").encode()),
    "tabs": ("rows.tsv", text(delimiter="\t").encode()),
    "commas in .tsv": ("rows.tsv", text().encode()),
    "bars in .txt": ("rows.txt", text(delimiter="|").encode()),
    "a workbook's first line": ("rows.csv", ("sep=;\n" + text(delimiter=";")).encode()),
    "empty lines": ("rows.csv", ("\n\n" + text(end="\n\n") + "  \n").encode()),
    "a delimiter at the end": ("rows.csv", text(end=",\n").encode()),
    "a delimiter at the end of rows": (
        "rows.csv",
        text(end=",\n").replace("s,\n", "s\n", 1).encode(),
    ),
    "quoted numbers": (
        "rows.csv",
        text([f'"{k}"' for k in Y], [f'"{x}"' for x in P]).encode(),
    ),
    "blanks": (
        "rows.csv",
        text([f" {k}\t" for k in Y], [f' "{x}"' for x in P], header=" y {0} p{0}s").encode(),
    ),
    "a column without a name": (
        "rows.csv",
        "".join(f"{at}," * (at > 0) + "," * (at == 0) + line + "\n"
                for at, line in enumerate(text().splitlines())).encode(),
    ),
    "signs and exponents": ("rows.csv", text(p=[f"+{x:e}" for x in P]).encode()),
    "latin-1": ("rows.csv", text().encode("latin-1")),
    "UTF-16": ("rows.csv", text(delimiter="\t").encode("utf-16")),
    "gzip": ("rows.csv.gz", gzip.compress(text().encode())),
    "gzip by content": ("rows.csv", gzip.compress(text().encode())),
    "gzip by name alone": ("rows.csv.gz", text().encode()),
    "bzip2": ("rows.csv.bz2", bz2.compress(text().encode())),
    "xz": ("rows.csv.xz", lzma.compress(text().encode())),
    "a line break in quotes": (
        "rows.csv",
        text().replace("s\n", 's,"a ""note"""\n', 1).replace("Bonn", 'Bonn,"a\nb, c"').encode(),
    ),
    "other columns twice": ("rows.csv", text().replace("y,p,s", "y,p,s,x,x").encode()),
    **{
        f"labels {word}": ("rows.csv", text([pair[k] for k in Y]).encode())
        for word, pair in WORDS.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", FILES)
def test_every_kind_of_file_says_the_same(installed, tmp_path, kind):
    name, content = FILES[kind]
    (tmp_path / name).write_bytes(content)
    options = (*NAMES, "--by", "s", "--measure", "smooth_ce", "--format", "json")
    result = run("measure", tmp_path / name, *options)
    assert result.exit_code == 0, result.stderr
    found = {line["group"]: line for line in json.loads(result.stdout)["results"]}
    assert {group: line["rows"] for group, line in found.items()} == {"Bonn": 2, "Köln": 3, "NA": 1}
    for group, line in found.items():
        here = [at for at, site in enumerate(SITES) if site == group]
        assert line["smooth_ce"] == caldist.smooth_ce([Y[k] for k in here], [P[k] for k in here])
    assert ("Windows-1252" in result.stderr) == (kind == "latin-1")


@pytest.mark.parametrize("kind", FILES)
def test_every_kind_of_file_has_the_same_summary(installed, tmp_path, kind):
    name, content = FILES[kind]
    (tmp_path / name).write_bytes(content)
    result = run("summarize", tmp_path / name, *NAMES, "-o", tmp_path / "out.npz")
    assert result.exit_code == 0, result.stderr
    assert caldist.Joint.load(tmp_path / "out.npz") == caldist.Joint.from_arrays(Y, P).coarsen(16)


@pytest.mark.parametrize("hidden", [(), ("duckdb",), ("duckdb", "pyarrow")])
def test_parquet_by_whatever_is_there(tmp_path, monkeypatch, hidden):
    for package in ("duckdb", "pyarrow", "polars"):
        pytest.importorskip(package)
    words = pd.DataFrame({"y": [WORDS["yes"][k] for k in Y], "p": P, "s": SITES, "flag": Y})
    words.astype({"flag": bool}).to_parquet(tmp_path / "rows.parquet")
    for package in hidden:
        monkeypatch.setitem(sys.modules, package, None)
    for label in ("y", "flag"):
        options = ("--label", label, "--score", "p", "--measure", "smooth_ce", "--format", "json")
        result = run("measure", tmp_path / "rows.parquet", *options)
        assert result.exit_code == 0, result.stderr
        [line] = json.loads(result.stdout)["results"]
        assert line["smooth_ce"] == caldist.smooth_ce(Y, P)
        result = run("summarize", tmp_path / "rows.parquet", *options[:4], "-o", tmp_path / "o.npz")
        assert caldist.Joint.load(tmp_path / "o.npz").n_rows == len(Y)
    result = run("measure", tmp_path / "rows.parquet", "--label", "y", "--score", "s")
    assert f"rows.parquet, row 1: column 's' is {SITES[0]!r}: it is no number" in result.stderr


def test_parquet_with_nothing_says_what_to_install(tmp_path, monkeypatch):
    for package in ("duckdb", "pyarrow", "polars"):
        monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    result = run("measure", tmp_path / "rows.parquet", *NAMES)
    assert result.exit_code == 2
    assert "caldist[engines]" in result.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("y,p\n0,0.5\n1,abc\n", "rows.csv, line 3: column 'p' is 'abc': it is no number"),
        ("y,p\n0,0.5\n\n1,inf\n", "rows.csv, line 4: column 'p' is 'inf': it is no number"),
        ("y,p\n0,0.5\n1,1_0\n", "rows.csv, line 3: column 'p' is '1_0': it is no number"),
        ("y,p\n0,50%\n1,60%\n", ("line 2: column 'p' is '50%': it is a percentage. Take the % sign "
         "away and divide by 100.")),
        ("y,p\n0,50\n1,7.5\n", ("line 2: column 'p' is '50': a probability lies between 0 and 1 "
         "(the first of 2 such values). If these are percentages, divide by 100")),
        ("y,p\n0,0.5\n1,-3\n", ("line 3: column 'p' is '-3': a probability lies between 0 and 1. "
         "If these are logits")),
        ('y,p\n0,"0,5"\n', "line 2: column 'p' is '0,5': it is no number. A decimal comma is"),
        ("y,p\n0,0.5\n,0.5\n1,0.5\n,0.1\n",
         ("line 3: column 'y' is empty: a value is missing (the first of 2 rows). Fill it, or "
         "leave such rows out with --drop-missing.")),
        ("y,p\n0,0.5\n1,NA\n", "line 3: column 'p' is 'NA': a value is missing. Fill it"),
        ('y,p,s\n0,0.5,"a\nb"\n1,nan,c\n', "line 4: column 'p' is 'nan': a value is missing"),
        ("y,p\n0,0.5\n2,0.5\n", "line 3: column 'y' is '2': a label is 0 or 1."),
        ("y,p\nsick,0.5\nwell,0.5\n", ("line 2: column 'y' is 'sick': a label is 0 or 1, or yes or "
         "no, not text. Say with --positive")),
        ("y,p\n-1,0.5\n1,0.5\n", "or pass --positive=1."),
        ("y,p\n0.5,0\n0.25,1\n", ("line 2: column 'y' is '0.5': "
         "column 'y' and column 'p' look swapped")),
        ("y,p,p\n0,0.25,0.5\n1,0.5,0.75\n", "two columns called 'p'. Rename one"),
        ("y,p\n0,0.25\n1,0.5,0.75\n", "rows.csv, line 3, has 3 values, more than the header has"),
        ('y,p\n0,0.25\n1,"0.5\n', "rows.csv, line 3, cannot be read: unexpected end of data"),
        ("y,p\n", "rows.csv has no rows"),
        ("", "rows.csv is empty"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["measure", "summarize"])
def test_what_is_wrong_is_named_by_file_line_and_text(
    installed, tmp_path, content, message, command
):
    (tmp_path / "rows.csv").write_text(content, encoding="utf-8")
    out = ("-o", tmp_path / "out.npz") if command == "summarize" else ()
    result = run(command, tmp_path / "rows.csv", *NAMES, *out)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "out.npz").exists()


def test_the_line_is_that_of_the_right_file(installed, tmp_path):
    (tmp_path / "a.csv").write_text("y,p\n0,0.5\n1,0.5\n")
    (tmp_path / "b.csv").write_text("p;y\n0,5;0\n0,5;maybe\n")
    result = run("measure", tmp_path / "?.csv", *NAMES)
    assert "b.csv, line 3: column 'y' is 'maybe'" in result.stderr
    lines = '{"y": 1, "p": 0.5}\n\n{"y": 0, "p": "a"}\n'
    (tmp_path / "c.jsonl").write_text(lines)
    result = run("measure", tmp_path / "c.jsonl", *NAMES)
    assert "c.jsonl, line 3: column 'p' is 'a': it is no number" in result.stderr
    (tmp_path / "d.jsonl").write_text("[1, 2]\n")
    assert "line 1, is no JSON object" in run("measure", tmp_path / "d.jsonl", *NAMES).stderr


def test_what_is_no_text_is_told_by_its_content(tmp_path):
    for content, what in ((b"PAR1 and so on", "Parquet"), (b"PK\x03\x04 and so on", "workbook")):
        (tmp_path / "rows.csv").write_bytes(content)
        assert what in run("measure", tmp_path / "rows.csv", *NAMES).stderr


def test_a_damaged_archive_is_a_clear_error(tmp_path):
    for name, content in (("a.csv.gz", gzip.compress(text().encode() * 50)),
                          ("a.csv.xz", lzma.compress(text().encode() * 50))):  # fmt: skip
        (tmp_path / name).write_bytes(content[: len(content) // 2])
        result = run("measure", tmp_path / name, *NAMES)
        assert result.exit_code == 2
        assert "damaged or cut off" in result.stderr


def test_damaged_standard_input_is_an_error_about_it(installed):
    packed = [gzip.compress(text().encode()), bz2.compress(text().encode())]
    damaged = [content[:end] for content in packed for end in (12, 40)]
    for content in packed:  # in the header of the first block, and within it
        damaged += [
            content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :] for at in (11, 30)
        ]
    for content in damaged:
        result = run("measure", "-", *NAMES, stdin=content)
        assert result.exit_code == 2, result.stderr
        assert "standard input cannot be unpacked, it is damaged or cut off" in result.stderr


def test_what_is_wrong_with_standard_input_is_said_of_it(installed):
    result = run("measure", "-", *NAMES, stdin=b"y,p\n0,0.5\n1,x\n")
    assert "Error: standard input, line 3: column 'p' is 'x': it is no number" in result.stderr


def test_standard_input_may_be_packed(installed):
    for content in (text().encode(), gzip.compress(text().encode())):
        result = run("measure", "-", *NAMES, "--measure", "ece", "--format", "csv", stdin=content)
        assert result.stdout.splitlines()[1].startswith("p,6,")


def test_a_folder_stands_for_its_files_and_gives_columns(installed, tmp_path):
    for day, part in (("1", slice(0, 3)), ("2", slice(3, 6))):
        (tmp_path / "t" / f"day={day}").mkdir(parents=True)
        content = text(Y[part], P[part], SITES[part])
        (tmp_path / "t" / f"day={day}" / "rows.csv").write_text(content, encoding="utf-8")
    options = (*NAMES, "--by", "day", "--measure", "ece", "--format", "json")
    for name in ("t", "t/day=*/*.csv"):
        result = run("measure", tmp_path / name, *options)
        found = json.loads(result.stdout)["results"]
        assert [(line["group"], line["rows"]) for line in found] == [("1", 3), ("2", 3)]


CELLS = st.one_of(
    st.text(st.sampled_from("0123456789.,+-eE_% \tnaNftyesoinf/#<>"), max_size=8),
    st.sampled_from(
        [*cells.MISSING, *cells.TRUE, *cells.FALSE, "Yes", "NaN", "1e999", "٣", "0x1", "+-1"]
    ),
    st.floats().map(repr),
)


@pytest.mark.skipif(not HAS_DUCKDB, reason="duckdb is not installed")
@given(st.lists(CELLS, min_size=1, max_size=30), st.sampled_from(".,"))
def test_a_cell_means_the_same_in_sql(found, decimal):
    import duckdb

    expression = cells.numbers_in_sql("cell", decimal)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (cell VARCHAR)")
        connection.executemany("INSERT INTO t VALUES (?)", [[cell] for cell in found])
        rows = connection.execute(f"SELECT {expression} FROM t").fetchall()
    expected = cells.numbers(found, decimal)
    assert [row[0] is None for row in rows] == [math.isnan(value) for value in expected]
    assert all(row[0] is None or row[0] == value for row, value in zip(rows, expected, strict=True))


@pytest.mark.skipif(not HAS_DUCKDB, reason="duckdb is not installed")
def test_a_plain_file_is_read_by_duckdb_and_a_doubtful_one_is_not(tmp_path):
    from caldist.engines.text_by_duckdb import read_by_duckdb

    def read(content):
        (tmp_path / "a.csv").write_text(content, encoding="utf-8")
        return read_by_duckdb(TextFile(tmp_path / "a.csv", "csv"), ["y", "p"], ["s"], None)

    (labels, scores), (sites,) = read(text())
    assert (labels.tolist(), scores.tolist(), sites.tolist()) == (Y, P, SITES)
    for line in ('1,0.5,"open', "1", "1,0.5,a,b"):
        assert read(text() + line + "\n") is None


def test_numbers_of_a_column_are_those_of_its_cells():
    for column in (["0.5", "1"], ["0.5", "."], ["", "1"], [None, "1"], [True, 2, "x"], ["1-2"], []):
        expected = [cells.number(cell) for cell in column]
        np.testing.assert_array_equal(cells.numbers(column), expected)


def test_names_stay_names():
    for column, expected in (
        (["1", "2"], [1, 2]),
        (["007", "8"], ["007", "8"]),
        (["1.5", "2"], [1.5, 2.0]),
        ([2**70, 1], [float(2**70), 1.0]),
        (["NA", "no"], ["NA", "no"]),
    ):
        assert cells.names(column).tolist() == expected
    assert [cells.name(cell) for cell in (" a ", "", None, True, math.nan, 3)] == [
        "a", None, None, "true", None, 3,
    ]  # fmt: skip


GAPS = {
    "y": [0, 1, "", 1, 0, 1],
    "p": [0.25, "NA", 0.5, 0.75, 0.5, 0.5],
    "s": ["a", "a", "b", "b", "", "b"],
}


def gaps_file(tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text(text(GAPS["y"], GAPS["p"], GAPS["s"]), encoding="utf-8")
    return path


@pytest.mark.parametrize("style", ["table", "json", "csv", "markdown"])
def test_dropped_rows_are_counted_in_every_output(installed, tmp_path, style):
    path = gaps_file(tmp_path)
    options = (*NAMES, "--drop-missing", "--measure", "smooth_ce", "--format", style)
    result = run("measure", path, *options)
    assert result.exit_code == 0, result.stderr
    note = "2 of 6 rows were left out for missing values: in y (1), p (1)."
    value = caldist.smooth_ce([0, 1, 0, 1], [0.25, 0.75, 0.5, 0.5])
    if style == "json":
        found = json.loads(result.stdout)
        assert found["dropped"] == {"rows": 2, "reasons": {"y": 1, "p": 1}}
        assert found["notes"] == [note]
        [line] = found["results"]
        assert (line["rows"], line["dropped"], line["smooth_ce"]) == (4, 2, value)
    else:
        assert note in result.stdout + result.stderr
        words = result.stdout.replace("|", " ").replace(",", " ").split()
        assert words[:4] == ["score", "rows", "dropped", "smooth_ce"]
        assert words[words.index("p") :][:3] == ["p", "4", "2"]


def test_dropped_rows_of_groups_and_of_other_commands(installed, tmp_path):
    path = gaps_file(tmp_path)
    options = (*NAMES, "--drop-missing", "--by", "s", "--measure", "ece", "--format", "json")
    found = json.loads(run("measure", path, *options).stdout)
    assert found["dropped"]["rows"] == 3
    lines = [(line["group"], line["rows"], line["dropped"]) for line in found["results"]]
    assert lines == [("a", 1, 1), ("b", 2, 1)]
    tested = json.loads(run("test", path, *NAMES, "--drop-missing", "--format", "json").stdout)
    assert tested["results"][0]["dropped"] == 2
    whole = tmp_path / "whole.csv"
    whole.write_text(text(), encoding="utf-8")
    kept = run("measure", whole, *NAMES, "--drop-missing", "--format", "json")
    assert json.loads(kept.stdout)["results"][0]["dropped"] == 0
    assert "no row was left out" in kept.stdout
    plain = json.loads(run("measure", whole, *NAMES, "--format", "json").stdout)
    assert "dropped" not in plain
    assert "dropped" not in plain["results"][0]


def test_a_summary_keeps_what_was_dropped(installed, tmp_path):
    path, out = gaps_file(tmp_path), tmp_path / "out.npz"
    result = run("summarize", path, *NAMES, "--drop-missing", "-o", out)
    assert result.exit_code == 0, result.stderr
    joint = caldist.Joint.load(out)
    assert joint.invalid == {"missing label": 1, "missing prediction": 1}
    assert joint.n_rows == 4
    for style in ("table", "json", "csv", "markdown"):
        shown = run("measure", out, "--measure", "smooth_ce", "--format", style)
        assert "2 rows were left out when it was made" in shown.stdout + shown.stderr
        assert "dropped" in shown.stdout
    assert run("measure", out, "--drop-missing").exit_code == 2
    by = run("summarize", path, *NAMES, "--drop-missing", "--by", "s", "-o", out)
    assert by.exit_code == 0, by.stderr
    parts = {name: caldist.Joint.load(tmp_path / f"s={name}" / "out.npz") for name in "ab"}
    assert {name: part.n_rows for name, part in parts.items()} == {"a": 1, "b": 2}
    assert parts["a"].invalid == {"missing prediction": 1}
    assert parts["b"].invalid == {"missing label": 1}


def test_a_summary_counts_what_is_wrong(installed, tmp_path):
    path, out = tmp_path / "bad.csv", tmp_path / "out.npz"
    path.write_text("y,p,w\n0,0.5,1\n2,0.5,1\n1,what,1\n,0.5,1\n1,0.25,-1\n1,,1\n")
    options = (*NAMES, "--weight", "w", "-o", out)
    assert run("summarize", path, *options, "--invalid", "count").exit_code == 0
    expected = {"missing label", "bad label", "missing prediction", "bad prediction", "bad weight"}
    assert caldist.Joint.load(out).invalid == dict.fromkeys(expected, 1)
    result = run("summarize", path, *options, "--drop-missing")
    assert result.exit_code == 2
    assert "line 4: column 'p' is 'what'" in result.stderr


def test_summaries_of_groups_have_folders_that_hostile_names_do_not_leave(installed, tmp_path):
    names = ["../up", "a/b", "..", "plain", "ä ö", "50%"]
    rows = {"y": Y, "p": P, "site x": names}
    path = write_json_lines(tmp_path / "rows.jsonl", rows)
    (tmp_path / "out").mkdir()
    out = ("-o", tmp_path / "out" / "day.npz")
    result = run("summarize", path, *NAMES, "--by", "site x", *out)
    assert result.exit_code == 0, result.stderr
    found = sorted(file for file in tmp_path.rglob("*.npz"))
    assert len(found) == 6
    assert all(file.parent.parent == tmp_path / "out" for file in found)
    (tmp_path / "dated" / "day=2026-11-15").mkdir(parents=True)
    again = ("-o", tmp_path / "dated" / "day=2026-11-15" / "rows.npz")
    assert run("summarize", path, *NAMES, "--by", "site x", *again).exit_code == 0
    state = tmp_path / "state.npz"
    pattern = tmp_path / "dated" / "*" / "*" / "*.npz"
    result = run("monitor", pattern, "--date", "day", "--by", "site x", "--state", state)
    assert result.exit_code == 0, result.stderr
    assert sorted(caldist.Monitor.load(state).by) == sorted(names)


def test_positive_in_every_command_that_reads_labels(installed, tmp_path):
    path, out = tmp_path / "rows.csv", tmp_path / "out.npz"
    path.write_text(text(["well" if k == 0 else "sick" for k in Y]), encoding="utf-8")
    assert run("summarize", path, *NAMES, "--positive", "sick", "-o", out).exit_code == 0
    assert caldist.Joint.load(out) == caldist.Joint.from_arrays(Y, P).coarsen(16)
    wrong = run("summarize", path, *NAMES, "--positive", "ill", "-o", out)
    assert "no label is --positive, 'ill'" in wrong.stderr


@pytest.mark.parametrize(
    ("labels", "positive"),
    [(["TRUE", "FALSE"], "true"), (["1", "2"], "1"), (["a", "B"], "a"), (["yes", "no"], "yes")],
)
def test_positive_is_read_as_the_labels_are(installed, tmp_path, labels, positive):
    path = tmp_path / "rows.csv"
    path.write_text(text([labels[1 - k] for k in Y]), encoding="utf-8")
    options = (*NAMES, "--positive", positive, "--measure", "ece", "--format", "json")
    [line] = json.loads(run("measure", path, *options).stdout)["results"]
    assert line["ece"] == caldist.ece(Y, P)


@pytest.mark.skipif(not HAS_DUCKDB, reason="duckdb is not installed")
def test_a_map_is_applied_to_decimal_commas_and_says_what_it_cannot_copy(tmp_path):
    path, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    caldist.recalibration.CalibrationMap([0, 1], [0, 0.5]).save(tmp_path / "map.json")
    command = ("apply", tmp_path / "map.json", path, "--score", "p", "--column", "q", "-o", out)
    path.write_text(text(p=COMMAS, delimiter=";"), encoding="utf-8")
    result = run(*command)
    assert result.exit_code == 0, result.stderr
    written = pd.read_csv(out, decimal=",", keep_default_na=False)
    assert written["p"].tolist() == P
    assert written["q"].astype(float).tolist() == [x / 2 for x in P]
    path.write_bytes(text().encode("latin-1"))
    refused = run(*command)
    assert refused.exit_code == 2
    assert "rows.csv is not UTF-8. Convert it first" in refused.stderr
