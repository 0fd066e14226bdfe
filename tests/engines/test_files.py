"""Files, patterns and folders, through DuckDB."""

import gzip
import json

import numpy as np
import pytest

from caldist import Joint
from caldist.engines import open_files, summarize
from caldist.engines.files import reading
from command_lines import run

pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")

COLUMNS = {"y_true": "label", "y_prob": "score"}


def rows(size=1000, seed=0):
    rng = np.random.default_rng(seed)
    y_prob = rng.random(size)
    return (rng.random(size) < y_prob).astype(np.int64), y_prob


def write(path, y_true, y_prob, **others):
    """Write a file of the kind that its name says."""
    import gzip

    import pyarrow.csv
    import pyarrow.parquet

    table = pa.table({"label": y_true, "score": y_prob, **others})
    path.parent.mkdir(parents=True, exist_ok=True)
    if ".parquet" in path.name:
        pyarrow.parquet.write_table(table, path, row_group_size=300)
    elif ".csv" in path.name:
        pyarrow.csv.write_csv(table, path)
    else:
        text = "\n".join(json.dumps(row) for row in table.to_pylist()).encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


KINDS = ("parquet", "csv", "jsonl", "ndjson", "jsonl.gz")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_a_pattern_a_list_and_a_folder(tmp_path, kind):
    y_true, y_prob = rows()
    whole = Joint.from_arrays(y_true, y_prob).coarsen(16)
    parts = []
    for part in range(3):
        path = tmp_path / "data" / f"part-{part}.{kind}"
        write(path, y_true[part::3], y_prob[part::3])
        parts.append(path)
    first = Joint.from_arrays(y_true[0::3], y_prob[0::3]).coarsen(16)
    assert summarize(parts[0], **COLUMNS) == first
    assert summarize(str(tmp_path / "data" / f"*.{kind}"), **COLUMNS) == whole
    assert summarize(parts, **COLUMNS) == whole
    assert summarize(tmp_path / "data", **COLUMNS) == whole


def test_the_same_file_through_lazy_polars(tmp_path):
    pl = pytest.importorskip("polars")
    y_true, y_prob = rows()
    write(tmp_path / "a.parquet", y_true, y_prob)
    scan = pl.scan_parquet(tmp_path / "a.parquet")
    assert summarize(scan, **COLUMNS) == summarize(tmp_path / "a.parquet", **COLUMNS)


def test_partitioned_folders_give_columns(tmp_path):
    y_true, y_prob = rows()
    for day in (1, 2):
        write(tmp_path / f"day={day}" / "x.parquet", y_true[day::3], y_prob[day::3])
    found = summarize(tmp_path, **COLUMNS, by="day")
    assert found == {
        day: Joint.from_arrays(y_true[day::3], y_prob[day::3]).coarsen(16) for day in (1, 2)
    }


def test_a_name_with_characters_of_patterns(tmp_path):
    y_true, y_prob = rows(10)
    write(tmp_path / "a[1]*.parquet", y_true, y_prob)
    write(tmp_path / "a1.parquet", y_true[:5], y_prob[:5])
    assert summarize(tmp_path / "a[1]*.parquet", **COLUMNS).n_rows == 10


def test_csv_whose_scores_begin_with_whole_numbers(tmp_path):
    """DuckDB guesses types from the first rows, here integers."""
    size = 30_000
    path = tmp_path / "a.csv"
    lines = ["label,score", *["1,1"] * size, "0.0,0.25"]
    path.write_text("\n".join(lines), encoding="utf-8")
    found = summarize(path, **COLUMNS)
    assert found.n_rows == size + 1
    assert found.prediction[0] == 0.25


def test_csv_with_semicolons_and_decimal_commas(tmp_path):
    (tmp_path / "a.csv").write_text("label;score\n0;0,25\n1;0,75\n1;1\n", "utf-8")
    expected = Joint.from_arrays([0, 1, 1], [0.25, 0.75, 1.0]).coarsen(16)
    assert summarize(tmp_path / "a.csv", **COLUMNS) == expected


def test_csv_files_with_columns_in_another_order(tmp_path):
    (tmp_path / "a.csv").write_text("label,score\n1,0.25\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("score,label\n0.5,1\n", encoding="utf-8")
    found = summarize(tmp_path / "*.csv", **COLUMNS)
    assert found == Joint.from_arrays([1, 1], [0.25, 0.5]).coarsen(16)


def test_csv_with_text_and_gaps(tmp_path):
    (tmp_path / "a.csv").write_text("label,score,name\n1,0.25,a\n0,,b\n", encoding="utf-8")
    found = summarize(tmp_path / "a.csv", **COLUMNS, invalid="count")
    assert found.invalid == {"missing prediction": 1}
    with pytest.raises(ValueError, match=r"a\.csv, line 2: column 'name' is 'a': it is no number"):
        summarize(tmp_path / "a.csv", y_true="label", y_prob="name")


def _listing(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_damaged_file_is_named_also_where_duckdb_names_none(tmp_path):
    y_true, y_prob = rows()
    for name in ("a.parquet", "b.parquet", "c.parquet"):
        write(tmp_path / name, y_true, y_prob)
    content = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(content[:100] + bytes(2000) + content[2100:])
    error = r"b\.parquet' cannot be read: Out of buffer"
    with pytest.raises(ValueError, match=error), reading(tmp_path):
        raise duckdb.Error("Out of buffer")


@pytest.mark.parametrize("damage", ["truncated", "overwritten", "empty", "foreign"])
def test_a_damaged_file_is_a_clear_error_and_nothing_is_written(tmp_path, damage, monkeypatch):
    y_true, y_prob = rows()
    write(tmp_path / "good.parquet", y_true, y_prob)
    path = tmp_path / "bad.parquet"
    write(path, y_true, y_prob)
    content = path.read_bytes()
    path.write_bytes(
        {
            "truncated": content[: len(content) // 2],
            "overwritten": content[:100] + bytes(2000) + content[2100:],
            "empty": b"",
            "foreign": b"label,score\n1,0.5\n",
        }[damage]
    )
    monkeypatch.chdir(tmp_path)
    before = _listing(tmp_path)
    with pytest.raises(ValueError, match=r"bad\.parquet.*cannot be read"):
        summarize(path, **COLUMNS)
    with pytest.raises(ValueError, match=r"bad\.parquet"):
        summarize(tmp_path, **COLUMNS)
    assert _listing(tmp_path) == before


def test_the_shell_names_a_damaged_file(tmp_path, monkeypatch):
    path = tmp_path / "bad.parquet"
    write(path, *rows())
    content = path.read_bytes()
    path.write_bytes(content[:100] + bytes(2000) + content[2100:])
    monkeypatch.setattr("caldist.cli._by_summary.MANY", 500)
    for command in (("measure", path), ("summarize", path, "-o", tmp_path / "joint.npz")):
        done = run(*command, "--label", "label", "--score", "score")
        assert done.exit_code == 2
        assert "bad.parquet' cannot be read" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tsv", "csv", "parquet", "jsonl"])
def test_names_of_files_are_no_patterns(tmp_path, kind):
    pd = pytest.importorskip("pandas")
    y_true, y_prob = rows(60)
    y_prob = y_prob.round(5)  # pandas writes so many digits in JSON
    days = np.repeat(["2025-01-01", "2025-01-02"], 30)
    wanted = pd.DataFrame({"label": y_true, "score": y_prob, "day": days})
    for name, table in (("gl[o]b", wanted), ("glob", pd.DataFrame({"other": [1, 2]}))):
        path = tmp_path / f"{name}.{kind}"
        {
            "tsv": lambda t, p: t.to_csv(p, sep="\t", index=False),
            "csv": lambda t, p: t.to_csv(p, index=False),
            "parquet": lambda t, p: t.to_parquet(p),
            "jsonl": lambda t, p: t.to_json(p, orient="records", lines=True),
        }[kind](table, path)
    path, options = tmp_path / f"gl[o]b.{kind}", ("--label", "label", "--score", "score")
    assert summarize(path, **COLUMNS) == Joint.from_arrays(y_true, y_prob).coarsen(16)
    out, state = tmp_path / "jo[i]nt.npz", tmp_path / "sta[t]e.npz"
    for command in (
        ("measure", path, *options, "--by", "day"),
        ("summarize", path, *options, "-o", out),
        ("measure", out),
        ("monitor", path, *options, "--date", "day", "--state", state),
    ):
        done = run(*command)
        assert done.exit_code == 0, done.output


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["*", "^sco.*$", "t.*", 'a"b'])
def test_the_shell_takes_no_name_of_a_column_for_a_pattern(tmp_path, name, kind):
    pd = pytest.importorskip("pandas")
    y_true, y_prob = rows(60)
    days = np.repeat(["2025-01-01", "2025-01-02"], 30)
    told = []
    for score in (name, "plain"):
        table = pd.DataFrame({"label": y_true, "score": 0.5, score: y_prob, "day": days})
        path = tmp_path / f"{len(told)}.{kind}"
        table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path)
        options = (path, "--label", "label", "--score", score)
        state, out = (tmp_path / f"{what}{len(told)}.npz" for what in ("state", "joint"))
        days_seen = run("monitor", *options, "--date", "day", "--state", state, "--weight", score)
        measured = run("measure", *options, "--format", "json")
        assert run("summarize", *options, "-o", out).exit_code == 0
        [line] = json.loads(measured.stdout)["results"]
        told.append((days_seen.stdout, line["smooth_ce"], Joint.load(out)))
    assert told[0] == told[1]
    assert len(told[0][0].splitlines()) == 3


def test_a_csv_line_that_does_not_fit(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label,score\n" + "1,0.5\n" * 30_000 + "1,what\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"a\.csv, line 30002: column 'score' is 'what'"):
        summarize(path, **COLUMNS)


def test_files_that_are_not_there_or_of_another_kind(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.parquet"):
        summarize(tmp_path / "none.parquet", **COLUMNS)
    with pytest.raises(FileNotFoundError, match=r"\*\.csv"):
        summarize(str(tmp_path / "*.csv"), **COLUMNS)
    with pytest.raises(FileNotFoundError, match="no file in it"):
        summarize(tmp_path, **COLUMNS)
    (tmp_path / "a.xlsx").write_bytes(b"")
    with pytest.raises(ValueError, match="unknown kind"):
        summarize(tmp_path / "a.xlsx", **COLUMNS)
    (tmp_path / "a.npz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"a\.npz' is a summary .* no rows. Pass the table"):
        summarize(tmp_path / "a.npz", **COLUMNS)
    write(tmp_path / "a.csv", *rows(3))
    write(tmp_path / "a.parquet", *rows(3))
    with pytest.raises(ValueError, match="different kinds"):
        summarize(tmp_path, **COLUMNS)
    for name in ("a.jsonl", "a.jsonl.gz"):
        with (gzip.open if name.endswith("gz") else open)(tmp_path / name, "wb"):
            pass
        with pytest.raises(ValueError, match=rf"{name}' has no rows"):
            summarize(tmp_path / name, **COLUMNS)


def test_open_files_is_a_relation(tmp_path):
    write(tmp_path / "a.csv", *rows(3))
    relation = open_files([str(tmp_path / "a.csv")])
    assert relation.columns == ["label", "score"]
    assert len(relation.fetchall()) == 3


# -- folders that are columns -------------------------------------------------------------------


@pytest.mark.parametrize("key", ["label", "Label"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_a_folder_does_not_replace_a_column(tmp_path, kind, key):
    """DuckDB reads the labels of label=1/a.csv as 1, whatever the file says."""
    write(tmp_path / f"{key}=1" / f"a.{kind}", [0, 0, 0, 1], [0.1, 0.2, 0.3, 0.4])
    with pytest.raises(
        ValueError, match=rf"'{key}=1' of .*a\.{kind}.* 'label' themselves"
    ) as caught:
        summarize(tmp_path, **COLUMNS)
    assert "Rename" in caught.value.remedy


def test_a_folder_further_up_or_in_another_file_does_not_replace_a_column(tmp_path):
    write(tmp_path / "score=1" / "day=2" / "a.csv", [0, 1], [0.1, 0.2])
    with pytest.raises(ValueError, match="'score=1'"):
        summarize(tmp_path, **COLUMNS)
    other = tmp_path / "other"
    write(other / "day=1" / "a.csv", [0, 1], [0.1, 0.2])
    write(other / "day=2" / "b.csv", [0, 1], [0.1, 0.2], day=[5, 6])
    with pytest.raises(ValueError, match="'day=1'"):
        summarize(other, **COLUMNS)


def test_folders_that_are_no_columns_replace_nothing(tmp_path):
    """Not every folder has a key, so none of them gives a column."""
    write(tmp_path / "label=1" / "a.csv", [0, 1], [0.1, 0.2])
    write(tmp_path / "rest" / "b.csv", [0, 0], [0.1, 0.2])
    assert summarize(tmp_path, **COLUMNS).mass1.sum() == 1


# -- files elsewhere ----------------------------------------------------------------------------

REMOTE = [
    "https://example.org/a.csv",
    "HTTP://example.org/a.csv",
    "s3://bucket/*.parquet",
    "s3a://bucket/a.parquet",
    "gs://bucket/a.parquet",
    "gcs://bucket/a.parquet",
    "r2://bucket/a.parquet",
    "az://container/a.parquet",
    "abfss://container/a.parquet",
    "hf://datasets/a/b.parquet",
]


@pytest.fixture
def configured(monkeypatch):
    """Collect the settings of new connections, and open none."""
    import duckdb

    settings = []

    def connect(*_, config):
        settings.append(config)
        raise duckdb.Error("no connection in this test")

    monkeypatch.setattr(duckdb, "connect", connect)
    return settings


@pytest.mark.parametrize("path", REMOTE)
def test_files_elsewhere_are_refused_unless_asked_for(tmp_path, configured, path):
    for files in (path, [str(tmp_path / "a.csv"), path]):
        with pytest.raises(ValueError, match=r"opens no connection.*remote=True") as caught:
            summarize(files, **COLUMNS)
        assert repr(path) in str(caught.value)
    assert configured == []


def test_extensions_are_loaded_only_where_files_may_be_elsewhere(tmp_path, configured):
    import duckdb

    for remote, path in ((False, "a.csv"), (True, "https://example.org/a.csv")):
        with pytest.raises(duckdb.Error, match="no connection"):
            open_files(path, remote=remote)
    local, elsewhere = configured
    assert local["autoinstall_known_extensions"] is local["autoload_known_extensions"] is False
    assert not elsewhere.keys() & {"autoinstall_known_extensions", "autoload_known_extensions"}
    with pytest.raises(TypeError, match="remote"):
        open_files("a.csv", remote="yes")


def test_duckdb_itself_stays_here(tmp_path):
    write(tmp_path / "a.csv", *rows(3))
    settings = "SELECT name, value FROM duckdb_settings() WHERE name LIKE 'auto%_known_extensions'"
    found = open_files(tmp_path / "a.csv").query("files", settings).fetchall()
    assert sorted(found) == [
        ("autoinstall_known_extensions", "false"),
        ("autoload_known_extensions", "false"),
    ]


def test_local_names_that_look_like_addresses(tmp_path, monkeypatch):
    write(tmp_path / "a.csv", *rows(3))
    assert len(open_files(f"file://{tmp_path}/a.csv").fetchall()) == 3
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "s3:" / "a.csv", *rows(3))
    assert len(open_files("s3:/a.csv").fetchall()) == 3


def test_any_two_labels_of_a_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label,score\nyes,0.25\nno,0.5\n", encoding="utf-8")
    expected = Joint.from_arrays([1, 0], [0.25, 0.5]).coarsen(16)
    assert summarize(path, **COLUMNS, pos_label="yes") == expected
    assert summarize(path, **COLUMNS) == expected  # words for labels
