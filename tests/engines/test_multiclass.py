"""Several classes on every engine: the reductions of ``caldist.multiclass``, to the bit."""

import numpy as np
import pytest

from caldist import Joint
from caldist.engines import summarize_one_vs_rest, summarize_top_label
from caldist.multiclass import one_vs_rest, top_label

pa = pytest.importorskip("pyarrow")

PROBABILITIES = ["p0", "p1", "p2"]
NAN = float("nan")


def rows(size=400, seed=0):
    """Return true classes and probabilities; many rows have ties in the maximum."""
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet([0.5, 0.5, 0.5], size)
    matrix[::2] = rng.multinomial(4, [1 / 3] * 3, matrix[::2].shape[0]) / 4
    matrix[:3] = 1 / 3
    return rng.integers(0, 3, size), matrix


def columns(y_true, matrix, **others):
    return {"y": y_true, **dict(zip(PROBABILITIES, matrix.T, strict=True)), **others}


@pytest.mark.slow
def test_top_label_and_one_vs_rest_are_those_of_arrays(constructor):
    y_true, matrix = rows()
    table = constructor(columns(y_true, matrix))
    found = summarize_top_label(table, y_true="y", y_prob=PROBABILITIES)
    assert found == Joint.from_arrays(*top_label(y_true, matrix)).coarsen(16)
    each = summarize_one_vs_rest(table, y_true="y", y_prob=PROBABILITIES)
    assert each == [Joint.from_arrays(*pair).coarsen(16) for pair in one_vs_rest(y_true, matrix)]


@pytest.mark.slow
def test_named_classes_weights_and_groups(constructor):
    y_true, matrix = rows(seed=1)
    names = np.array(["cat", "dog", "eel"])
    key = np.arange(y_true.size) % 2
    weight = np.random.default_rng(1).choice([0, 0.5, 1, 2, 1000], y_true.size)
    table = constructor(columns(names[y_true], matrix, w=weight, k=key))
    options = {"y_true": "y", "y_prob": PROBABILITIES, "classes": list(names)}
    found = summarize_top_label(table, **options, sample_weight="w", by="k")
    each = summarize_one_vs_rest(table, **options, sample_weight="w", by="k")

    def expected(pair, rows):
        return Joint.from_arrays(*pair, sample_weight=weight[rows]).coarsen(16)

    for k in (0, 1):
        rows_of_k = key == k
        some = y_true[rows_of_k], matrix[rows_of_k]
        assert found[k] == expected(top_label(*some), rows_of_k)
        assert found[k].n_rows == y_true.size / 2
        for number, pair in enumerate(one_vs_rest(*some)):
            assert each[number][k] == expected(pair, rows_of_k)


def test_classes_in_another_order_than_the_columns_are_refused():
    table = pa.table({"y": ["a", "b"], "p_b": [0.25, 0.5], "p_a": [0.75, 0.5]})
    for summarize in (summarize_top_label, summarize_one_vs_rest):
        with pytest.raises(
            ValueError, match=r"y_prob has the columns \['p_b', 'p_a'\] .* in another order"
        ):
            summarize(table, y_true="y", y_prob=["p_b", "p_a"], classes=["a", "b"])


@pytest.mark.slow
def test_invalid_rows_are_counted(constructor):
    y_true = [0.0, None, NAN, 3.0, 0.5, -1.0, 1.0, 1.0, 1.0, 1.0]
    matrix = np.full((10, 3), [0.5, 0.25, 0.25])
    matrix[6:] = [[NAN, 0.5, 0.5], [-0.1, 0.6, 0.5], [0.3, 0.3, 0.3], [0.0, 1.5, -0.5]]
    table = constructor(columns(y_true, matrix))
    for found in (
        summarize_top_label(table, y_true="y", y_prob=PROBABILITIES, invalid="count"),
        summarize_one_vs_rest(table, y_true="y", y_prob=PROBABILITIES, invalid="count")[2],
    ):
        assert found.n_rows == 1
        assert found.invalid == {
            "missing label": 2,
            "bad label": 3,
            "missing prediction": 1,
            "bad prediction": 3,
        }


def test_rows_of_rounded_probabilities_are_named_with_the_remedy(constructor):
    matrix = np.full((4, 3), [0.33, 0.33, 0.33])
    matrix[0] = [0.5, 0.25, 0.25]
    table = constructor(columns([0, 1, 2, 5], matrix))
    message = (
        r"1 with a bad label \(none of the classes\) in column 'y', 2 with a bad prediction \(not "
        r"between 0 and 1, or in a row that does not sum to 1\) in columns 'p0', 'p1', 'p2'\..* If "
        r"probabilities were rounded, divide them by the sum of their row\.$"
    )
    for summarize in (summarize_top_label, summarize_one_vs_rest):
        with pytest.raises(ValueError, match=message):
            summarize(table, y_true="y", y_prob=PROBABILITIES)


def test_wrong_arguments():
    table = pa.table(columns(*rows(5)))
    with pytest.raises(ValueError, match="a column for each class"):
        summarize_top_label(table, y_true="y", y_prob="p0")
    with pytest.raises(ValueError, match="3 different classes"):
        summarize_top_label(table, y_true="y", y_prob=PROBABILITIES, classes=[1, 2])
    text = pa.table(columns(["a"] * 5, rows(5)[1]))
    with pytest.raises(TypeError, match="Pass classes="):
        summarize_top_label(text, y_true="y", y_prob=PROBABILITIES)
