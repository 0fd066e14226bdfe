"""caldist recalibrate and caldist apply: statement, exit codes, files with one more column."""

import json

import numpy as np
import pytest

import caldist
from caldist.cli._gates import Limits
from caldist.recalibration import CalibrationMap
from command_lines import HAS_DUCKDB, run, sample_rows, write_csv, write_json_lines

needs_duckdb = pytest.mark.skipif(not HAS_DUCKDB, reason="duckdb is not installed")
COLUMNS = ("--label", "won", "--score", "second")


@pytest.fixture
def rows():
    return sample_rows()


@pytest.fixture
def table(tmp_path, rows):
    return write_csv(tmp_path / "scores.csv", rows)


@pytest.fixture
def halved(tmp_path):
    path = tmp_path / "map.json"
    CalibrationMap([0, 0.5, 1], [0, 0.125, 0.5]).save(path)
    return path


# -- recalibration
# ----------------------------------------------------------------------------------------


def test_recalibration_prints_the_statement_and_writes_the_map(table, rows, tmp_path):
    out = tmp_path / "map.json"
    done = run("recalibrate", table, *COLUMNS, "-o", out)
    assert done.exit_code == 0, done.output
    found = caldist.recalibrate(rows["won"], rows["second"], n_resamples=99, rng=0)
    assert done.output == f"{found}\n\nwritten to {out}\n"
    assert CalibrationMap.load(out) == found.map
    assert json.loads(out.read_text())["x"] == found.map.x.tolist()


def test_recalibration_with_options(table, rows, tmp_path):
    out = tmp_path / "map.json"
    more = ("--family", "monotone", "--clusters", "team", "--weight", "weight")
    done = run("recalibrate", table, *COLUMNS, *more, "-o", out)
    assert done.exit_code == 0, done.output
    found = caldist.recalibrate(
        rows["won"], rows["second"], family="monotone", clusters=rows["team"],
        sample_weight=rows["weight"], n_resamples=99, rng=0,
    )  # fmt: skip
    assert CalibrationMap.load(out) == found.map
    assert str(found) in done.output


def test_recalibration_of_a_summary(table, rows, tmp_path):
    joint = caldist.Joint.from_arrays(rows["won"], rows["second"]).coarsen(12)
    joint.save(tmp_path / "scores.npz")
    out = tmp_path / "map.json"
    done = run("recalibrate", tmp_path / "scores.npz", "-o", out)
    assert done.exit_code == 0, done.output
    assert CalibrationMap.load(out) == caldist.recalibrate(joint, n_resamples=99, rng=0).map


def test_limits_for_what_is_left_after(table, rows, tmp_path):
    start = ("recalibrate", table, *COLUMNS, "-o", tmp_path / "map.json")
    after = caldist.recalibrate(rows["won"], rows["second"], n_resamples=99, rng=0).after
    lower, upper = after["smooth_ce"].lower, after["smooth_ce"].upper
    between = (lower + upper) / 2
    for option, limit, code in (
        ("--fail-above", 0.9, 0),
        ("--fail-above", between, 0),
        ("--require-below", 0.9, 0),
        ("--require-below", between, 3),
    ):
        done = run(*start, option, limit)
        assert done.exit_code == code, done.output
        assert ("undecided: not enough rows" in done.stderr) == (code == 3)
    few = {name: column[:12] for name, column in rows.items()}
    write_csv(table, few)
    for option, code in (("--fail-above", 0), ("--require-below", 3)):
        unknown = run(*start, option, 0.5)
        assert unknown.exit_code == code
        assert "undecided: no statement is made: only" in unknown.output
    assert (tmp_path / "map.json").exists()
    assert run(*start).exit_code == 0


@pytest.mark.parametrize(
    ("fail_above", "require_below", "code", "decision"),
    [
        (0.01, None, 1, ("fail", 0.01)),
        (0.03, None, 0, ("undecided", 0.03)),
        (None, 0.01, 1, ("fail", 0.01)),
        (None, 0.03, 3, ("undecided", 0.03)),
        (None, 0.05, 0, ("pass", 0.05)),
        (0.05, 0.03, 3, ("undecided", 0.03)),
        (0.01, 0.05, 1, ("fail", 0.01)),
    ],
)
def test_limits_mean_the_same_in_every_command(fail_above, require_below, code, decision):
    limits, ends = Limits(fail_above, require_below), (0.02, 0.04)
    assert limits.judge("smooth_ce", "95%", [({"score": "p"}, ends)]) == code
    found = limits.decided(ends)
    assert (found["decision"], found["limit"]) == decision


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "map.csv"), "must end in .json"),
        (("-o", "none/map.json"), "there is no folder"),
        (("-o", "map.json", "--fail-above", "nan"), "--fail-above is nan"),
        (("-o", "map.json", "--require-below", "0"), "--require-below is 0.0"),
        (("-o", "map.json", "--fail-above", "5"), "For 5% pass 0.05."),
        (("-o", "map.json", "--score", "first"), "--score names 2 models"),
        (("-o", "map.json", "--family", "platt"), "Invalid value for '--family'"),
        ((), "Missing option '-o'"),
    ],
)
def test_recalibration_refuses(table, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    done = run("recalibrate", table, *COLUMNS, *arguments)
    assert done.exit_code == 2
    assert words in done.output
    assert not (tmp_path / "map.json").exists()


# -- apply -----------------------------------------------------------------------------------------


def test_apply_prints_sql(halved):
    table = CalibrationMap.load(halved)
    assert run("apply", halved, "--sql", 'a"b').output == table.to_sql('a"b') + "\n"
    mysql = run("apply", halved, "--sql", "p", "--dialect", "mysql")
    assert mysql.output == table.to_sql("p", dialect="mysql") + "\n"


@needs_duckdb
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl"])
@pytest.mark.parametrize("given", [".csv", ".jsonl", ".parquet"])
def test_apply_copies_any_kind_to_any_kind(rows, halved, tmp_path, given, suffix):
    import duckdb

    if given == ".csv":
        source = write_csv(tmp_path / "in.csv", rows)
    elif given == ".jsonl":
        source = write_json_lines(tmp_path / "in.jsonl", rows)
    else:
        source = tmp_path / "in.parquet"
        duckdb.read_csv(str(write_csv(tmp_path / "in.csv", rows))).write_parquet(str(source))
    out = tmp_path / f"out{suffix}"
    done = run("apply", halved, source, "--score", "first", "--column", 'it\'s "new"', "-o", out)
    assert done.exit_code == 0, done.output
    read = {".parquet": "read_parquet", ".jsonl": "read_json"}.get(suffix, "read_csv")
    found = duckdb.sql(f"SELECT * FROM {read}('{out}')").fetchnumpy()
    assert list(found) == [*rows, 'it\'s "new"']
    np.testing.assert_allclose(
        found['it\'s "new"'], CalibrationMap.load(halved)(rows["first"]), rtol=0, atol=1e-12
    )
    assert found["site"].tolist() == rows["site"].tolist()
    assert np.asarray(found["team"]).astype(int).tolist() == rows["team"].tolist()


@needs_duckdb
def test_other_columns_are_copied_as_they_are(halved, tmp_path):
    table = tmp_path / "in.csv"
    table.write_text('id,p,when,note\n007,0.50,2020-01-01,"a, b"\n010,1,2020-1-2,\n')
    out = tmp_path / "out.csv"
    assert run("apply", halved, table, "--score", "p", "--column", "q", "-o", out).exit_code == 0
    assert out.read_text().splitlines() == [
        "id,p,when,note,q",
        '007,0.50,2020-01-01,"a, b",0.125',
        "010,1,2020-1-2,,0.5",
    ]
    lines = tmp_path / "in.jsonl"
    lines.write_text('{"id":"007","p":0.5,"t":"2020-01-01T00:00:00Z","n":{"a":[1,2]}}\n')
    out = tmp_path / "out.jsonl"
    assert run("apply", halved, lines, "--score", "p", "--column", "q", "-o", out).exit_code == 0
    assert json.loads(out.read_text()) == json.loads(lines.read_text()) | {"q": 0.125}


@needs_duckdb
@pytest.mark.parametrize(
    ("bad", "shown", "remedy"),
    [
        ("1.5", "'1.5'", "percentages"),
        ("", "empty", "fill"),
        ("nan", "'nan'", "fill"),
        ("x", "'x'", "Correct it"),
        ("-1e-9", "'-1e-9'", "clip it"),
        ("1.0000001", "'1.0000001'", "clip it"),
    ],
)
def test_bad_scores_stop_it_and_leave_nothing(halved, tmp_path, bad, shown, remedy):
    table = tmp_path / "in.csv"
    table.write_text(f"id,p\n1,0.5\n2,{bad}\n")
    out = tmp_path / "out.csv"
    out.write_text("what was there")
    done = run("apply", halved, table, "--score", "p", "--column", "q", "-o", out)
    assert done.exit_code == 2
    assert f"in.csv, line 3: column 'p' is {shown}: " in done.output
    assert remedy in done.output
    assert out.read_text() == "what was there"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.csv", "map.json", "out.csv"]


@needs_duckdb
def test_apply_reads_standard_input_and_several_files(rows, halved, tmp_path):
    first = write_csv(tmp_path / "a.csv", {k: v[:50] for k, v in rows.items()})
    second = write_csv(tmp_path / "b.csv", {k: v[50:] for k, v in rows.items()})
    out = tmp_path / "out.csv"
    options = ("--score", "first", "--column", "q", "-o", out)
    assert run("apply", halved, first, second, *options).exit_code == 0
    assert len(out.read_text().splitlines()) == 201
    done = run("apply", halved, "-", *options, stdin=first.read_bytes())
    assert done.exit_code == 0, done.output
    assert len(out.read_text().splitlines()) == 51


@needs_duckdb
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--score", "first", "--column", "q", "-o", "out.xlsx"), "must end in .csv"),
        (("--score", "fist", "--column", "q", "-o", "out.csv"), "Did you mean 'first'?"),
        (("--score", "first", "--column", "SITE", "-o", "out.csv"), "there is such a column"),
        (("--score", "first", "--column", "q"), "Name a FILE, --score, --column and --out"),
        (("--score", "first", "--sql", "p"), "FILE was given with --sql"),
    ],
)
def test_apply_refuses(table, halved, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    done = run("apply", halved, table, *arguments)
    assert done.exit_code == 2
    assert words in done.output
    assert not (tmp_path / "out.csv").exists()


def test_apply_does_not_replace_what_it_reads(table, halved):
    before = table.read_bytes()
    done = run("apply", halved, table, "--score", "p", "--column", "better", "-o", table)
    assert done.exit_code == 2
    assert "--out is" in done.stderr
    assert "it is one of the files that are read" in done.stderr
    assert table.read_bytes() == before


def test_apply_refuses_what_is_no_map(table, tmp_path):
    path = tmp_path / "map.json"
    path.write_text('{"format": "caldist-map-1", "x": [0, 1], "y": [1, 0]}')
    done = run("apply", path, "--sql", "p")
    assert done.exit_code == 2
    assert "is not a valid map: y[1] is 0.0: it comes after 1.0" in done.output
    assert run("apply", tmp_path / "none.json", "--sql", "p").exit_code == 2


@needs_duckdb
def test_a_recalibration_goes_all_the_way(rows, table, tmp_path):
    """Fitted on a file, applied to it: the column is calibrated as the statement says."""
    out, mapped = tmp_path / "map.json", tmp_path / "mapped.csv"
    run("recalibrate", table, *COLUMNS, "-o", out)
    run("apply", out, table, "--score", "second", "--column", "q", "-o", mapped)
    q = np.array([float(line.split(",")[-1]) for line in mapped.read_text().splitlines()[1:]])
    statement = CalibrationMap.load(out).provenance["statement"]
    value = caldist.smooth_ce(rows["won"], q)
    assert value == pytest.approx(statement["after"]["smooth_ce"]["value"], abs=1e-9)
