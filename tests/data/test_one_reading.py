"""Rows are checked once and sorted once for each model, whatever is made of them."""

import gc
import tracemalloc
from collections import Counter

import numpy as np
import pytest

import caldist
from caldist.data import joint as joint_module
from caldist.data import rows as rows_module
from caldist.data import sorting, validate
from caldist.kernels.loader import COMPILED
from caldist.measures.registry import all_measures

ROWS = 10_000


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    truth = rng.random(ROWS)
    return {
        "y_true": (rng.random(ROWS) < truth).astype(int),
        "y_prob": {"honest": truth, "other": truth**2, "third": np.sqrt(truth)},
    }


@pytest.fixture
def counts(monkeypatch):
    """Count checks of columns and sorts of rows, by the function's name."""
    found = Counter()

    def count(module, name):
        function = getattr(module, name)

        def counting(*args, **options):
            found[name] += 1
            return function(*args, **options)

        monkeypatch.setattr(module, name, counting)

    for name in ("labels", "probabilities", "weights"):
        count(validate, name)
    count(joint_module, "sort_rows")
    count(rows_module, "sort_residuals")
    for module in (rows_module, sorting):
        count(module, "sorting_order")
    return found


@pytest.mark.slow
def test_a_report_reads_and_sorts_rows_once(counts, rows):
    caldist.report(rows["y_true"], rows["y_prob"]["honest"], n_resamples=99).to_html()
    assert counts == {"labels": 1, "probabilities": 1, "sort_rows": 1}


@pytest.mark.slow
def test_a_report_of_three_models_reads_and_sorts_each_once(counts, rows):
    found = caldist.report(
        rows["y_true"],
        rows["y_prob"],
        by=np.arange(ROWS) % 2,
        sample_weight=np.linspace(1, 2, ROWS),
        clusters=np.arange(ROWS) // 4,
        n_resamples=199,
    )
    found.to_html()
    assert len(found.pairs) == 3
    assert len(found.groups) == 6
    assert counts == {"labels": 1, "probabilities": 3, "weights": 1, "sorting_order": 3}


@pytest.mark.slow
def test_three_models_without_weights_are_sorted_once_each(counts, rows):
    caldist.report(rows["y_true"], rows["y_prob"], n_resamples=199)
    assert counts == {"labels": 1, "probabilities": 3, "sorting_order": 3}


@pytest.mark.parametrize("function", [caldist.confidence_interval, caldist.calibration_test])
def test_intervals_and_tests_read_and_sort_rows_once(counts, rows, function):
    y_true, y_prob = rows["y_true"], rows["y_prob"]["honest"]
    function(y_true, y_prob, n_resamples=99, rng=0)
    assert counts == {"labels": 1, "probabilities": 1, "sort_rows": 1}
    counts.clear()
    function(y_true, y_prob, clusters=np.arange(ROWS) // 4, n_resamples=99, rng=0)
    assert counts == {"labels": 1, "probabilities": 1, "sorting_order": 1}


def test_comparisons_read_and_sort_rows_once(counts, rows):
    y_true, (a, b, _) = rows["y_true"], rows["y_prob"].values()
    caldist.compare(y_true, a, b, n_resamples=99, rng=0)
    once = {"labels": 1, "probabilities": 2, "sorting_order": 2}
    assert counts == once
    counts.clear()
    caldist.inference.compare_all(y_true, {"a": a, "b": b}, n_resamples=199, rng=0)
    assert counts == once


@pytest.mark.skipif(not COMPILED, reason="plain kernels are slow on as many rows as tell")
@pytest.mark.parametrize("name", sorted(all_measures()))
def test_measures_leave_nothing_behind(name):
    """No cycle keeps arrays until garbage is collected, which a few large ones do not bring on."""
    measure = all_measures()[name].shown
    rng = np.random.default_rng(0)
    p = rng.random(8_000)
    y = (rng.random(p.size) < p).astype(np.int64)
    measure(y, p)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        measure(y, p)
        taken = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
        gc.enable()
    # Arrays only: what the interpreter and other threads of the tests allocate is no array's.
    arrays = taken.filter_traces([tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)])
    left = sum(trace.size for trace in arrays.traces)
    assert left < p.nbytes / 2, [str(line) for line in arrays.statistics("lineno")[:5]]


def test_functions_of_the_user_cannot_change_what_others_see():
    """Whatever the rows came as: a function that writes into its argument is refused."""
    y, p = [0, 1, 1], [0.2, 0.5, 0.7]
    functions = [lambda v: np.subtract(v, 0.5, out=v), lambda v: v]
    for weight in (None, [1, 2, 3]):
        with pytest.raises(ValueError, match="read-only"):
            caldist.weighted_ce(y, p, functions=functions, sample_weight=weight)
