"""NaN in Parquet files: writers leave it out of the minimum and maximum of a column.

DuckDB folds comparisons by these limits. Here all values but one are within them.
"""

import json

import numpy as np
import pytest

from caldist import Joint, recalibrate
from caldist.cli import _by_summary
from caldist.engines import rewrite, summarize, summarize_one_vs_rest, summarize_top_label
from command_lines import run

nw = pytest.importorskip("narwhals")
pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
parquet = pytest.importorskip("pyarrow.parquet")

# Ibis calls a function of DuckDB that has another name now.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
SIZE, ROW = 600, 321
SHELL = ("--label", "label", "--score", "score")
REASONS = {
    "label": ("missing label", "null or NaN"),
    "score": ("missing prediction", "null or NaN"),
    "w": ("bad weight", "missing, negative or infinite"),
}


def columns(kind=np.float64):
    rng = np.random.default_rng(5)
    score = rng.random(SIZE)
    return {
        "label": (rng.random(SIZE) < score).astype(kind),
        "score": score.astype(kind),
        "w": np.ones(SIZE, kind),
        "day": np.repeat(["2025-01-01", "2025-01-02", "2025-01-03"], SIZE // 3),
    }


def with_pyarrow(path, data):
    parquet.write_table(pa.table(data), path, row_group_size=200)


def with_polars(path, data):
    pytest.importorskip("polars").DataFrame(data).write_parquet(path)


@pytest.fixture(params=[with_pyarrow, with_polars])
def written(tmp_path, request):
    """Return a function that writes a file with NaN in one row of a column."""

    def write(column, kind=np.float64, **others):
        data = columns(kind) | others
        data[column] = data[column].copy()
        data[column][ROW] = np.nan
        request.param(tmp_path / "rows.parquet", data)
        return tmp_path / "rows.parquet"

    return write


def own_files(path):
    return path


def relation(path):
    return duckdb.connect().read_parquet(str(path))


def filtered_relation(path):
    return duckdb.connect().sql(f"SELECT * FROM '{path}' WHERE day <> 'never'")


def ibis_table(path):
    return pytest.importorskip("ibis").duckdb.connect().read_parquet(path)


def lazy_polars(path):
    return pytest.importorskip("polars").scan_parquet(path)


@pytest.fixture(params=[own_files, relation, filtered_relation, ibis_table, lazy_polars])
def opened(request):
    return request.param


def expected(column):
    """Return the summary of all other rows."""
    data = columns()
    label, score, w = (np.delete(data[name], ROW) for name in ("label", "score", "w"))
    weights = {"sample_weight": w} if column == "w" else {}
    return Joint.from_arrays(label, score, **weights).coarsen(16)


@pytest.mark.parametrize("column", REASONS)
@pytest.mark.parametrize("pos_label", [None, 1.0])
def test_one_nan_is_refused_or_counted(written, opened, column, pos_label):
    table = opened(written(column))
    asked = {"y_true": "label", "y_prob": "score", "pos_label": pos_label}
    if column == "w":
        asked["sample_weight"] = "w"
    reason, why = REASONS[column]
    with pytest.raises(ValueError, match=rf"1 with a {reason} \({why}\) in column '{column}'\."):
        summarize(table, **asked)
    found = summarize(table, **asked, invalid="count")
    assert found.invalid == {reason: 1}
    assert found.grid == expected(column).grid
    parts = summarize(table, **asked, invalid="count", by="day")
    assert sum(parts.values()).grid == found.grid
    assert {day: dict(part.invalid) for day, part in parts.items() if part.invalid} == {
        "2025-01-02": {reason: 1}
    }


def test_columns_that_cannot_be_null(tmp_path, opened):
    table = pa.table(columns() | {"score": np.where(np.arange(SIZE) == ROW, np.nan, 0.5)})
    required = pa.schema([field.with_nullable(False) for field in table.schema])
    parquet.write_table(table.cast(required), tmp_path / "rows.parquet")
    table = opened(tmp_path / "rows.parquet")
    found = summarize(table, y_true="label", y_prob="score", invalid="count")
    assert found.invalid == {"missing prediction": 1}


def test_single_precision(written, opened):
    table = opened(written("score", np.float32))
    found = summarize(table, y_true="label", y_prob="score", invalid="count")
    assert found.invalid == {"missing prediction": 1}


def test_nan_is_one_group_with_null(written, opened):
    group = np.repeat([0.0, 1.0], SIZE // 2)
    table = opened(written("group", group=group))
    found = summarize(table, y_true="label", y_prob="score", by="group")
    assert {key: part.n_rows for key, part in found.items()} == {0: 300, 1: 299, None: 1}


@pytest.mark.parametrize("column", ["label", "score"])
def test_one_nan_among_several_classes(written, opened, column):
    """All labels but one are 1.0, so that a comparison with 1 would hold for all."""
    table = opened(written(column, other=1 - columns()["score"], label=np.ones(SIZE)))
    asked = {"y_true": "label", "y_prob": ["other", "score"], "invalid": "count"}
    reason, _ = REASONS[column]
    assert summarize_top_label(table, **asked).invalid == {reason: 1}
    for joint in summarize_one_vs_rest(table, **asked):
        assert joint.invalid == {reason: 1}
        assert joint.total == SIZE - 1
    with pytest.raises(ValueError, match=f"1 with a {reason} .*'{column}'"):
        summarize_top_label(table, **asked | {"invalid": "raise"})


def test_sums_that_are_nan_are_refused_if_a_check_lets_them_pass(tmp_path, monkeypatch):
    data = columns()
    data["w"][ROW] = np.nan
    with_pyarrow(tmp_path / "rows.parquet", data)
    monkeypatch.setattr(
        rewrite.Columns, "_column", lambda self, name: nw.nth([*self._schema].index(name))
    )
    with pytest.raises(ValueError, match="sample_weight adds up to NaN"):
        summarize(tmp_path / "rows.parquet", y_true="label", y_prob="score", sample_weight="w")


# -- from the shell ------------------------------------------------------------------------------


@pytest.mark.parametrize("column", REASONS)
@pytest.mark.parametrize("many", [True, False])
def test_measure_and_summarize_name_the_cell(written, monkeypatch, column, many):
    monkeypatch.setattr(_by_summary, "MANY", 500 if many else 1000)
    path = written(column)
    weight = ("--weight", "w") if column == "w" else ()
    out = path.with_name("joint.npz")
    for command, options in (("measure", ()), ("summarize", ("-o", out)), ("test", ())):
        done = run(command, path, *SHELL, *weight, *options)
        assert done.exit_code == 2
        assert f"rows.parquet, row {ROW + 1}: column '{column}' is 'nan'" in done.stderr
    assert not out.exists()
    done = run("summarize", path, *SHELL, *weight, "--invalid", "count", "-o", out)
    assert done.exit_code == 0
    reason, _ = REASONS[column]
    joint = Joint.load(out)
    assert joint.invalid == {reason: 1}
    assert joint.grid == expected(column).grid


def test_measure_of_files_too_large_to_read_again_names_the_column(written, monkeypatch):
    monkeypatch.setattr(_by_summary, "MANY", 500)
    monkeypatch.setattr(_by_summary, "may_be_read_again", lambda _paths: False)
    done = run("measure", written("w"), *SHELL, "--weight", "w")
    assert done.exit_code == 2
    assert "1 with a bad weight (missing, negative or infinite) in column 'w'" in done.stderr


def test_measure_leaves_out_what_is_missing(written, monkeypatch):
    monkeypatch.setattr(_by_summary, "MANY", 500)
    done = run("measure", written("score"), *SHELL, "--drop-missing", "--format", "json")
    assert "summarised first" in done.stderr
    assert json.loads(done.stdout)["dropped"]["rows"] == 1


@pytest.mark.parametrize("column", REASONS)
@pytest.mark.parametrize("positive", [(), ("--positive", 1)])
def test_monitor_refuses_or_counts(written, column, positive):
    path = written(column)
    state = path.with_name("state.npz")
    asked = (path, *SHELL, *positive, "--weight", "w", "--date", "day", "--state", state)
    done = run("monitor", *asked)
    assert done.exit_code == 2
    reason, _ = REASONS[column]
    assert f"row {ROW + 1}: column '{column}' is 'nan'" in done.stderr
    assert f"1 with a {reason}" in done.stderr
    assert not state.exists()
    done = run("monitor", *asked, "--invalid", "count", "--format", "json")
    assert done.exit_code == 0
    assert [json.loads(line)["n_rows"] for line in done.stdout.splitlines()] == [200, 199, 200]
    assert f"1 with a {reason}" in done.output


@pytest.mark.parametrize("method", ["isotonic", "shift"])
@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_apply_writes_no_nan(written, kind, method):
    path = written("score")
    out, table = path.with_name(f"out.{kind}"), path.with_name("map.json")
    rng = np.random.default_rng(0)
    score = rng.random(2000)
    fitted = recalibrate(rng.random(2000) < score**1.5, score, family=method, n_resamples=99)
    fitted.map.save(table)
    done = run("apply", table, path, "--score", "score", "--column", "new", "-o", out)
    assert done.exit_code == 2
    assert f"row {ROW + 1}: column 'score' is 'nan': a prediction is missing" in done.stderr
    assert not out.exists()
