"""The guide on large tables: its query gives the bits of ``summarize``, and its examples run."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import caldist
from caldist.engines import summarize
from engine_needs import need
from engine_rows import INF, INVALID_COUNTS, INVALID_ROWS, NAN, hard_rows

pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "large-tables.md"
CLUSTERS = ("tcp://scheduler", "SparkSession")


def blocks(language):
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(params=["counts", "weights"])
def weighted(request):
    return request.param == "weights"


@pytest.fixture
def query(weighted):
    counts, weights = blocks("sql")
    return weights if weighted else counts


@pytest.fixture
def scores(weighted):
    """Return valid and invalid rows; weights are such that their sums are exact."""
    y_true, y_prob = hard_rows()
    label, score = [*y_true.tolist(), *INVALID_ROWS["label"]], [*y_prob.tolist()]
    score += INVALID_ROWS["score"]
    columns = {"label": label, "score": score}
    if weighted:
        rng = np.random.default_rng(0)
        columns["weight"] = rng.choice([0, 0.5, 1, 2, 1000], len(label)).tolist()
        columns = {name: values + values[:5] for name, values in columns.items()}
        columns["weight"][-5:] = [-1.0, NAN, INF, -INF, None]
    return pa.table({name: pa.array(values, pa.float64()) for name, values in columns.items()})


@pytest.fixture
def expected(scores, weighted):
    weight = "weight" if weighted else None
    joint = summarize(scores, y_true="label", y_prob="score", sample_weight=weight, invalid="count")
    assert joint.invalid == INVALID_COUNTS | ({"bad weight": 5} if weighted else {})
    return joint


def read_as_the_guide_does(cells, folder, monkeypatch):
    """Run the block that reads the result of the query; that for weights continues the other."""
    monkeypatch.chdir(folder)
    names = {"caldist": caldist}
    block, weighted = (block for block in blocks("python") if "from_cells" in block)
    if "n_rows" in cells:
        starts = ("from ", "import ", "sums = ", "reasons = ")
        exec("\n".join(line for line in block.splitlines() if line.startswith(starts)), names)
        block = weighted
    cells.to_csv("weighted-cells.csv" if "n_rows" in cells else "cells.csv", index=False)
    exec(block, names)
    return names["joint"]


def test_the_query_in_duckdb(query, scores, expected, tmp_path, monkeypatch):
    connection = duckdb.connect()
    connection.register("scores", scores)
    cells = connection.sql(query).df()
    assert read_as_the_guide_does(cells, tmp_path, monkeypatch) == expected


def test_the_query_in_duckdb_on_parquet_with_one_nan(tmp_path, query, weighted):
    """DuckDB takes the minimum and maximum that files keep for those of all rows."""
    import pyarrow.parquet

    columns = ("label", "score", "weight")[: 2 + weighted]
    for name, cell in zip(columns, (-1, -3, -5), strict=False):
        values = {"label": [0.0, 1.0, 1.0], "score": [0.25, 0.5, 0.75], "weight": [1.0, 1.0, 1.0]}
        values[name][1] = NAN
        pyarrow.parquet.write_table(pa.table(values), tmp_path / "rows.parquet")
        connection = duckdb.connect()
        connection.read_parquet(str(tmp_path / "rows.parquet")).create_view("scores")
        cells = connection.sql(query).df()
        rows = cells["n_rows"] if weighted else cells["count0"] + cells["count1"]
        found = dict(zip(cells["cell"], rows, strict=True))
        assert found == {cell: 1, 0.25 * 2**16: 1, 0.75 * 2**16: 1}


@pytest.mark.slow
def test_the_query_in_spark(spark, query, scores, expected, tmp_path, monkeypatch):
    spark.createDataFrame(scores).createOrReplaceTempView("scores")
    cells = spark.sql(query.replace("DOUBLE PRECISION", "DOUBLE")).toArrow().to_pandas()
    assert read_as_the_guide_does(cells, tmp_path, monkeypatch) == expected


def test_the_query_in_datafusion(query, scores, expected, tmp_path, monkeypatch):
    context = need("datafusion").SessionContext()
    context.from_arrow(scores, name="scores")
    cells = context.sql(query).to_pandas()
    assert read_as_the_guide_does(cells, tmp_path, monkeypatch) == expected


@pytest.mark.slow
@pytest.mark.parametrize("label", ["double precision", "boolean"])
def test_the_query_in_postgresql(
    label, postgres, query, weighted, scores, expected, tmp_path, monkeypatch
):
    """Predictions whose squares underflow are among the rows, and a label may be a Boolean."""
    pd = pytest.importorskip("pandas")
    if label == "boolean":  # NaN and 2 are none
        query = query.replace("CAST(label AS", "CAST(CAST(label AS INTEGER) AS")
        binary = [value in (0, 1) for value in scores["label"].to_pylist()]
        scores = scores.filter(pa.array(binary))
        values = [value == 1 for value in scores["label"].to_pylist()]
        scores = scores.set_column(0, "label", [pa.array(values)])
        expected = replace(expected, invalid=counts(expected, "prediction", "weight"))
    with postgres.raw_sql("DROP TABLE IF EXISTS scores"):
        postgres.create_table("scores", scores, temp=True)
    with postgres.raw_sql(query) as cursor:
        names = [column.name for column in cursor.description]
        cells = pd.DataFrame(cursor.fetchall(), columns=names)
    assert read_as_the_guide_does(cells, tmp_path, monkeypatch) == expected


def counts(joint, *kinds):
    """Return the reasons that speak of these kinds of columns, and how many rows have each."""
    return {name: n for name, n in joint.invalid.items() if name.split()[-1] in kinds}


def test_the_query_in_sqlite(query, scores, expected, tmp_path, monkeypatch):
    """A third reading of the standard; SQLite has no NaN."""
    import sqlite3

    import pandas as pd

    if sqlite3.sqlite_version_info < (3, 35):
        pytest.skip("this SQLite has no FLOOR")
    connection = sqlite3.connect(":memory:")
    scores.to_pandas().to_sql("scores", connection, index=False)
    try:
        cells = pd.read_sql(query, connection)
    except pd.errors.DatabaseError as error:
        pytest.skip(f"this SQLite has no FLOOR: {error}")
    finally:
        connection.close()
    assert read_as_the_guide_does(cells, tmp_path, monkeypatch) == expected


def test_the_examples_run(tmp_path, monkeypatch):
    pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    y_prob = rng.random(2000)
    y_true = (rng.random(2000) < y_prob).astype(int)
    probabilities = rng.dirichlet([1, 1, 1], 50)
    animals = {
        f"p_{name}": p for name, p in zip(("cat", "dog", "eel"), probabilities.T, strict=True)
    }
    connection = duckdb.connect()
    table = {"label": y_true, "score": y_prob, "weight": rng.random(2000)}
    connection.register("scores", pa.table(table))
    connection.register("animals", pa.table({"animal": ["cat", "dog"] * 25, **animals}))
    monkeypatch.chdir(tmp_path)
    connection.execute("COPY scores TO 'scores.parquet'")
    connection.execute("COPY animals TO 'animals.parquet'")
    connection.execute(
        "COPY (SELECT *, 1 AS day FROM scores) TO 'scores' (FORMAT parquet, PARTITION_BY day)"
    )
    for query, name in zip(blocks("sql"), ("cells.csv", "weighted-cells.csv"), strict=True):
        connection.sql(query).df().to_csv(name, index=False)
    batches = [(day, y_true, y_prob) for day in range(1, 9) for _ in range(2)]
    names = {"batches": batches}
    run = [block for block in blocks("python") if not any(name in block for name in CLUSTERS)]
    assert len(run) == len(blocks("python")) - 2
    for block in run:
        exec(compile(block, PAGE.name, "exec"), names)
    assert set(names["by_day"]) == {1}
    assert names["week"].n_rows == 7 * 2 * 2000
