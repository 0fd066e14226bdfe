"""Folders of engines: files that hold no rows, or rows that were deleted, are not counted."""

import numpy as np
import pytest

from caldist import Joint, recalibrate
from caldist.engines import open_files, summarize
from command_lines import run

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("duckdb")

COLUMNS = {"y_true": "label", "y_prob": "score"}
SHELL = ("--label", "label", "--score", "score")


def write(path, size=100):
    rng = np.random.default_rng(size)
    score = rng.random(size)
    path.parent.mkdir(parents=True, exist_ok=True)
    day = ["2025-01-01"] * size
    parquet.write_table(
        pa.table({"label": (rng.random(size) < score) * 1, "score": score, "date": day}), path
    )


@pytest.fixture
def spark(tmp_path):
    """Return a folder with one file of rows among those that Spark and other writers leave."""
    folder = tmp_path / "rows.parquet"
    names = ("part-0.parquet", "_part-1.parquet", ".part-2.parquet", "_temporary/0/part-3.parquet")
    for name in (*names, "day=1/.hidden/part-4.parquet"):
        write(folder / name)
    (folder / "_SUCCESS").touch()
    return folder


def counted(*asked, folder):
    """Return the number of rows by Python and by the shell."""
    out = folder / "joint.npz"
    done = run("summarize", *asked, *SHELL, "-o", out)
    assert done.exit_code == 0, done.output
    assert run("measure", *asked, *SHELL).exit_code == 0
    found = summarize([str(path) for path in asked], **COLUMNS)
    assert Joint.load(out).n_rows == found.n_rows
    return found.n_rows


def test_names_that_begin_with_a_line_or_a_point_hold_no_rows(spark, tmp_path):
    asked = (spark, str(spark / "*.parquet"), str(spark / "**" / "*.parquet"), tmp_path)
    for path in asked:
        assert counted(path, folder=tmp_path) == 100
    assert len(open_files(f"file://{spark}/*.parquet").fetchall()) == 100


@pytest.mark.slow
def test_names_that_are_asked_for_are_read(spark, tmp_path):
    for name in ("_part-1.parquet", "_*.parquet", "_temporary", "_temporary/*/*.parquet"):
        assert counted(str(spark / name), folder=tmp_path) == 100
    assert counted(spark, str(spark / "_part-1.parquet"), folder=tmp_path) == 200


def test_a_folder_without_files_that_count(tmp_path):
    write(tmp_path / "_old.parquet")
    with pytest.raises(FileNotFoundError, match=r"does not start with _ or a dot"):
        summarize(tmp_path, **COLUMNS)
    done = run("measure", tmp_path, *SHELL)
    assert done.exit_code == 2
    assert "does not start with _ or a dot" in done.stderr


TABLES = {
    "_delta_log/00000000000000000000.json": ("a Delta table", "polars.scan_delta", "delta_scan"),
    "metadata/v2.metadata.json": ("an Iceberg table", "polars.scan_iceberg", "iceberg_scan"),
    ".hoodie/hoodie.properties": ("a Hudi table", "spark.read.format('hudi')"),
}


@pytest.mark.parametrize("mark", TABLES)
def test_tables_that_keep_deleted_rows_are_refused(tmp_path, mark, monkeypatch):
    table = tmp_path / "lake" / "scores"
    file = table / "data" / "day=1" / "part-0.parquet"
    write(file)
    (table / mark).parent.mkdir()
    (table / mark).touch()
    monkeypatch.chdir(table)
    patterns = (str(table / "**" / "*.parquet"), str(file.parent / "*.parquet"))
    for asked in (table, str(table), tmp_path, file.parent, *patterns, "data/*/*.parquet", "."):
        for pass_it in (summarize, lambda path, **_: run_or_raise("measure", path, *SHELL)):
            with pytest.raises(ValueError, match="is ") as caught:
                pass_it(asked, **COLUMNS)
            for words in (str(table), *TABLES[mark]):
                assert words in str(caught.value)
    assert summarize(file, **COLUMNS).n_rows == 100  # as delta-rs lists the files of its rows


def run_or_raise(*arguments):
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    raise ValueError(done.stderr)


def test_every_command_refuses_them_also_file_by_file(tmp_path):
    """Shells write out patterns."""
    write(tmp_path / "table" / "part-0.parquet")
    write(tmp_path / "table" / "part-1.parquet")
    (tmp_path / "table" / "_delta_log").mkdir()
    files = sorted((tmp_path / "table").glob("*.parquet"))
    rng = np.random.default_rng(0)
    score = rng.random(500)
    recalibrate(rng.random(500) < score, score, family="shift", n_resamples=99).map.save(
        tmp_path / "map.json"
    )
    state, out = tmp_path / "state.npz", tmp_path / "out.parquet"
    for command in (
        ("measure", *files, *SHELL),
        ("test", *files, *SHELL),
        ("report", *files, *SHELL, "-o", tmp_path / "report.html"),
        ("summarize", *files, *SHELL, "-o", tmp_path / "joint.npz"),
        ("monitor", *files, *SHELL, "--date", "date", "--state", state),
        ("apply", tmp_path / "map.json", *files, "--score", "score", "--column", "q", "-o", out),
    ):
        done = run(*command)
        assert (done.exit_code, "is a Delta table" in done.stderr) == (2, True), command
    assert sorted(path.name for path in tmp_path.glob("[!.]*")) == ["map.json", "table"]


def test_summaries_may_lie_anywhere(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    Joint.from_arrays([0, 1], [0.2, 0.7]).save(tmp_path / "day.npz")
    assert run("measure", tmp_path / "day.npz").exit_code == 0
    assert run("measure", str(tmp_path / "*.npz")).exit_code == 0
