"""Monitors: batches of any kind, their names, joints of shards, files, and what is refused."""

import copy
import datetime as dt
import itertools
import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caldist
from caldist import Joint, Monitor
from caldist._util.locks import locked
from caldist.kernels import loader
from strategies import fewer

TINY = 12 if loader.COMPILED else 4


def rows(n=200, seed=0, shift=0.0, kind=None):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    if kind == "ties":
        p = np.round(p, 1)
    logit = np.log(np.clip(p, 1e-9, 1 - 1e-9) / np.clip(1 - p, 1e-9, 1))
    return (rng.random(n) < 1 / (1 + np.exp(-logit - shift))).astype(int), p


def watched(batches=4, shift=0.0, n=200, **options):
    monitor = Monitor(**options)
    for day in range(batches):
        monitor.update(*rows(n, day, shift), batch=day)
    return monitor


def bits_of(monitor):
    """Everything that a monitor remembers, as bytes."""
    state = monitor._state
    arrays = [
        part.tobytes()
        for stream in state.streams
        for part in (
            stream.total,
            stream.start,
            stream.windows,
            stream.recent,
            *stream.grid.arrays().values(),
        )
    ]
    return arrays, state.batches, state.floor, state.peaks, state.steps


def same_rows(a, b):
    """Whether two joints have the same rows; summing before or after coarsening floors places."""
    return (
        all(np.array_equal(getattr(a.grid, name), getattr(b.grid, name)) for name in COUNTS)
        and np.abs(a.prediction - b.prediction).max() < 1e-12
    )


COUNTS = ("cell", "count0", "count1")


# -- what it says --------------------------------------------------------------------------------


def test_a_shift_is_found_with_its_onset_and_its_kind():
    monitor = Monitor()
    for day in range(40):
        step = monitor.update(*rows(400, day, 0.8 if day >= 15 else 0.0), batch=day)
        if step.alarm:
            break
    assert 15 <= step.batch <= 18
    assert step.onset == 15
    assert next(iter(step.kind)) == "level"
    assert sum(step.kind.values()) == pytest.approx(1, abs=0.02)
    assert step.pvalue <= 0.05
    assert step.log_e_value == step.log_e_calibrated >= monitor.log_threshold == math.log(20)


def test_an_alarm_and_its_pvalue_stay_until_reset():
    monitor = watched(3, shift=1.5)
    assert monitor.steps[-1].alarm
    lowest = monitor.steps[-1].pvalue
    for day in range(3, 8):
        step = monitor.update(*rows(3000, day, -0.3), batch=day)
    assert step.alarm
    assert step.pvalue <= lowest
    monitor.reset(8)
    assert (len(monitor.steps), monitor.joint.n_rows, monitor.last_batch) == (0, 0, None)
    step = monitor.update(*rows(200, 8), batch=8)
    assert not step.alarm
    assert step.pvalue == pytest.approx(min(1, math.exp(-step.log_e_value)))


def test_a_tolerance_asks_another_question():
    """A shift of 0.2 is a distance of 0.033: found without a tolerance, and within one of 0.1."""
    strict, tolerant = Monitor(), Monitor(tolerance=0.1)
    for day in range(12):
        y, p = rows(1000, day, 0.2)
        steps = [monitor.update(y, p, batch=day) for monitor in (strict, tolerant)]
    assert steps[0].alarm
    assert not steps[1].alarm
    assert steps[1].pvalue == 1
    assert steps[1].log_e_value < 0 < steps[1].log_e_calibrated == steps[0].log_e_value
    assert 0 < steps[0].lower < 0.033 < steps[0].upper
    assert steps[0].value == pytest.approx(caldist.lower_distance(strict.joint), abs=2e-3)


def test_a_larger_tolerance_has_less_evidence():
    found = [watched(6, 0.6, tolerance=t).steps[-1].log_e_value for t in (0.01, 0.05, 0.1, 0.3)]
    assert found == sorted(found, reverse=True)


def test_a_run_length_has_a_threshold_of_its_own():
    monitor = watched(3, run_length=1000.0)
    step = monitor.steps[-1]
    assert monitor.log_threshold == math.log(1000)
    assert step.log_e_value > step.log_e_calibrated
    assert not step.alarm
    assert watched(3, shift=2.0, run_length=1000.0).steps[-1].alarm


def test_the_curve_shows_where_the_model_errs():
    rng = np.random.default_rng(0)
    monitor = Monitor(by=("x", "y"))
    with pytest.raises(ValueError, match="no rows yet"):
        monitor.curve()
    for day in range(8):
        p = rng.random(2000)
        y = rng.random(2000) < np.where((p > 0.6) & (p < 0.75), p - 0.2, p)
        monitor.update(y, p, batch=day, by=np.repeat(["x", "y"], 1000))
    point, frequency = monitor.curve()
    inside = (point > 0.62) & (point < 0.73)
    outside = (point < 0.5) | (point > 0.85)
    assert frequency[inside] - point[inside] == pytest.approx(-0.2, abs=0.06)
    assert frequency[outside] - point[outside] == pytest.approx(0, abs=0.03)
    assert monitor.curve("y")[1].shape == point.shape
    with pytest.raises(ValueError, match="group is 'z': the monitor knows"):
        monitor.curve("z")


def test_steps_are_frozen_and_read_as_sentences_dicts_and_frames():
    monitor = watched(3, shift=1.5)
    step = monitor.steps[-1]
    with pytest.raises(AttributeError):
        step.alarm = False
    assert "ALARM" in str(step)
    assert "no alarm" in str(watched(1).steps[-1])
    assert json.loads(json.dumps(step.to_dict()))["onset"] == 0
    assert step.to_frame("pandas").shape[0] == 1
    frame = monitor.steps.to_frame("polars")
    assert frame["batch"].to_list() == [0, 1, 2]
    assert "<table>" in step._repr_html_()
    assert monitor.steps[1:] == monitor.steps[1:]
    assert repr(monitor.steps) == "Steps(3 steps, 3 with an alarm)"
    assert repr(monitor) == "Monitor(3 batches, last 2)"
    assert Monitor().steps.to_frame("pandas").empty
    assert pickle.loads(pickle.dumps(step)) == step


def test_a_copy_and_a_pickle_go_on_to_the_same_bits():
    monitor = watched(3, tolerance=0.02)
    others = [copy.deepcopy(monitor), pickle.loads(pickle.dumps(monitor))]
    step = monitor.update(*rows(seed=9), batch=9)
    assert all(other.update(*rows(seed=9), batch=9) == step for other in others)


# -- batches of every kind -------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"tolerance": 0.02}, {"dependence": "batches"}], ids=str)
def test_empty_and_one_class_batches_are_legal(options):
    monitor = Monitor(**options)
    assert monitor.update([], [], batch=0).value is None
    step = monitor.update([], [], batch=1)
    assert (step.n_rows, step.onset, step.pvalue, step.lower) == (0, None, 1.0, 0.0)
    monitor.update([0, 0, 0], [0.1, 0.2, 0.3], batch=2)
    monitor.update([1], [0.9], batch=3)
    step = monitor.update(Joint.empty(14), batch=4)
    assert step.n_rows == 0
    assert math.isfinite(step.log_e_value)
    assert monitor.joint.n_rows == 4


def test_exact_zeros_and_ones_are_predictions():
    monitor = Monitor()
    fine = monitor.update([0] * 50 + [1] * 50, [0.0] * 50 + [1.0] * 50, batch=1)
    assert fine.log_e_value == pytest.approx(0, abs=0.7)
    assert monitor.update([1] * 20, [0.0] * 20, batch=2).alarm


@pytest.mark.parametrize("kind", [None, "ties"])
def test_a_joint_says_what_its_rows_say_to_the_bit(kind):
    of_rows, of_joints, of_exact = (
        Monitor(tolerance=0.02),
        Monitor(tolerance=0.02),
        Monitor(tolerance=0.02),
    )
    for day in range(4):
        y, p = rows(300, day, 0.4, kind)
        joint = Joint.from_arrays(y, p)
        shuffled = np.random.default_rng(day).permutation(300)
        step = of_rows.update(y[shuffled], p[shuffled], batch=day)
        assert of_joints.update(joint.coarsen(14), batch=day) == step
        assert of_exact.update(joint, batch=day) == step
    assert bits_of(of_rows) == bits_of(of_joints) == bits_of(of_exact)
    every = sum(Joint.from_arrays(*rows(300, day, 0.4, kind)) for day in range(4))
    assert same_rows(of_rows.joint, every.coarsen(12))


def test_equal_weights_are_no_weights():
    y, p = rows(300, 1, 0.5)
    plain = Monitor(tolerance=0.02).update(y, p, batch=1)
    weighted = Monitor(tolerance=0.02).update(y, p, batch=1, sample_weight=np.full(300, 7.0))
    assert weighted.log_e_value == pytest.approx(plain.log_e_value, abs=1e-9)
    assert weighted.log_e_calibrated == pytest.approx(plain.log_e_calibrated, abs=1e-9)
    assert (weighted.lower, weighted.upper) == pytest.approx((plain.lower, plain.upper), abs=1e-6)


def test_a_weighted_joint_has_less_evidence_than_its_rows_but_the_same_value():
    y, p = rows(400, 1, 0.8, "ties")
    w = np.random.default_rng(0).uniform(0.5, 1, 400)
    of_rows = Monitor().update(y, p, batch=1, sample_weight=w)
    joint = Joint.from_arrays(y, p, sample_weight=w)
    of_joint = Monitor().update(joint, batch=1)
    assert 0 < of_joint.log_e_value < of_rows.log_e_value
    assert of_joint.value == pytest.approx(of_rows.value, abs=2e-3)
    assert of_joint.n_rows == of_rows.n_rows == 400


def test_rows_of_weight_zero_are_rows_without_effect():
    y, p = rows(100)
    w = np.repeat([1.0, 0.0], 50)
    some = Monitor().update(y[:50], p[:50], batch=1, sample_weight=w[:50])
    every = Monitor().update(y, p, batch=1, sample_weight=w)
    assert every.log_e_value == some.log_e_value
    assert (every.n_rows, some.n_rows) == (100, 50)


# -- sub-groups ------------------------------------------------------------------------------------


def test_the_group_that_is_wrong_is_named():
    monitor = Monitor(by=("a", "b", "c"))
    for day in range(10):
        parts = [
            rows(300, 10 * day + k, 0.9 if name == "b" else 0.0) for k, name in enumerate("abc")
        ]
        y, p = (np.concatenate(column) for column in zip(*parts, strict=True))
        step = monitor.update(y, p, batch=day, by=np.repeat(["a", "b", "c"], 300))
    assert step.alarm
    assert {name: part.alarm for name, part in step.by.items()} == {
        "a": False, "b": True, "c": False,
    }  # fmt: skip
    assert step.by["b"].n_rows == 300
    assert step.by["b"].onset == 0
    assert "in b" in str(step)
    assert len(step.to_frame("pandas")) == 4
    assert set(step.to_dict()["by"]) == {"a", "b", "c"}
    assert monitor.joints["b"].n_rows == 3000
    assert same_rows(sum(monitor.joints.values()), monitor.joint)


def test_joints_of_groups_say_what_their_rows_say():
    of_rows, of_joints = Monitor(by=(1, 2, 3)), Monitor(by=(1, 2, 3))
    for day in range(3):
        y, p = rows(200, day, 0.3)
        by = np.arange(200) % 2 + 1  # nobody is in the third
        step = of_rows.update(y, p, batch=day, by=by)
        joints = {k: Joint.from_arrays(y[by == k], p[by == k]) for k in (1, 2)}
        assert of_joints.update(joints, batch=day) == step
    all_rows = Monitor()
    for day in range(3):
        alone = all_rows.update(*rows(200, day, 0.3), batch=day)
    groups = np.mean([math.exp(part.log_e_value) for part in step.by.values()])
    mean = (math.exp(alone.log_e_value) + groups) / 2
    assert step.log_e_value == pytest.approx(math.log(mean))
    assert (step.value, step.lower, step.upper) == (alone.value, alone.lower, alone.upper)


def naive(day, hour):
    """Return a time without a zone, as tables often have them."""
    return dt.datetime(2026, 11, day, hour)  # noqa: DTZ001


# -- names of batches ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ("2026-11-14", "2026-11-15", None),
        (1, 2, None),
        (1, 1.5, None),
        (np.int64(3), np.float32(4.5), None),
        (dt.date(2026, 11, 14), dt.date(2026, 11, 15), None),
        (naive(14, 3), naive(14, 4), None),
        (
            dt.datetime(2026, 11, 14, 3, tzinfo=dt.UTC),
            dt.datetime(2026, 11, 14, 4, tzinfo=dt.UTC),
            None,
        ),
        (np.datetime64("2026-11-14"), np.datetime64("2026-11-15"), dt.date(2026, 11, 15)),
        (
            np.datetime64("2026-11-14T01", "ns"),
            np.datetime64("2026-11-14T02", "ns"),
            naive(14, 2),
        ),
        (pd.Timestamp("2026-11-14"), pd.Timestamp("2026-11-15"), naive(15, 0)),
        (np.str_("a"), np.str_("b"), "b"),
    ],
    ids=str,
)
def test_names_are_strings_numbers_or_dates(first, second, kept, tmp_path):
    monitor = Monitor()
    monitor.update([0, 1], [0.2, 0.7], batch=first)
    step = monitor.update([0, 1], [0.2, 0.7], batch=second)
    assert step.batch == (second if kept is None else kept)
    assert monitor.last_batch == step.batch
    monitor.save(tmp_path / "m.npz")
    loaded = Monitor.load(tmp_path / "m.npz")
    assert loaded.steps == monitor.steps
    assert type(loaded.last_batch) is type(monitor.last_batch)
    json.dumps(step.to_dict())
    with pytest.raises(ValueError, match=r"batch is .* counted once"):
        loaded.update([0], [0.5], batch=second)
    with pytest.raises(ValueError, match=r"batch is .* increasing order"):
        loaded.update([0], [0.5], batch=first)


@pytest.mark.parametrize(
    "name",
    [None, True, math.nan, math.inf, np.datetime64("NaT"), pd.NaT, [1], b"x", np.bool_(True), 1j],
    ids=str,
)
def test_other_names_are_refused(name):
    with pytest.raises(caldist.InvalidInput, match="a string, a finite number or a date") as error:
        Monitor().update([0, 1], [0.2, 0.7], batch=name)
    assert (error.value.argument, error.value.value) == ("batch", name)


def test_names_of_two_kinds_do_not_mix():
    monitor = Monitor()
    monitor.update([0], [0.5], batch="2026-11-14")
    with pytest.raises(
        ValueError, match=r"a date, and the one before was .* a string\. .* one kind"
    ):
        monitor.update([0], [0.5], batch=dt.date(2026, 11, 15))
    monitor = Monitor()
    monitor.update([0], [0.5], batch=naive(14, 0))
    with pytest.raises(ValueError, match="offset-naive"):
        monitor.update([0], [0.5], batch=dt.datetime(2026, 11, 15, tzinfo=dt.UTC))


def test_a_reset_refuses_what_lies_before_it(tmp_path):
    monitor = watched(3)
    with pytest.raises(ValueError, match="batch is 2: the last one was 2"):
        monitor.reset(2)
    monitor.reset(10).save(tmp_path / "m.npz")
    for other in (monitor, Monitor.load(tmp_path / "m.npz")):
        assert (other.since, watched(1).since) == (10, None)
        with pytest.raises(ValueError, match="batch is 9: the last one was 10"):
            other.update([0], [0.5], batch=9)
        assert other.update([0], [0.5], batch=10).batch == 10


# -- what is refused leaves no trace ---------------------------------------------------------------

WEIGHTED = Joint.from_cells([3], [1.0], [2.0], [0.0], [0.0], bits=14)
REFUSED = {
    "old batch": ({}, ([0, 1], [0.2, 0.7]), {"batch": 1}, ValueError, "counted once"),
    "probability": ({}, ([0, 1], [0.2, 1.7]), {}, ValueError, r"y_prob\[1\] is 1.7"),
    "label of a row": ({}, ([0, 2], [0.2, 0.7]), {}, ValueError, r"y_true\[1\] is 2"),
    "sizes": ({}, ([0, 1, 1], [0.2, 0.7]), {}, ValueError, "y_true has 3 values"),
    "half empty": ({}, ([], [0.2, 0.7]), {}, ValueError, "y_true is empty"),
    "weights of no rows": ({}, ([], []), {"sample_weight": [1]}, ValueError, "sample_weight has 1"),
    "negative weight": (
        {}, ([0, 1], [0.2, 0.7]), {"sample_weight": [1, -1]}, ValueError, r"sample_weight\[1\]",
    ),
    "beside a joint": ({}, (Joint.empty(14), [0.5]), {}, TypeError, "Pass the Joint alone"),
    "masses": (
        {}, (Joint.from_masses([0.2], [1], [2]),), {}, ValueError, "how many rows it was made of",
    ),
    "coarse joint": (
        {}, (Joint.from_arrays([0, 1], [0.2, 0.7]).coarsen(8),), {}, ValueError, "bits=8",
    ),
    "unknown weights": ({}, (WEIGHTED,), {}, ValueError, "how many rows"),
    "by without groups": ({}, ([0, 1], [0.2, 0.7]), {"by": [1, 2]}, ValueError, r"Monitor\(by="),
    "dict without groups": ({}, ({1: Joint.empty(14)},), {}, ValueError, r"Monitor\(by="),
    "no by": ({"by": (1, 2)}, ([0, 1], [0.2, 0.7]), {}, ValueError, "by is None: sub-groups"),
    "one joint": ({"by": (1, 2)}, (Joint.empty(14),), {}, ValueError, "joint of each"),
    "new group": (
        {"by": (1, 2)}, ([0, 1], [0.2, 0.7]), {"by": [1, 3]}, ValueError,
        r"by\[1\] is 3: .* not declared",
    ),
    "new joint": (
        {"by": (1, 2)}, ({3: Joint.empty(14)},), {}, ValueError, r"y_true\[3\] .* not declared",
    ),
    "no joint": ({"by": (1, 2)}, ({1: [0, 1]},), {}, TypeError, r"y_true\[1\] is \[0, 1\]"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_refused_batch_leaves_the_monitor_as_it_was(case):
    options, data, more, error, words = case
    monitor = Monitor(tolerance=0.02, **options)
    by = {"by": np.arange(200) % 2 + 1} if options else {}
    monitor.update(*rows(), batch=1, **by)
    before, step = copy.deepcopy(bits_of(monitor)), monitor.steps[-1]
    with pytest.raises(error, match=words):
        monitor.update(*data, **({"batch": 2} | more))
    assert bits_of(monitor) == before
    assert monitor.steps[-1] is step


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"tolerance": 0}, ValueError, "tolerance is 0"),
        ({"tolerance": 5}, ValueError, r"tolerance is 5: .*For 5% pass 0\.05"),
        ({"tolerance": "a"}, TypeError, "tolerance is 'a'"),
        ({"false_alarm_rate": 1}, ValueError, "false_alarm_rate is 1"),
        ({"run_length": 0.5}, ValueError, "at least 1"),
        ({"run_length": -1}, ValueError, "run_length is -1"),
        ({"by": "north"}, TypeError, "by is 'north'"),
        ({"by": ()}, ValueError, "by is empty"),
        ({"by": ("a", "a")}, ValueError, r"by\[1\] is 'a': it was listed before"),
        ({"by": (1.5,)}, TypeError, r"by\[0\] is 1.5"),
        ({"dependence": "days"}, ValueError, "'rows', 'batches'"),
        ({"bits": 31}, ValueError, "at most 30"),
    ],
    ids=str,
)
def test_settings_are_checked(options, error, words):
    with pytest.raises(error, match=words):
        Monitor(**options)


# -- shards ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"tolerance": 0.02}, {"dependence": "batches"}], ids=str)
def test_joints_of_shards_add_up_to_the_batch(options):
    whole, summed = Monitor(**options), Monitor(**options)
    for day in range(TINY):
        y, p = rows(300, day, 0.2)
        joints = [Joint.from_arrays(y[k::3], p[k::3]).coarsen(whole.bits) for k in range(3)]
        for order in itertools.permutations(joints):
            again = copy.deepcopy(summed)  # each order, from the same past
            again.update(sum(order), batch=day)
        whole.update(y, p, batch=day)
        summed = again
    assert bits_of(summed) == bits_of(whole)


# -- files -----------------------------------------------------------------------------------------

OPTIONS = (
    {},
    {"tolerance": 0.02},
    {"tolerance": 0.05, "run_length": 50.0, "bits": 9},
    {"dependence": "batches", "tolerance": 0.02},
    {"by": ("a", 2), "false_alarm_rate": 0.2},
)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_loaded_monitor_goes_on_to_the_same_bits(options, tmp_path):
    monitor = Monitor(**options)
    for day in range(20):
        by = {"by": ["a", 2] * 40} if "by" in options else {}
        weight = {"sample_weight": np.linspace(1, 2, 80)} if day % 3 == 0 else {}
        monitor.save(tmp_path / "m.npz")
        loaded = Monitor.load(tmp_path / "m.npz")
        assert bits_of(loaded) == bits_of(monitor)
        step = monitor.update(*rows(80, day, 0.3), batch=f"day {day:02d}", **by, **weight)
        assert loaded.update(*rows(80, day, 0.3), batch=f"day {day:02d}", **by, **weight) == step
        assert bits_of(loaded) == bits_of(monitor)
    assert repr(loaded) == repr(monitor)


@fewer
@given(st.lists(st.sampled_from(["rows", "empty", "save", "shards", "weights"]), max_size=7))
def test_any_interleaving_says_what_one_monitor_says(tmp_path_factory, actions):
    """Rows, sums of joints and files, in any order: the evidence is the same."""
    path = tmp_path_factory.mktemp("monitors") / "m.npz"
    one, other = Monitor(), Monitor()
    for day, action in enumerate(actions):
        if action == "save":
            other.save(path)
            other = Monitor.load(path)
            continue
        y, p = rows(0 if action == "empty" else 30, day, 0.5)
        weight = np.random.default_rng(day).uniform(0.1, 1, 30) if action == "weights" else None
        one.update(y, p, batch=day, sample_weight=weight)
        if action == "empty":
            other.update(Joint.empty(other.bits), batch=day)
        elif action == "shards":
            first, second = (Joint.from_arrays(y[k::2], p[k::2]).coarsen(14) for k in range(2))
            other.update(first + second, batch=day)
        else:
            other.update(y, p, batch=day, sample_weight=weight)
    assert bits_of(other) == bits_of(one)


def test_a_file_that_changed_since_is_not_overwritten(tmp_path):
    """Two processes load, update and save: the second would lose the batches of the first."""
    path = tmp_path / "m.npz"
    watched(2).save(path)
    first, second = Monitor.load(path), Monitor.load(path)
    first.update(*rows(50, 3), batch=3)
    second.update(*rows(70, 4), batch=4)
    first.save(path)
    kept = path.read_bytes()
    with pytest.raises(FileExistsError, match=r"m\.npz' has changed since .* Load it again"):
        second.save(path)
    assert path.read_bytes() == kept
    second.save(tmp_path / "other.npz")
    first.update(*rows(50, 5), batch=5)
    first.save(path)  # which nobody else has changed
    path.unlink()
    first.save(path)
    first.reset(9).save(path)
    watched(1).save(path)  # a monitor that was not loaded from it takes its place
    with locked(path), pytest.raises(BlockingIOError, match="in use"):
        Monitor.load(path).save(path)


def test_every_damaged_byte_is_noticed(tmp_path):
    path = tmp_path / "m.npz"
    monitor = watched(3, n=20, bits=6)
    monitor.save(path)
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    noticed = 0
    for at in rng.choice(len(good), 120, replace=False):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        try:
            loaded = Monitor.load(path)
        except ValueError:
            noticed += 1
        else:  # a byte of the archive that says nothing, such as a date
            assert bits_of(loaded) == bits_of(monitor)
    assert noticed > 100
    for cut in (0, 10, len(good) // 2, len(good) - 1):
        path.write_bytes(good[:cut])
        with pytest.raises(ValueError, match="damaged"):
            Monitor.load(path)


def rewritten(path, **changes):
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    np.savez(path, **(content | changes))


def encoded(value):
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"settings": encoded({"tolerance": 3})}, "by|tolerance"),
        (
            {"batches": encoded({"kind": "number", "floor": None, "batches": [0, 2, 1]})},
            "last one was",
        ),
        ({"batches": encoded({"kind": "number", "floor": None, "batches": [0, 1]})}, "windows"),
        (
            {"batches": encoded({"kind": "string", "floor": None, "batches": [0, 1, 2]})},
            "not a string",
        ),
        ({"start": np.array([0, 2])}, "does not hold the windows"),
        ({"0.total": np.zeros(3)}, "should hold"),
        ({"0.total": np.full(718, np.nan)}, "finite"),
        ({"0.windows": np.zeros(7)}, "should hold"),
        ({"0.recent": np.full(1025, -1.0)}, "negative"),
        ({"0.step.alarm": np.zeros(1, bool)}, "one value for each batch"),
        ({"1.total": np.zeros(718)}, "no sub-group"),
        ({"other": np.zeros(3)}, "other is no array"),
        ({"peaks": np.zeros(2)}, "should hold 1"),
        ({"0.joint.bits": np.int64(5)}, "cell|grid"),
    ],
    ids=str,
)
def test_forged_files_are_refused(changes, words, tmp_path):
    path = tmp_path / "m.npz"
    watched(3).save(path)
    rewritten(path, **changes)
    with pytest.raises(ValueError, match=words):
        Monitor.load(path)


def test_other_files_are_named(tmp_path):
    Joint.empty(14).save(tmp_path / "joint.npz")
    with pytest.raises(ValueError, match="not a saved monitor: its format is 'caldist-joint-1'"):
        Monitor.load(tmp_path / "joint.npz")
    with pytest.raises(FileNotFoundError):
        Monitor.load(tmp_path / "nothing.npz")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        Monitor().save(tmp_path / "no" / "m.npz")


@pytest.mark.slow
@pytest.mark.skipif(not loader.COMPILED, reason="takes minutes")
def test_ten_years_of_days_fit_into_a_mebibyte(tmp_path):
    """Of a month of rows, the other days being the same ones again."""
    monitor = Monitor(tolerance=0.02)
    month = [Joint.from_arrays(*rows(1000, day)).coarsen(14) for day in range(30)]
    first = dt.date(2026, 1, 1)
    for day in range(1000):
        monitor.update(month[day % 30], batch=(first + dt.timedelta(day)).isoformat())
    monitor.save(tmp_path / "m.npz")
    size = (tmp_path / "m.npz").stat().st_size
    windows = monitor._state.streams[0].start.size
    # Per doubling eight windows, and per day a step: so much is added until day 3,653.
    later = size + (80 - windows) * 718 * 8 + 2653 * (6 * 8 + 8 + 4 + 4 + 1 + 14)
    assert later < 2**20
