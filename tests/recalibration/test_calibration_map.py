"""CalibrationMap: the same map from NumPy, SQL, float32 and torch; its files against damage."""

import json
import pickle
import sqlite3
from copy import deepcopy
from functools import partial
from importlib.resources import files

import jsonschema
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caldist
from caldist.recalibration import CalibrationMap
from caldist.recalibration import sql as _sql
from strategies import probability


@st.composite
def maps(draw):
    x = sorted(set(draw(st.lists(probability, min_size=1, max_size=30))))
    y = sorted(draw(st.lists(probability, min_size=len(x), max_size=len(x))))
    return CalibrationMap(x, y)


def wiggly(knots=100, seed=0):
    rng = np.random.default_rng(seed)
    x = np.unique(np.concatenate(([0.0, 1.0], rng.random(knots), 10.0 ** rng.uniform(-9, 0, 20))))
    return CalibrationMap(x, np.sort(rng.random(x.size)))


def scores(x, seed=1):
    """Return scores at the knots, beside them and between."""
    beside = np.concatenate((np.nextafter(x, 2), np.nextafter(x, -1)))
    rng = np.random.default_rng(seed)
    return np.clip(np.concatenate((x, beside, rng.random(2000), [0.0, 1.0])), 0, 1)


# -- the map ---------------------------------------------------------------------------------------


@given(maps(), st.lists(probability, min_size=1, max_size=30))
def test_it_is_what_numpy_interpolates(table, values):
    v = np.array(values)
    found = table(v)
    assert found.dtype == np.float64
    with np.errstate(over="ignore", invalid="ignore"):  # slopes that NumPy cannot hold
        expected = np.interp(v, table.x, table.y)
    np.testing.assert_allclose(found, np.where(np.isnan(expected), found, expected), atol=1e-12)


@given(maps(), st.lists(probability, min_size=2, max_size=30))
def test_rounding_never_turns_the_order_over(table, values):
    near = [np.nextafter(v, d) for v in (*values, *table.x) for d in (0.0, 1.0)]
    v = np.sort(np.array([*values, *table.x, *near]))
    found = table(v)
    assert (np.diff(found) >= 0).all()
    assert (found >= table.y[0]).all()
    assert (found <= table.y[-1]).all()
    np.testing.assert_array_equal(table(table.x), table.y)


@given(maps(), probability)
def test_the_inverse_is_the_interval_of_scores(table, v):
    value = table(v)
    lower, upper = table.inverse(value)
    assert 0 <= lower <= upper <= 1
    assert lower - 1e-9 <= v <= upper + 1e-9 or table(lower) == pytest.approx(value, abs=1e-9)
    assert table(lower) == pytest.approx(value, abs=1e-9)
    assert table(upper) == pytest.approx(value, abs=1e-9)


def test_the_inverse_of_flat_parts_and_of_values_outside():
    table = CalibrationMap([0.1, 0.4, 0.6, 0.9], [0.2, 0.5, 0.5, 0.8])
    assert table.inverse(0.5) == (pytest.approx(0.4), pytest.approx(0.6))
    assert table.inverse(0.2) == (0.0, pytest.approx(0.1))
    assert table.inverse(0.8) == (pytest.approx(0.9), 1.0)
    lower, upper = table.inverse([[0.3, 0.5]])
    assert lower.shape == upper.shape == (1, 2)
    with pytest.raises(ValueError, match=r"value\[0\] is 0.1: no score is mapped to it.*0.2 and"):
        table.inverse(0.1)


def test_shapes_and_types_are_kept_simple():
    table = CalibrationMap([0, 1], [0.1, 0.9])
    assert isinstance(table(0.5), float)
    assert table(0.5) == 0.5
    assert table(np.full((2, 3), 0.5)).shape == (2, 3)
    assert table([]).size == 0
    for column in (pd.Series([0.0, 0.5]), pl.Series([0.0, 0.5]), (0.0, 0.5)):
        np.testing.assert_allclose(table(column), [0.1, 0.5])
    assert table.is_strict
    assert not CalibrationMap([0, 1], [0.3, 0.3]).is_strict
    assert repr(table) == "CalibrationMap(2 knots, 0 -> 0.1, 1 -> 0.9)"


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ([0.5, np.nan], r"y_prob\[1\] is nan"),
        ([-0.1], r"y_prob\[0\] is -0.1"),
        ([1.5], r"y_prob\[0\] is 1.5"),
        (["0.5"], r"y_prob\[0\] is '0.5'"),
        (None, "y_prob is None"),
        ("0.5", "y_prob is '0.5'"),
    ],
)
def test_bad_scores_are_named(bad, match):
    with pytest.raises((TypeError, ValueError), match=match):
        CalibrationMap([0, 1], [0, 1])(bad)


@pytest.mark.parametrize(
    ("x", "y", "place", "value"),
    [
        ([0, 0.5, 0.2], [0, 0.5, 1], "x[2]", 0.2),
        ([0, 0.5, 0.5], [0, 0.5, 1], "x[2]", 0.5),
        ([0, 0.5, 1], [0, 0.5, 0.4], "y[2]", 0.4),
        ([0, np.nan, 1], [0, 0.5, 1], "x[1]", pytest.approx(np.nan, nan_ok=True)),
        ([0, 0.5, 1], [0, 0.5, 1.5], "y[2]", 1.5),
        ([0, 1], [0, 0.5, 1], "y", None),
        ([], [], "x", None),
        ([[0, 1]], [0, 1], "x", None),
        (["a", "b"], [0, 1], "x[0]", "a"),
    ],
)
def test_tables_that_are_no_monotone_maps_are_refused(x, y, place, value):
    for call in (
        partial(CalibrationMap, x, y),
        partial(caldist.recalibration.evaluate_map, [0, 1], [0.2, 0.7], map=(x, y)),
    ):
        with pytest.raises((caldist.InvalidInput, caldist.InvalidType)) as error:
            call()
        assert (error.value.place, error.value.value) == (place, value)


def test_a_table_has_at_most_a_million_knots():
    knots = np.linspace(0, 1, 1_000_000)
    assert CalibrationMap(knots, knots).x.size == 1_000_000
    knots = np.linspace(0, 1, 1_000_001)
    with pytest.raises(
        ValueError, match="x has 1,000,001 knots, but a table has at most 1,000,000"
    ):
        CalibrationMap(knots, knots)


def test_it_is_a_value():
    table = wiggly()
    for name in ("x", "y", "provenance", "other"):
        with pytest.raises(AttributeError, match=name):
            setattr(table, name, 1)
    with pytest.raises(AttributeError, match="deleted"):
        del table.x
    with pytest.raises(ValueError, match="read-only"):
        table.x[0] = 0.5
    with pytest.raises(ValueError, match="WRITEABLE"):
        table.y.flags.writeable = True
    given_x = np.array([0.0, 1.0])
    other = CalibrationMap(given_x, [0, 1])
    given_x[1] = 0.5
    assert other.x[1] == 1
    with pytest.raises(TypeError, match="provenance is 3"):
        CalibrationMap([0, 1], [0, 1], provenance=3)
    with pytest.raises(ValueError, match="provenance cannot be written as JSON"):
        CalibrationMap([0, 1], [0, 1], provenance={"a": float("nan")})


@given(maps())
def test_equality_copies_and_pickles(table):
    same = CalibrationMap(table.x, table.y, provenance={"method": "other"})
    assert table == same
    assert hash(table) == hash(same)
    assert table != CalibrationMap([0.25], [0.123456])
    assert table != 3
    for copy in (pickle.loads(pickle.dumps(table)), deepcopy(table)):
        assert copy == table
        assert not copy.x.flags.writeable


# -- the same elsewhere ----------------------------------------------------------------------------


def in_duckdb(sql, v):
    duckdb = pytest.importorskip("duckdb")
    rows = pd.DataFrame({'a "b" c': v, "row": np.arange(v.size)})  # noqa: F841 -- DuckDB sees it
    found = duckdb.sql(f'SELECT {sql} AS r FROM rows ORDER BY "row"').fetchnumpy()["r"]
    return np.ma.filled(np.ma.asarray(found).astype(float), np.nan)


def in_sqlite(sql, v):
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE t (at INTEGER, "a ""b"" c" REAL)')
    connection.executemany("INSERT INTO t VALUES (?, ?)", enumerate(v.tolist()))
    found = connection.execute(f"SELECT {sql} FROM t ORDER BY at").fetchall()
    return np.array([np.nan if value is None else value for (value,) in found])


@pytest.mark.parametrize("engine", [in_duckdb, in_sqlite])
@pytest.mark.parametrize(
    "table",
    [
        wiggly(),
        CalibrationMap([0, 1], [0, 1]),
        CalibrationMap([0.5], [0.25]),
        CalibrationMap([0.2, 0.8], [0.1, 0.9]),
        CalibrationMap([0.0, 5e-324, 1e-300, 1.0], [0.0, 0.2, 0.3, 1.0]),
    ],
)
def test_sql_says_what_numpy_says(engine, table):
    v = scores(table.x)
    found = engine(table.to_sql('a "b" c'), v)
    np.testing.assert_allclose(found, table(v), rtol=0, atol=1e-9)


@pytest.mark.parametrize("engine", [in_duckdb, in_sqlite])
def test_sql_of_what_is_no_probability_is_null(engine):
    v = np.array([-0.1, 1.1, np.nan, np.inf, 0.5])
    found = engine(wiggly().to_sql('a "b" c'), v)
    assert np.isnan(found).tolist() == [True, True, True, True, False]


def with_knots(*x):
    """Return a map that is looked up, because it has many knots, and has these too."""
    x = np.unique(np.concatenate((x, 0.1 + np.arange(20) / 25)))
    return CalibrationMap(x, np.sort(np.random.default_rng(0).random(x.size)))


def looked_up(table, v):
    """Return what DuckDB finds, and whether some rows go through cases."""
    duckdb = pytest.importorskip("duckdb")
    steps, value, lists = _sql.lookup(table.x, table.y, 'a "b" c')
    frame = pd.DataFrame({'a "b" c': v, "row": np.arange(v.size)})  # noqa: F841 -- DuckDB sees it
    rows = "frame"
    for step in steps:
        rows = f"(SELECT *, {step} FROM {rows})"
    query = f'SELECT {value} AS r FROM {rows} ORDER BY "row"'
    found = np.ma.filled(duckdb.execute(query, lists).fetchnumpy()["r"], np.nan)
    return found, value.startswith("coalesce")


@pytest.mark.parametrize(
    ("table", "crowded"),
    [
        (wiggly(10), False),
        (wiggly(2000), True),
        (CalibrationMap(np.linspace(0, 1, 257), np.linspace(0, 1, 257) ** 2), False),
        (
            CalibrationMap(1 / (1 + np.exp(-np.linspace(-30, 30, 200))), np.linspace(0, 1, 200)),
            False,
        ),
        (with_knots(0.25, np.nextafter(0.25, 1)), False),
        (with_knots(np.nextafter(0.25, 0), 0.25), False),
        (with_knots(0.5, 0.5 + 1e-9, 0.5 + 2e-9), True),
        (with_knots(0.0, 5e-324), True),  # a slope beyond all numbers
    ],
)
def test_a_lookup_says_what_numpy_says(table, crowded):
    v = np.concatenate((scores(table.x), np.arange(1025) / 1024))
    found, cases = looked_up(table, v)
    assert cases == crowded
    np.testing.assert_allclose(found, table(v), rtol=0, atol=1e-9)


@given(maps())
def test_a_lookup_says_what_numpy_says_of_any_map(table):
    v = scores(table.x)[: 4 * table.x.size + 50]
    np.testing.assert_allclose(looked_up(table, v)[0], table(v), rtol=0, atol=1e-9)


def test_names_are_quoted_in_the_way_of_the_dialect():
    table = CalibrationMap([0, 1], [0, 1])
    starts = {
        "ansi": '"a""b`]"', "mysql": '`a"b``]`', "spark": '`a"b``]`',
        "bigquery": '`a"b\\`]`', "sqlserver": '[a"b`]]]',
    }  # fmt: skip
    for dialect, quoted in starts.items():
        assert table.to_sql('a"b`]', dialect=dialect).startswith(f"CASE WHEN {quoted} >= 0")
    with pytest.raises(ValueError, match="dialect is 'oracle'"):
        table.to_sql("a", dialect="oracle")
    for wrong in ("", "a\0b"):
        with pytest.raises(ValueError, match="column is"):
            table.to_sql(wrong)
    with pytest.raises(TypeError, match="column is 3"):
        table.to_sql(3)


def test_a_misspelt_column_of_sqlite_is_null_not_a_number():
    """SQLite takes a quoted name that it does not know for a text."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (p REAL)")
    connection.execute("INSERT INTO t VALUES (0.5)")
    sql = CalibrationMap([0, 1], [0.1, 0.9]).to_sql("q")
    assert connection.execute(f"SELECT {sql} FROM t").fetchall() == [(None,)]


def test_rounding_to_32_bits_moves_by_the_slope():
    table = wiggly()
    slope = float((np.diff(table.y) / np.diff(table.x)).max())
    v = np.random.default_rng(0).random(5000)
    moved = np.abs(table(v.astype(np.float32)) - table(v)).max()
    assert moved <= slope * 2**-24


def test_torch_says_the_same():
    torch = pytest.importorskip("torch")
    table = wiggly()
    x, y = torch.tensor(table.x.copy()), torch.tensor(table.y.copy())
    v = torch.rand(5000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    at = torch.clamp(torch.searchsorted(x, v, right=True) - 1, 0, x.numel() - 2)
    found = y[at] + (v - x[at]) / (x[at + 1] - x[at]) * (y[at + 1] - y[at])
    np.testing.assert_allclose(found.numpy(), table(v), rtol=0, atol=1e-12)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_table_as_a_frame(library):
    table = wiggly()
    found = table.to_frame(library)
    assert type(found).__module__.startswith(library)
    np.testing.assert_array_equal(np.asarray(found["x"]), table.x)


# -- files -----------------------------------------------------------------------------------------


@given(maps())
def test_files_keep_every_bit(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("maps") / "map.json"
    table.save(path)
    assert CalibrationMap.load(path) == table


def test_files_follow_the_published_schema(tmp_path):
    schema = json.loads(files("caldist.recalibration").joinpath("map.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    rng = np.random.default_rng(0)
    p = rng.random(400)
    found = caldist.recalibrate(rng.random(400) < p**2, p, family="isotonic", n_resamples=99, rng=0)
    for table in (wiggly(), found.map):
        table.save(tmp_path / "map.json")
        content = json.loads((tmp_path / "map.json").read_text())
        jsonschema.validate(content, schema)
        assert content["x"] == table.x.tolist()
        assert content["y"] == table.y.tolist()
        loaded = CalibrationMap.load(tmp_path / "map.json")
        assert loaded.provenance == table.provenance
    statement = found.map.provenance["statement"]
    assert statement["after"]["smooth_ce"]["upper"] == found.after["smooth_ce"].upper
    for wrong in ({"x": [0.0]}, {"format": "caldist-map-1", "x": [], "y": []}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


GOOD = {"format": "caldist-map-1", "x": [0.0, 0.5, 1.0], "y": [0.0, 0.25, 1.0]}
DAMAGE = {
    "unsorted": ({"x": [0.0, 1.0, 0.5]}, r"x\[2\] is 0.5: it comes after 1.0"),
    "falling": ({"y": [0.0, 1.0, 0.5]}, r"y\[2\] is 0.5: it comes after 1.0"),
    "nan": ({"y": [0.0, float("nan"), 1.0]}, "NaN stands in it, and is no number"),
    "infinite": ({"x": [0.0, 0.5, float("inf")]}, "Infinity stands in it, and is no number"),
    "outside": ({"y": [0.0, 0.5, 2.0]}, r"y\[2\] is 2.0"),
    "too short": ({"y": [0.0, 1.0]}, "y has 2 values"),
    "text": ({"x": "0, 1"}, "x is '0, 1': it must be a list"),
    "truth": ({"x": [0.0, True, 1.0]}, r"x\[1\] is True"),
    "nested": ({"x": [[0.0], [0.5], [1.0]]}, r"x\[0\] is \[0.0\]"),
    "missing": ({"x": None}, "x is None"),
    "later format": ({"format": "caldist-map-9"}, "format is 'caldist-map-9'"),
    "unknown key": ({"z": 1}, "'z' is an unknown key"),
    "no provenance": ({"provenance": 3}, "provenance is 3"),
    "empty": ({"x": [], "y": []}, "x is empty"),
    "huge": ({"x": [0.0, 0.5, 10**400]}, r"x\[2\] is 1000"),
}


@pytest.mark.parametrize(("change", "match"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_files_are_refused(tmp_path, change, match):
    path = tmp_path / "map.json"
    path.write_text(json.dumps(GOOD))
    CalibrationMap.load(path)
    path.write_text(json.dumps(GOOD | change))
    with pytest.raises(ValueError, match=rf"map\.json' is not a valid map: .*({match})"):
        CalibrationMap.load(path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null", b'{"x": 1, "x": 1}'])
def test_foreign_files_are_refused(tmp_path, content):
    path = tmp_path / "map.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a valid map"):
        CalibrationMap.load(path)


def test_a_cut_file_is_refused_at_every_length(tmp_path):
    path = tmp_path / "map.json"
    CalibrationMap([0, 1], [0, 1]).save(path)
    whole = path.read_bytes()
    for length in range(len(whole.rstrip())):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="is not a valid map"):
            CalibrationMap.load(path)


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "map.json"
    CalibrationMap([0, 1], [0, 1]).save(path)
    before = path.read_bytes()

    def fails(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr("os.fsync", fails)
    with pytest.raises(OSError, match="disk is full"):
        wiggly().save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["map.json"]
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        wiggly().save(tmp_path / "none" / "map.json")


def test_what_is_no_file_is_said(tmp_path, monkeypatch):
    with pytest.raises(IsADirectoryError, match="is a folder, not a saved map: name a file in it"):
        CalibrationMap.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="away"):
        CalibrationMap.load(tmp_path / "away.json")

    def refuse(*_, **__):
        raise PermissionError

    wiggly().save(tmp_path / "map.json")
    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(PermissionError, match=r"map\.json. may not be read: change"):
        CalibrationMap.load(tmp_path / "map.json")
