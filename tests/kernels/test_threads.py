"""Work that threads share, and calls in several threads that have nothing to do with each other."""

import os
import signal
import threading
import time
import warnings
from contextlib import contextmanager
from importlib import import_module

import numpy as np
import pytest

import caldist
from caldist._util.cached import cached_property
from caldist._util.threads import even_parts, in_threads
from caldist.data import rows, sorting
from caldist.data.class_rows import class_numbers
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.inference.sample import units_of
from caldist.kernels import loader
from caldist.kernels._checkpoint import GivenUpError, checkpoint


@pytest.mark.parametrize("threads", [1, 2, 5, 40])
def test_each_thing_is_done_once_and_in_its_place(threads):
    done = []

    def task(k):
        done.append(k)
        return k * k

    assert in_threads(task, range(20), threads) == [k * k for k in range(20)]
    assert sorted(done) == list(range(20))


def test_threads_work_side_by_side_and_the_one_that_asks_works_too():
    meeting = threading.Barrier(3)

    def task(_):
        meeting.wait(timeout=20)
        return threading.get_ident()

    assert threading.get_ident() in in_threads(task, range(3), 3)
    assert len(set(in_threads(task, range(3), 3))) == 3


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_what_a_task_raises_is_raised_and_ends_the_work(threads):
    begun = []

    def task(k):
        begun.append(k)
        if k == 7:
            raise KeyboardInterrupt
        return k

    with pytest.raises(KeyboardInterrupt):
        in_threads(task, range(1000), threads)
    assert 7 in begun
    assert len(begun) < 1000


@pytest.fixture
def ctrl_c():
    """Let Ctrl-C interrupt tests that a shell runs in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("ctrl_c")
def test_threads_that_help_end_when_the_one_that_asks_is_interrupted():
    helping, ended = threading.Event(), []

    def task(_):
        if threading.current_thread() is threading.main_thread():
            assert helping.wait(20)
            signal.raise_signal(signal.SIGINT)
        helping.set()
        last = time.monotonic() + 60
        try:
            while time.monotonic() < last:
                checkpoint()
        except GivenUpError:
            ended.append(threading.get_ident())
            raise

    with pytest.raises(KeyboardInterrupt):
        in_threads(task, range(3), 3)
    assert len(ended) >= 1
    assert threading.get_ident() not in ended
    checkpoint()  # nothing is left of it


def interrupted_classes():
    rng = np.random.default_rng(0)
    matrix = rng.dirichlet(np.ones(4), 320)
    caldist.multiclass.smooth_ce(rng.integers(0, 4, 320), matrix, method="exact")


def interrupted_distance():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    caldist.lower_distance(rng.integers(0, 2, 300), p, tol=1e-9)


@pytest.mark.skipif(not loader.COMPILED, reason="plain Python can be interrupted anywhere")
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize(
    ("kernel", "work"), [("flow", interrupted_classes), ("interior_point", interrupted_distance)]
)
def test_long_loops_of_kernels_can_be_interrupted(monkeypatch, kernel, work, threads):
    """The signal comes at the main thread's first look for one: nothing depends on the time."""
    monkeypatch.setenv("CALDIST_NUM_THREADS", threads)
    looks, looked = [], threading.Event()
    module = import_module(f"caldist._compiled.{kernel}")

    def look():
        if threading.current_thread() is threading.main_thread():
            looks.append(1)
            looked.set()
            signal.raise_signal(signal.SIGINT)
        assert looked.wait(20)
        checkpoint()

    monkeypatch.setattr(module, "checkpoint", look)
    with pytest.raises(KeyboardInterrupt):
        work()
    assert len(looks) == 1
    monkeypatch.setattr(module, "checkpoint", lambda: looks.append(1))
    work()
    assert len(looks) > 5


def test_many_rows_are_sorted_in_parts_by_one_thread_too(monkeypatch):
    monkeypatch.setenv("CALDIST_NUM_THREADS", "1")
    rng = np.random.default_rng(0)
    p, y = rng.random(5000).round(3), rng.integers(0, 2, 5000)
    expected = caldist.smooth_ce(y, p)
    monkeypatch.setattr(sorting, "_INTERRUPTIBLE", 10)
    assert caldist.smooth_ce(y, p) == expected


def test_parts_are_even():
    assert even_parts(10, 3) == [(0, 3), (3, 6), (6, 10)]
    assert even_parts(0, 2) == [(0, 0), (0, 0)]


FEW = [0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]


@contextmanager
def large_call_in_another_thread(monkeypatch):
    """Hold a call with many rows in its sort."""
    sort, sorting, go_on = rows.sort_residuals, threading.Event(), threading.Event()

    def sort_later(label, prediction):
        if prediction.size > 4:
            sorting.set()
            assert go_on.wait(60)
        return sort(label, prediction)

    monkeypatch.setattr(rows, "sort_residuals", sort_later)
    many = np.arange(1000) % 2, np.linspace(0, 1, 1000)
    large = threading.Thread(target=caldist.smooth_ce, args=many)
    large.start()
    assert sorting.wait(60)
    try:
        yield
        assert large.is_alive()
    finally:
        go_on.set()
        large.join()


def test_a_call_does_not_wait_for_another_with_more_rows(monkeypatch):
    found = []
    with large_call_in_another_thread(monkeypatch):
        small = threading.Thread(target=lambda: found.append(caldist.smooth_ce(*FEW)), daemon=True)
        small.start()
        small.join(20)
        assert found == [0.03125]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_forked_during_a_call_can_call_too(monkeypatch):
    with large_call_in_another_thread(monkeypatch), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads and forks, from 3.12 on
        child = os.fork()
        if child == 0:
            os._exit(0 if caldist.smooth_ce(*FEW) == 0.03125 else 1)
        last = time.monotonic() + 20
        ended, status = os.waitpid(child, os.WNOHANG)
        while ended == 0 and time.monotonic() < last:
            time.sleep(0.01)
            ended, status = os.waitpid(child, os.WNOHANG)
        if ended == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert (ended, status) == (child, 0)


def test_a_property_is_kept_and_the_same_for_all_threads():
    meeting = threading.Barrier(2)

    class Thing:
        @cached_property
        def number(self):
            """A new object."""
            meeting.wait(20)  # both compute
            return object()

    thing, found = Thing(), []
    threads = [threading.Thread(target=lambda: found.append(thing.number)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [thing.number] * 2
    assert isinstance(Thing.number, cached_property)
    assert Thing.number.__doc__ == "A new object."


def changing_rows(weighted):
    """Return rows that were read once, and their predictions, which another thread may change."""
    rng = np.random.default_rng(0)
    p = rng.random(300) / 2 + 0.25
    weight = rng.random(300) if weighted else None
    rows = Rows.of(rng.integers(0, 2, 300), p, sample_weight=weight, clusters=np.arange(300) // 3)
    assert rows.joint.n_rows == 300
    return rows, p


CHANGED = pytest.raises(RuntimeError, match="changed while it was read: pass a copy")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("value", [1.0, 0.3, -1.0, np.nan])
def test_predictions_that_change_after_the_joint_was_made_have_no_index_in_it(weighted, value):
    rows, p = changing_rows(weighted)
    p[7] = value
    with CHANGED:
        units_of(rows)


@pytest.mark.parametrize("value", [-1.0, np.nan, 0.9, 0.1])
def test_predictions_that_change_after_they_were_sorted_are_refused(value):
    rows, p = changing_rows(weighted=True)
    order = rows.order
    p[order[100]] = value
    with CHANGED:
        Joint._of_rows(rows.label, rows.prediction, rows.weight, order)
    p[order[0]] = -1.0
    with CHANGED:
        Joint._of_rows(rows.label, rows.prediction, rows.weight, order)
    p[:] = 0.5
    assert Joint._of_rows(rows.label, rows.prediction, rows.weight, order).prediction.size == 1


def test_predictions_that_change_before_they_are_sorted_are_refused():
    rows, p = changing_rows(weighted=True)
    del rows.joint, rows.order
    p[7] = -1.0
    with CHANGED:
        rows.joint  # noqa: B018


@pytest.mark.parametrize("value", [2.0, np.inf, np.nan])  # signs are dropped
def test_predictions_without_weights_that_change_before_they_are_sorted_are_refused(value):
    p = np.full(300, 0.5)
    rows = Rows.of(np.arange(300) % 2, p)
    p[7] = value
    with CHANGED:
        rows.joint  # noqa: B018


def test_predictions_that_change_before_they_are_added_up_are_refused():
    p = np.full(300, 0.5)
    rows = Rows.of(np.arange(300) % 2, p)
    p[7] = np.nan
    with CHANGED:
        caldist.brier_score(rows)


def test_predictions_of_models_that_change_while_they_are_compared_are_refused(monkeypatch):
    rng = np.random.default_rng(0)
    p, q = rng.random((2, 300)) / 2 + 0.25
    positions = caldist.data.validate.positions

    def later(support, values):
        p[7] = 1.0
        return positions(support, p)

    monkeypatch.setattr(caldist.data.validate, "positions", later)
    with CHANGED:
        caldist.compare(rng.integers(0, 2, 300), p, q, measure="smooth_ce")


@pytest.mark.parametrize("value", [3, -1, 10**9])
def test_classes_that_change_after_they_were_checked_are_no_indices(monkeypatch, value):
    label, floor = np.arange(300) % 3, np.floor

    def later(values):
        label[7] = value
        return floor(values)

    monkeypatch.setattr(np, "floor", later)
    with CHANGED:
        class_numbers(label, label.size, 3)
