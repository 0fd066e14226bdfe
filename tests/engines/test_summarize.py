"""``summarize`` on every engine: the same bits, no row dropped, and errors that say what to do."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pytest

from caldist import InvalidInput, Joint
from caldist.data.accumulator import Accumulator
from caldist.engines import summarize
from engine_rows import INVALID_COUNTS, INVALID_ROWS, NAN, hard_rows

pa = pytest.importorskip("pyarrow")

COLUMNS = {"y_true": "label", "y_prob": "score"}


def exact(y_true, y_prob, bits=16, sample_weight=None):
    return Joint.from_arrays(y_true, y_prob, sample_weight=sample_weight).coarsen(bits)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [1, 16, 30])
def test_every_engine_gives_the_bits_of_from_arrays(constructor, bits):
    y_true, y_prob = hard_rows()
    table = constructor({"label": y_true, "score": y_prob, "other": y_prob})
    assert summarize(table, **COLUMNS, bits=bits) == exact(y_true, y_prob, bits)


@pytest.mark.slow
def test_any_partition_merged_in_any_order_gives_the_same_bits(constructor):
    y_true, y_prob = hard_rows(seed=1)
    rng = np.random.default_rng(1)
    order = rng.permutation(y_true.size)
    parts = [
        summarize(constructor({"label": y_true[rows], "score": y_prob[rows]}), **COLUMNS)
        for rows in np.array_split(order, [5, 40, 1000])
    ]
    whole = exact(y_true, y_prob)
    assert sum(parts[at] for at in rng.permutation(len(parts))) == whole
    running = Accumulator(16).update(parts[0])
    assert running.update(y_true[order[5:]], y_prob[order[5:]]).joint == whole


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pa.bool_(), pa.int8(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(3, 1)]
)
def test_labels_of_any_number_type(constructor, kind):
    y_true, y_prob = [0, 1, 1, 0, 1], [0.1, 0.2, 0.2, 0.7, 1.0]
    values = (
        map(Decimal, y_true) if pa.types.is_decimal(kind) else map(kind.to_pandas_dtype(), y_true)
    )
    table = pa.table({"label": pa.array(list(values), kind), "score": y_prob})
    native = constructor(table)
    if type(native).__module__.startswith("pandas") and native["label"].dtype == object:
        pytest.skip("pandas has decimals as Python objects, which are refused")
    assert summarize(native, **COLUMNS) == exact(y_true, y_prob)


def test_scores_in_single_precision_are_taken_as_they_are(constructor):
    y_true, y_prob = hard_rows(50)
    single = y_prob.astype(np.float32)
    table = constructor({"label": y_true, "score": single})
    assert summarize(table, **COLUMNS) == exact(y_true, single)


def test_scores_that_are_whole_numbers_or_booleans(constructor):
    for score in ([0, 1, 1, 0], [False, True, True, False]):
        table = constructor({"label": [0, 1, 0, 1], "score": score})
        assert summarize(table, **COLUMNS) == exact([0, 1, 0, 1], score)


@pytest.mark.slow
def test_invalid_rows_are_counted_by_reason(constructor):
    """Spark casts NaN to cell 0, PyArrow raises: no such row may reach a cell, or be lost."""
    table = constructor(INVALID_ROWS)
    found = summarize(table, **COLUMNS, invalid="count")
    assert found.invalid == INVALID_COUNTS
    assert found.grid == exact([1, 0], [0.25, 0.75]).grid
    weighted = summarize(table, **COLUMNS, sample_weight="w", invalid="count")
    assert weighted.invalid == INVALID_COUNTS
    assert weighted.total == 5
    assert weighted.grid == exact([1, 0], [0.25, 0.75], sample_weight=[2, 3]).grid


def test_invalid_rows_raise_by_default(constructor):
    with pytest.raises(ValueError, match=r"2 with a missing label .*4 with a bad label") as caught:
        summarize(constructor(INVALID_ROWS), **COLUMNS)
    assert "invalid='count'" in str(caught.value)
    assert "2 with a missing prediction (null or NaN)" in str(caught.value)


def test_missing_labels_of_any_two_are_counted(constructor):
    table = constructor({"label": [3.0, 4.0, None, NAN, 3.0], "score": [0.5] * 5})
    found = summarize(table, **COLUMNS, pos_label=4.0, invalid="count")
    assert found.invalid == {"missing label": 2}
    assert (found.mass0.sum(), found.mass1.sum()) == (2, 1)
    table = constructor({"label": [3.0, 4.0, None, NAN, 5.0], "score": [0.5] * 5})
    with pytest.raises(ValueError, match=r"more than two labels, among them 3\.0, 4\.0, 5\.0"):
        summarize(table, **COLUMNS, pos_label=4.0)


@pytest.mark.parametrize("weight", [{}, {"sample_weight": "w"}])
@pytest.mark.parametrize("by", [{}, {"by": "site"}])
def test_a_table_that_changes_while_it_is_read_is_an_error(weight, by):
    """The rows that are not valid must be as many when they are counted by reason."""
    pl = pytest.importorskip("polars")
    schema = {"label": pl.Int64, "score": pl.Float64, "w": pl.Float64, "site": pl.String}

    def table_of(*bad):
        """Return a table of four rows, of which so many are not valid in each pass."""
        passes = iter(bad)

        def rows(_):
            missing = next(passes)
            score = [None] * missing + [0.5] * (4 - missing)
            data = {"label": [1] * 4, "score": score, "w": [1.0] * 4, "site": ["a", "b"] * 2}
            return pl.DataFrame(data, schema)

        return pl.LazyFrame(schema=schema).map_batches(rows, schema=schema)

    asked = {**COLUMNS, **weight, **by, "invalid": "count", "memory_limit": None}
    found = summarize(table_of(2, 2), **asked)
    assert [dict(part.invalid) for part in (found.values() if by else [found])] == (
        [{"missing prediction": 1}] * 2 if by else [{"missing prediction": 2}]
    )
    for second in (0, 1, 3):
        message = f"table changed while it was read: 2 rows were not valid, and {second} when"
        with pytest.raises(ValueError, match=message):
            summarize(table_of(2, second), **asked)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["*", "^sco.*$", "t.*", 'a"b`c', "$1", "a.b", "rows"])
def test_names_of_columns_are_no_patterns_and_no_sql(constructor, name):
    columns = {"label": [0, 1, 1], "score": [0.1, 0.2, 0.3], name: [0.5, 0.75, 1.0]}
    for order in (columns, dict(reversed(columns.items()))):
        table = constructor(order)
        assert summarize(table, y_true="label", y_prob=name) == exact([0, 1, 1], columns[name])
        weighted = summarize(table, **COLUMNS, sample_weight=name, by=name)
        assert {key: joint.total for key, joint in weighted.items()} == {0.5: 0.5, 0.75: 0.75, 1: 1}


def test_nothing_valid_is_an_empty_joint_with_counts(constructor):
    table = constructor({"label": [0, 1], "score": [2.0, 3.0]})
    found = summarize(table, **COLUMNS, invalid="count")
    assert (found.total, found.invalid) == (0, {"bad prediction": 2})


def test_an_empty_table_is_an_error(constructor):
    kinds = pa.schema({"label": pa.int64(), "score": pa.float64()})
    table = constructor(pa.table({"label": [1], "score": [0.5]}, schema=kinds).slice(0, 0))
    with pytest.raises(ValueError, match="no rows"):
        summarize(table, **COLUMNS)


@pytest.mark.slow
def test_groups(constructor):
    y_true, y_prob = hard_rows(100)
    rng = np.random.default_rng(3)
    names = np.array(["x", "y", None], object)[rng.integers(0, 3, y_true.size)]
    number = rng.integers(0, 3, y_true.size)
    table = constructor({"label": y_true, "score": y_prob, "name": names, "number": number})
    by_name = summarize(table, **COLUMNS, by="name")
    assert by_name == {
        key: exact(y_true[names == key], y_prob[names == key]) for key in ("x", "y", None)
    }
    assert sum(by_name.values()) == exact(y_true, y_prob)
    both = summarize(table, **COLUMNS, by=["number", "name"])
    assert both == {
        (n, key): exact(y_true[here], y_prob[here])
        for n in range(3)
        for key in ("x", "y", None)
        for here in [(names == key) & (number == n)]
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "key",
    [
        [1.5, NAN, None, -0.0, 1.5],
        [True, False, True, False, True],
        [dt.date(2026, 1, day) for day in (1, 2, 3, 2, 1)],
        [dt.datetime(2026, 1, day, 5) for day in (1, 2, 3, 2, 1)],  # noqa: DTZ001 -- naive on purpose
        pa.array(["a", "b", None, "c", "a"]).dictionary_encode(),
        [None] * 5,
    ],
    ids=["float", "bool", "date", "datetime", "category", "null"],
)
def test_keys_of_any_type(constructor, key):
    values = key.to_pylist() if isinstance(key, pa.Array) else key
    key = pa.array(key, pa.string()) if set(values) == {None} else key
    y_true, y_prob = [0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.5]
    found = summarize(constructor({"label": y_true, "score": y_prob, "k": key}), **COLUMNS, by="k")
    expected = {}
    for value, y, p in zip(values, y_true, y_prob, strict=True):
        one = None if value is None or value is NAN else value
        expected[one] = expected.get(one, Joint.empty(16)) + exact([y], [p])
    if isinstance(values[0], dt.datetime):  # Spark's have a time zone
        found = {key.replace(tzinfo=None): joint for key, joint in found.items()}
    assert found == expected


def test_a_group_without_valid_rows_is_empty(constructor):
    table = {"label": [0, 1, 2, 1], "score": [0.5, 0.5, 0.5, None], "k": ["a", "a", "b", "b"]}
    found = summarize(constructor(table), **COLUMNS, by="k", invalid="count")
    assert found["a"] == exact([0, 1], [0.5, 0.5])
    assert found["b"].n_rows == 0
    assert found["b"].invalid == {"bad label": 1, "missing prediction": 1}


def test_columns_may_have_any_name(constructor):
    names = ("code", "rows", "key0", 'a "b" c')
    y_true, y_prob = [0, 1, 1], [0.1, 0.2, 0.3]
    table = dict(zip(names, (y_true, y_prob, [1.0, 1.0, 1.0], ["x", "x", "y"]), strict=True))
    found = summarize(
        constructor(table), y_true="code", y_prob="rows", sample_weight="key0", by=names[3]
    )
    assert found["x"].total == 2
    assert found["y"].prediction == pytest.approx([0.3])


def test_a_column_that_is_not_there(constructor):
    table = constructor({"label": [0, 1], "score": [0.1, 0.2]})
    with pytest.raises(ValueError, match=r"'scores'.*'label', 'score'.*Did you mean 'score'\?"):
        summarize(table, y_true="label", y_prob="scores")
    with pytest.raises(ValueError, match="by is 'day'"):
        summarize(table, **COLUMNS, by="day")


def test_text_is_a_type_error_that_names_the_column(constructor):
    table = constructor({"label": [0, 1], "score": [0.1, 0.2], "text": ["0", "1"]})
    with pytest.raises(TypeError, match="y_true is 'text': the column holds"):
        summarize(table, y_true="text", y_prob="score")
    with pytest.raises(TypeError, match="y_prob is 'text'"):
        summarize(table, y_true="label", y_prob="text")


@pytest.mark.slow
def test_memory_is_checked_before_cells_come_back(constructor):
    y_true, y_prob = hard_rows(30)
    key = np.arange(y_true.size) % 5
    table = constructor({"label": y_true, "score": y_prob, "k": key})
    with pytest.raises(MemoryError, match=r"5 groups.*bits=\d+ would fit") as caught:
        summarize(table, **COLUMNS, by="k", memory_limit=60_000)
    bits = int(str(caught.value).partition("bits=")[2].partition(" ")[0])
    assert len(summarize(table, **COLUMNS, by="k", memory_limit=60_000, bits=bits)) == 5
    enough = int(str(caught.value).partition("Or pass memory_limit=")[2].partition(",")[0])
    assert len(summarize(table, **COLUMNS, by="k", memory_limit=enough)) == 5
    with pytest.raises(MemoryError):
        summarize(table, **COLUMNS, by="k", memory_limit=enough - 1)
    with pytest.raises(MemoryError, match="not even bits=1"):
        summarize(table, **COLUMNS, by="k", memory_limit=1000)


@pytest.mark.parametrize(("cells", "fit"), [(31, None), (32, 1), (279, 5), (280, 6)])
def test_the_bits_that_would_fit_in_memory_are_as_many_as_can_be(cells, fit):
    """Two groups of 200 rows have at most 2 (2^b + 6) cells each, of 448 bytes."""
    score = np.repeat(np.arange(200) / 199, 2)
    table = pa.table({"label": [0] * 400, "score": score, "k": [0, 1] * 200})
    remedy = "not even" if fit is None else f"bits={fit} would fit"
    with pytest.raises(MemoryError, match=f"400 cells in 2 groups.*{remedy}"):
        summarize(table, **COLUMNS, by="k", memory_limit=448 * cells)


def test_memory_is_checked_for_all_groups_together():
    """Ten groups have 80 cells; 30 would fit, which is more than the 28 of any one group."""
    score = np.repeat(np.arange(8) / 8, 10)
    table = pa.table({"label": [0] * 80, "score": score, "k": [*range(10)] * 8})
    with pytest.raises(MemoryError, match="80 cells in 10 groups"):
        summarize(table, **COLUMNS, by="k", bits=3, memory_limit=448 * 30)


def test_too_many_rows_in_a_cell_are_an_error(constructor, monkeypatch):
    """Sums of places are below 2^63 for up to 2^32 rows; the limit is lowered here."""
    monkeypatch.setattr("caldist.data.grid.ROWS_PER_CELL", 4)
    table = constructor({"label": [1] * 5, "score": [0.5] * 5})
    with pytest.raises(ValueError, match="a cell would hold more than 4 rows"):
        summarize(table, **COLUMNS)


def test_second_order_adds_the_squares(constructor):
    rng = np.random.default_rng(8)
    score = rng.random(500)
    label = (rng.random(500) < score).astype(int)
    table = constructor({"label": label, "score": score})
    found = summarize(table, **COLUMNS, bits=6, second_order=True)
    whole = Joint.from_arrays(label, score).coarsen(6)
    assert found == whole
    assert np.array_equal(found.grid.square0, whole.grid.square0)
    assert np.array_equal(found.grid.square1, whole.grid.square1)
    first = summarize(table, **COLUMNS, bits=6)
    assert first.grid.square0 is None
    assert first == found


def test_cells_with_too_many_rows_for_doubles_are_added_as_integers(constructor, monkeypatch):
    rng = np.random.default_rng(9)
    score = rng.random(300)
    label = (rng.random(300) < score).astype(int)
    table = constructor({"label": label, "score": score})
    monkeypatch.setattr("caldist.engines.collect.DOUBLES", 3)
    assert summarize(table, **COLUMNS, bits=4) == Joint.from_arrays(label, score).coarsen(4)


@pytest.mark.slow
@pytest.mark.parametrize("column", ["y", "p", "w"])
def test_integers_beyond_those_of_float64_are_no_exception_of_the_engine(
    request, constructor, column
):
    """PyArrow does not round them; the others do, as NumPy does."""
    rows = {"y": [0, 1, 1], "p": [0, 1, 1], "w": [1, 2, 3]}
    rows[column] = [0, 1, 2**53 + 1]
    table = constructor(rows)
    options = {"y_true": "y", "y_prob": "p", "sample_weight": "w", "invalid": "count"}
    if "pyarrow" in request.node.name:
        with pytest.raises(InvalidInput, match=r"integer 9007199254740993.*Cast its"):
            summarize(table, **options)
    else:
        assert summarize(table, **options).n_rows == (3 if column == "w" else 2)


def test_too_little_memory_of_an_engine_is_too_little_memory():
    duckdb = pytest.importorskip("duckdb")
    settings = {"memory_limit": "30MB", "temp_directory": "", "threads": 1}
    connection = duckdb.connect(config=settings)
    table = connection.sql("SELECT i % 2 AS y, i / 2e6 AS p FROM range(2000000) t(i)")
    with pytest.raises(MemoryError, match="Out of Memory"):
        summarize(table, y_true="y", y_prob="p", bits=24)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (["no", "yes"], "yes"),
        (["yes", "no"], "no"),
        ([1, 2], 2),
        ([0.5, 1.5], 1.5),
        ([False, True], True),
    ],
)
def test_any_two_labels(constructor, labels, positive):
    y_true, y_prob = hard_rows(50)
    table = constructor({"label": [labels[int(k)] for k in y_true], "score": y_prob})
    assert summarize(table, **COLUMNS, pos_label=positive) == exact(y_true, y_prob)


def test_labels_that_are_not_two_are_refused(constructor):
    table = constructor({"label": ["a", "b", "c"], "score": [0.1, 0.2, 0.3]})
    with pytest.raises(
        ValueError, match=r"y_true is 'label': the column has more than two labels.*'a', 'b', 'c'"
    ):
        summarize(table, **COLUMNS, pos_label="a")
    with pytest.raises(ValueError, match="pos_label is 'd': it is none of the labels"):
        summarize(table, **COLUMNS, pos_label="d")
    alone = constructor({"label": ["no", "no"], "score": [0.1, 0.2]})
    assert summarize(alone, **COLUMNS, pos_label="yes") == exact([0, 0], [0.1, 0.2])
    with pytest.raises(ValueError, match="pos_label is 1: it is none of the labels"):
        summarize(alone, **COLUMNS, pos_label=1)


def test_a_missing_label_is_none_of_the_two(constructor):
    table = constructor({"label": ["no", None, "yes"], "score": [0.25, 0.5, 0.75]})
    found = summarize(table, **COLUMNS, pos_label="yes", invalid="count")
    assert found.invalid == {"missing label": 1}
    assert found.n_rows == 2
