"""A summary goes through every door: what a joint says, and what it cannot say."""

import math
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest

import caldist
from caldist import Joint
from caldist.data import rows as rows_module
from caldist.data import sorting, validate
from caldist.data.rows import Rows
from caldist.inference.sample import units_of

few_rows = pytest.mark.filterwarnings("ignore:only .* fewer than 10:UserWarning")
QUICK = {"n_resamples": 99, "rng": 0}
STATEMENTS = {
    "confidence_interval": caldist.confidence_interval,
    "calibration_test": caldist.calibration_test,
    "tolerance": lambda *data, **options: caldist.calibration_test(
        *data, tolerance=0.02, **options
    ),
    "miscalibrated_regions": caldist.inference.miscalibrated_regions,
    "bracket": lambda *data, **options: caldist.distance_bracket(
        *data, **{name: value for name, value in options.items() if name not in QUICK}
    ),
    "recalibrate": caldist.recalibrate,
    "evaluate_map": lambda *data, **options: caldist.recalibration.evaluate_map(
        *data, **options, map=([0, 0.4, 1], [0, 0.5, 1])
    ),
    "interval of the distance": lambda *data, **options: caldist.confidence_interval(
        *data, measure="distance", **options
    ),
}
each = pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)


def sample(n=400, seed=0, power=1.5):
    rng = np.random.default_rng(seed)
    f = rng.random(n)
    return (rng.random(n) < f).astype(int), f**power


# -- exact joints say what their rows say ----------------------------------------------------------


@each
def test_a_joint_says_what_its_rows_say(statement):
    y, p = sample()
    p = np.round(p, 2)
    joint = Joint.from_arrays(y, p)
    assert statement(joint, **QUICK) == statement(y, p, **QUICK)
    assert statement(sum([joint]), **QUICK) == statement(y, p, **QUICK)


@each
def test_parts_that_are_added_up_say_what_all_rows_say(statement):
    y, p = sample()
    parts = [Joint.from_arrays(y[k::3], p[k::3]) for k in range(3)]
    assert statement(sum(parts), **QUICK) == statement(y, p, **QUICK)


@each
@pytest.mark.parametrize("name", ["y_prob", "sample_weight", "clusters"])
def test_what_a_joint_leaves_no_room_for_is_refused_with_the_reason(statement, name):
    joint = Joint.from_arrays(*sample())
    words = {
        "y_prob": "stands for labels and predictions",
        "sample_weight": "Leave it out",
        "clusters": "belong",
    }
    data = (joint, np.full(400, 0.5)) if name == "y_prob" else (joint,)
    more = {} if name == "y_prob" else {name: np.ones(400)}
    if statement is STATEMENTS["bracket"] and name == "clusters":
        return
    with pytest.raises(TypeError, match=words[name]):
        statement(*data, **more, **QUICK)


def test_a_joint_in_the_place_of_predictions_is_refused():
    joint = Joint.from_arrays(*sample())
    with pytest.raises(TypeError, match=r"y_prob is a Joint.*Pass the Joint alone"):
        caldist.smooth_ce([0, 1], joint)
    with pytest.raises(
        TypeError, match=r"y_prob_a is of type list, but the other sample is a Joint.*independent"
    ):
        caldist.compare(joint, [0.2] * 400)
    with pytest.raises(TypeError, match="y_prob_b was given with a Joint"):
        caldist.compare(joint, joint, [0.2] * 400)
    with pytest.raises(TypeError, match="which rows belong together"):
        caldist.compare(joint, joint, clusters=np.arange(400))
    with pytest.raises(TypeError, match=r"by was given with a Joint.*summarize\(…, by=…\)"):
        caldist.evaluate_groups(joint, by=np.arange(400))


# -- gridded joints stay true of the rows behind them ----------------------------------------------


@pytest.mark.parametrize("bits", [4, 8, 16])
@pytest.mark.parametrize("squares", [True, False])
def test_ends_from_cells_contain_those_from_rows(bits, squares):
    """The same seed draws the same signs only up to rounding, hence a small allowance."""
    y, p = sample(1500)
    joint = Joint.from_arrays(y, p).coarsen(bits)
    if not squares:
        grid = joint.grid
        joint = Joint.from_cells(
            grid.cell, grid.count0, grid.count1, grid.place0, grid.place1, bits=bits
        )
    for measure in (caldist.smooth_ce, caldist.lower_distance, caldist.brier_score):
        of_rows = caldist.confidence_interval(y, p, measure=measure, **QUICK)
        found = caldist.confidence_interval(joint, measure=measure, **QUICK)
        width = of_rows.upper - of_rows.lower
        value = measure(y, p)
        assert found.rounding > 0
        assert found.value - found.rounding - 1e-9 <= value <= found.value + found.rounding + 1e-9
        assert found.upper >= of_rows.upper - 0.03 * width
        assert found.lower <= of_rows.lower + 0.15 * width
        assert "moved outwards for the rounding" in str(found)
    sure, certain = (caldist.distance_bracket(*data) for data in ((joint,), (y, p)))
    assert sure.lower <= certain.lower + 1e-6
    assert sure.upper >= certain.lower
    # The distance of the rows lies below the least cost found for them, and in both brackets.
    assert sure.lower <= certain.upper


def test_the_upper_end_of_a_bracket_of_cells_holds_for_the_rows():
    """Two predictions in one cell, certain and wrong by half a cell each way."""
    y, p = np.repeat([0, 1], 50), np.repeat([0.26, 0.49], 50)
    joint = Joint.from_arrays(y, p).coarsen(2)
    assert caldist.upper_distance(joint) == pytest.approx(0.125)
    bracket = caldist.distance_bracket(joint)
    assert bracket.lower <= caldist.lower_distance(y, p) + 1e-6
    assert bracket.upper >= caldist.lower_distance(y, p)
    assert bracket.upper == pytest.approx(0.125 + joint.radius)


def test_brackets_groups_and_recalibrations_say_that_predictions_were_rounded():
    y, p = sample(1500)
    exact = Joint.from_arrays(y, p)
    for joint in (exact, exact.coarsen(6)):
        interval = caldist.confidence_interval(joint, measure="distance", **QUICK)
        for bracket in (caldist.distance_bracket(joint), interval):
            assert bracket.rounding == joint.radius
            assert ("rounding" in str(bracket)) == (joint.radius > 0)
        groups = caldist.evaluate_groups({"a": joint}, **QUICK)
        assert ("rounding" in str(groups)) == (joint.radius > 0)
        recalibrated = caldist.recalibrate(joint, family="sigmoid", **QUICK)
        assert recalibrated.rounding == joint.radius
        assert ("rounding" in str(recalibrated)) == (joint.radius > 0)


def test_a_region_reads_as_a_sentence():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    [found] = caldist.inference.miscalibrated_regions(rng.random(4000) < p**2, p, **QUICK)
    assert str(found).startswith("Predictions from ")
    assert "of the rows, are too high by 0.1" in str(found)


@pytest.mark.filterwarnings("ignore:n_resamples is .* hardly:UserWarning")
def test_the_test_of_a_summary_keeps_its_level():
    """On cells of width 1/16 drawing labels from their means would be off by much."""
    rng = np.random.default_rng(1)
    times, level, rejected = 200, 0.2, 0
    for seed in range(times):
        p = rng.choice([0.001, 0.06, 0.3, 0.99], 60)
        joint = Joint.from_arrays(rng.random(60) < p, p).coarsen(4)
        found = caldist.calibration_test(joint, n_resamples=39, rng=seed)
        assert found.rounding == joint.grid.drawing_error > 0
        rejected += found.pvalue <= level
    assert rejected / times <= level + 3 * math.sqrt(level * (1 - level) / times)


def test_the_pvalue_of_a_summary_says_what_rounding_added():
    y, p = sample()
    fine, coarse = (
        caldist.calibration_test(Joint.from_arrays(y, p).coarsen(bits), **QUICK) for bits in (16, 4)
    )
    assert 0 < fine.rounding < 1e-6 < coarse.rounding
    assert fine.pvalue == pytest.approx(caldist.calibration_test(y, p, **QUICK).pvalue, abs=0.03)
    assert "for the rounding of the predictions" in str(coarse)
    rounded = Joint.from_masses([0.25, 0.75], [30, 10], [10, 30], n_rows=80, radius=0.001)
    assert caldist.calibration_test(rounded, **QUICK).rounding == pytest.approx(0.08)


def test_a_tolerance_test_of_a_summary_says_what_rounding_did():
    y, p = sample()
    exact = Joint.from_arrays(y, p)
    options = {"tolerance": 0.02, **QUICK}
    of_rows = caldist.calibration_test(exact, **options)
    assert of_rows.rounding == 0
    assert "rounding" not in str(of_rows)
    found = caldist.calibration_test(exact.coarsen(4), **options)
    certain = caldist.evaluate(exact.coarsen(4), measures=["lower_distance"])["lower_distance"]
    assert found.rounding == pytest.approx(found.statistic - certain.lower)
    assert f"with {found.rounding:.2g} taken off for the rounding of the pred" in str(found)


def test_regions_of_cells_reach_to_their_edges():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = rng.random(4000) < np.where(p > 0.7, p - 0.25, p)
    [of_rows] = caldist.inference.miscalibrated_regions(y, p, **QUICK)
    [found] = caldist.inference.miscalibrated_regions(Joint.from_arrays(y, p).coarsen(8), **QUICK)
    assert found.too_high
    assert of_rows.too_high
    assert found.lower * 256 == round(found.lower * 256)
    assert found.upper * 256 == round(found.upper * 256)
    assert abs(found.lower - of_rows.lower) < 0.05
    coarse = Joint.from_arrays(y, p).coarsen(1)
    assert (
        list(caldist.inference.miscalibrated_regions(coarse, confidence_level=0.99, **QUICK)) == []
    )


# -- two samples -----------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["smooth_ce", "kernel_ce", "random_interval_ce", "brier_score"])
def test_independent_samples_are_compared_with_the_promised_confidence(measure):
    rng = np.random.default_rng(3)
    times, level, missed = 120, 0.9, 0
    truth = None
    for seed in range(times):
        pair = []
        for n, shift in ((150, 0.0), (90, 0.1)):
            f = rng.uniform(0.2, 0.8, n)
            pair.append(Joint.from_arrays(rng.random(n) < f, f + shift))
        found = caldist.compare(
            *pair, measure=measure, confidence_level=level, n_resamples=59, rng=seed
        )
        # In the population the first is calibrated, the second 0.1 too high everywhere.
        truth = {"smooth_ce": -0.1, "brier_score": -0.01}.get(measure)
        if truth is None:
            break
        missed += not found.lower <= truth <= found.upper
    if truth is None:
        assert found.lower < found.difference < found.upper
        assert found.difference == found.value_a - found.value_b
    else:
        assert missed / times <= 1 - level + 3 * math.sqrt(level * (1 - level) / times)


def test_exchanging_the_samples_mirrors_the_comparison_of_means():
    a, b = Joint.from_arrays(*sample()), Joint.from_arrays(*sample(300, seed=1, power=2.0))
    one, two = (caldist.compare(*pair, measure="brier_score") for pair in ((a, b), (b, a)))
    assert (one.lower, one.upper) == pytest.approx((-two.upper, -two.lower))
    assert one.pvalue == two.pvalue


def test_rounding_widens_a_comparison():
    a, b = Joint.from_arrays(*sample()), Joint.from_arrays(*sample(300, seed=1, power=2.0))
    exact = caldist.compare(a, b, **QUICK)
    found = caldist.compare(a.coarsen(6), b.coarsen(6), **QUICK)
    assert exact.rounding == 0 < found.rounding
    assert found.upper - found.lower > exact.upper - exact.lower
    assert found.pvalue >= exact.pvalue
    assert "moved outwards" in str(found)


# -- sub-groups ------------------------------------------------------------------------------------


def test_summaries_by_group_say_what_the_rows_of_each_say():
    y, p = sample(900)
    by = np.arange(900) % 3
    joints = {k: Joint.from_arrays(y[by == k], p[by == k]) for k in range(3)}
    found = caldist.evaluate_groups(joints, **QUICK)
    of_rows = caldist.evaluate_groups(y, p, by=by, **QUICK)
    for k in range(3):
        assert found[k].intervals == of_rows[k].intervals
        assert (found[k].n_rows, found[k].n_positives) == (300, int(y[by == k].sum()))
        assert found[k].pvalue == pytest.approx(of_rows[k].pvalue, abs=0.1)
    gridded = caldist.evaluate_groups({k: j.coarsen(6) for k, j in joints.items()}, **QUICK)
    assert all(gridded[k].intervals["smooth_ce"].rounding > 0 for k in range(3))


def test_a_weighted_summary_does_not_say_how_many_rows_are_positive():
    y, p = sample(100)
    weight = np.random.default_rng(0).random(100)
    joint = Joint.from_arrays(y, p, sample_weight=weight)
    group = caldist.evaluate_groups({"all": joint}, **QUICK)["all"]
    assert (group.n_rows, group.n_positives) == (100, None)
    assert "  " in str(caldist.evaluate_groups({"all": joint}, **QUICK))


@pytest.mark.parametrize(
    ("by", "refused"),
    [
        (np.linspace(0, 1, 100), True),
        (np.random.default_rng(0).random(100).astype("f4"), True),
        (pd.Series(np.linspace(0, 1, 100)), True),
        (np.linspace(0, 1, 100).tolist(), True),
        (np.repeat([0.5, 1.5], 50), False),
        (np.repeat([1.0, 2.0], 50), False),
        (np.arange(100) % 5, False),
    ],
)
@few_rows
def test_measurements_are_no_groups(by, refused):
    y, p = sample(100)
    if refused:
        with pytest.raises(ValueError, match=r"by\[\d\] is .*different measurements.*digitize"):
            caldist.evaluate_groups(y, p, by=by, **QUICK)
    else:
        assert len(caldist.evaluate_groups(y, p, by=by, **QUICK).groups) <= 5


def test_bad_dicts_of_joints_are_named():
    with pytest.raises(ValueError, match="empty dict"):
        caldist.evaluate_groups({})
    with pytest.raises(TypeError, match=r"y_true\['a'\] is of type list"):
        caldist.evaluate_groups({"a": [0, 1]})
    with pytest.raises(TypeError, match=r"by is None: .*Pass the sub-group"):
        caldist.evaluate_groups([0, 1], [0.2, 0.7])


# -- one reading -----------------------------------------------------------------------------------


@pytest.fixture
def counts(monkeypatch):
    """How often rows are read and sorted."""
    found = {"read": 0, "sorted": 0}

    def counted(kind, function):
        def call(*args, **kwargs):
            found[kind] += 1
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(validate, "binary_inputs", counted("read", validate.binary_inputs))
    sorting_order = counted("sorted", sorting.sorting_order)
    for module in (sorting, rows_module):
        monkeypatch.setattr(module, "sorting_order", sorting_order)
    monkeypatch.setattr("caldist.data.joint.sort_rows", counted("sorted", sorting.sort_rows))
    residuals = counted("sorted", sorting.sort_residuals)
    monkeypatch.setattr(rows_module, "sort_residuals", residuals)
    return found


DATA = {
    "plain": {},
    "weights": {"sample_weight": np.linspace(1, 2, 400)},
    "clusters": {"clusters": np.arange(400) // 4},
    "both": {"sample_weight": np.linspace(1, 2, 400), "clusters": np.arange(400) // 4},
}


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
@pytest.mark.parametrize("name", [name for name in STATEMENTS if name != "bracket"])
def test_rows_are_read_once_and_sorted_once(counts, name, data):
    STATEMENTS[name](*sample(), **data, **QUICK)
    assert counts == {"read": 1, "sorted": 1}


def test_sub_groups_are_read_once_and_sorted_once(counts):
    caldist.evaluate_groups(*sample(), by=np.arange(400) % 4, **DATA["both"], **QUICK)
    assert counts == {"read": 1, "sorted": 1}


def test_compared_models_are_sorted_once_each(counts):
    y, p = sample()
    caldist.inference.compare_all(y, {"a": p, "b": p**2, "c": p / 2}, n_resamples=199, rng=0)
    assert counts["sorted"] == 3


# -- results ---------------------------------------------------------------------------------------


def test_frames_are_of_pandas_unless_polars_is_asked_for():
    y, p = sample(100)
    data = y, pl.Series(p)
    monitor = caldist.Monitor()
    for result in (
        caldist.confidence_interval(*data, **QUICK),
        caldist.calibration_test(*data, **QUICK),
        caldist.compare(*data, p**2, **QUICK),
        caldist.evaluate_groups(*data, by=np.arange(100) % 2, **QUICK),
        caldist.measures.corp(*data),
        caldist.measures.t_cal(*data, **QUICK),
        monitor.update(*data, batch=1),
        monitor.steps,
    ):
        assert type(result.to_frame()).__module__.startswith("pandas"), type(result)
        assert type(result.to_frame("polars")).__module__.startswith("polars")
        assert set(result.to_dict())
    with pytest.raises(ValueError, match=r"library is 'spark': .* one of 'pandas', 'polars'"):
        caldist.confidence_interval(*data, **QUICK).to_frame("spark")


def test_results_read_as_sentences_dicts_and_tables():
    y, p = sample(100)
    found = caldist.distance_bracket(y, p)
    assert str(found).startswith("The distance to calibration of these rows is at least ")
    assert found.to_dict()["lower_measure"] == "lower_distance"
    assert "<table>" in found._repr_html_()
    tested = caldist.calibration_test(y, p, **QUICK)
    assert str(tested).startswith(f"p = {tested.pvalue:.3f} for labels at least this far")
    assert [part["measure"] for part in tested.to_dict()["components"]] == [
        "smooth_ce",
        "random_interval_ce",
        "spiegelhalter",
    ]


def test_rows_of_weight_0_beyond_the_support_do_not_count():
    y, weight = [0, 0, 0, 0], [1, 1, 1, 0]
    a, b = [0.2, 0.4, 0.6, 0.8], [0.1, 0.3, 0.5, 0.7]
    for measure in ("smooth_ce", "brier_score"):
        with pytest.warns(UserWarning, match="only 0 of 3 rows have label 1"):
            found = caldist.compare(y, a, b, sample_weight=weight, measure=measure, **QUICK)
        with pytest.warns(UserWarning, match="only 0 of 3 rows have label 1"):
            alone = caldist.compare(y[:3], a[:3], b[:3], measure=measure, **QUICK)
        assert found.difference == pytest.approx(alone.difference)
        assert found.lower == pytest.approx(alone.lower, abs=0.05)


def test_threads_can_be_limited(monkeypatch):
    y, p = sample(3000)
    expected = caldist.confidence_interval(y, p, **QUICK)
    for threads in ("1", "3"):
        monkeypatch.setenv("CALDIST_NUM_THREADS", threads)
        assert caldist.confidence_interval(y, p, **QUICK) == expected
    for wrong in ("0", "-1", "many", "1.5"):
        monkeypatch.setenv("CALDIST_NUM_THREADS", wrong)
        with pytest.raises(ValueError, match=f"CALDIST_NUM_THREADS is '{wrong}'"):
            caldist.confidence_interval(y, p, **QUICK)


@pytest.mark.parametrize("name", ["upper_distance", "smooth_ce", "interval_ce"])
def test_one_thread_is_the_one_that_calls(monkeypatch, name):
    y, p = sample(6000)
    measure = getattr(caldist.measures, name)
    expected = measure(y, p)
    monkeypatch.setenv("CALDIST_NUM_THREADS", "1")
    monkeypatch.setattr(threading.Thread, "start", lambda thread: pytest.fail(thread.name))
    assert measure(y, p) == expected


def test_rows_are_their_own_rows():
    rows = Rows.of(*sample())
    assert Rows.of(rows) is rows
    assert caldist.confidence_interval(rows, **QUICK) == caldist.confidence_interval(
        *sample(), **QUICK
    )


# -- what a review found ---------------------------------------------------------------------------


def skewed(n=1000):
    rng = np.random.default_rng(3)
    p = np.round(rng.random(n), 1)
    return (rng.random(n) < p**1.3).astype(int), p, rng.lognormal(0, 1.5, n)


@pytest.mark.parametrize("measure", ["smooth_ce", "kernel_ce", "lower_distance", "brier_score"])
def test_a_weighted_summary_is_not_surer_than_its_rows(measure):
    """The heaviest row is not known from sums, and is bounded."""
    y, p, weight = skewed()
    joint = Joint.from_arrays(y, p, sample_weight=weight)
    of_rows = caldist.confidence_interval(y, p, sample_weight=weight, measure=measure, rng=0)
    found = caldist.confidence_interval(joint, measure=measure, rng=0)
    width = of_rows.upper - of_rows.lower
    assert found.upper >= of_rows.upper - 0.02 * width
    assert found.lower <= of_rows.lower + 0.1 * width
    assert units_of(Rows.of(joint)).largest_share >= weight.max() / weight.sum()
    equal = Joint.from_arrays(y, p, sample_weight=np.full(1000, 7.0))
    assert units_of(Rows.of(equal)).largest_share == pytest.approx(1 / 1000)


def test_rounding_that_nobody_can_bound_row_by_row_rejects_nothing():
    m0 = np.array([300.0, 200.0, 100.0])
    masses = [0.1, 0.5, 0.9], m0, m0[::-1]
    joint = Joint.from_masses(*masses, weight_square0=m0, weight_square1=m0[::-1], radius=0.01)
    assert caldist.calibration_test(joint, **QUICK).pvalue == 1
    assert list(caldist.inference.miscalibrated_regions(joint, **QUICK)) == []


def test_sums_of_squared_weights_that_cannot_be_are_refused():
    y, p, weight = skewed(300)
    joint = Joint.from_arrays(y, p, sample_weight=weight)
    arrays = joint.prediction, joint.mass0, joint.mass1
    for factor, match in ((1e-6, "the least that 300 weights"), (1e6, "no weights with that sum")):
        squares = {
            f"weight_square{k}": factor * part for k, part in enumerate(joint._weight_squares())
        }
        with pytest.raises(ValueError, match=match):
            Joint.from_masses(*arrays, n_rows=300, **squares)


def test_measures_that_count_rows_or_are_large_when_good_as_tests():
    y, p = sample(200)
    for measure in ("debiased_ece", "sweep_ece"):
        found = caldist.calibration_test(y, p, measure=measure, n_resamples=39, rng=0)
        assert found.statistic == pytest.approx(getattr(caldist.measures, measure)(y, p))
    with pytest.raises(ValueError, match="large where predictions are good"):
        caldist.calibration_test(y, p, measure="normalized_cross_entropy")


def test_a_joint_does_not_share_memory_with_its_maker():
    v, m0, m1 = np.array([0.2, 0.7]), np.array([1.0, 2.0]), np.array([2.0, 1.0])
    joint = Joint(v, m0, m1)
    m0[0] = 77
    assert joint.mass0[0] == 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        joint.prediction.flags.writeable = True
    of_rows = Joint.from_arrays([0, 1], [0.2, 0.7])
    with pytest.raises(ValueError, match="WRITEABLE"):
        of_rows.mass0.flags.writeable = True


def test_the_upper_distance_of_cells_is_bounded():
    y, p = sample()
    joint = Joint.from_arrays(y, p).coarsen(6)
    found = caldist.evaluate(joint, measures=["upper_distance"])["upper_distance"]
    assert found.lower <= caldist.lower_distance(y, p) + 1e-6
    assert found.upper == pytest.approx(caldist.upper_distance(joint) + joint.radius)


def test_several_summaries_are_not_compared_as_if_they_shared_rows():
    joint = Joint.from_arrays(*sample())
    for arguments in (({"a": joint, "b": joint},), (joint, {"a": [0.5], "b": [0.5]})):
        with pytest.raises(TypeError, match=r"same rows.*compare\(joint_a, joint_b\)"):
            caldist.inference.compare_all(*arguments)


def test_options_that_are_bound_reach_the_certificate():
    y, p = sample()
    loose = caldist.certify(y, p, measure=caldist.lower_distance.using(tol=1e-2))
    assert loose.gap == caldist.certify(y, p, tol=1e-2).gap


def test_a_summary_without_valid_rows_is_named():
    joint = Joint.from_arrays(*sample())
    for function, what in ((caldist.evaluate_groups, "sub-group"), (caldist.report, "model")):
        with pytest.raises(
            ValueError, match=rf"y_true\['b'\] has no valid rows\. Leave this {what}"
        ):
            function({"a": joint, "b": Joint.empty()})


def test_results_of_single_measures_are_results_too():
    y, p = sample(60)
    for result in (
        caldist.measures.corp(y, p),
        caldist.measures.t_cal(y, p, n_resamples=19, rng=0),
    ):
        assert set(result.to_dict())
        assert len(result.to_frame("polars")) == 1
