"""Sub-groups: one error rate for all, the same intervals as alone, any kind of labels."""

import dataclasses
import math
import sys
import warnings
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import caldist
from caldist.data.categories import number_labels
from caldist.data.rows import Rows
from caldist.groups import simulated_groups
from caldist.groups.evaluation import (
    Group,
    GroupEvaluation,
    _divided,
    _simultaneous,
    evaluate_groups,
)
from caldist.groups.simulated_groups import SimulatedGroups
from caldist.inference import confidence_interval, null_distribution, resampling
from caldist.inference.null_distribution import null_values
from caldist.inference.random_labels import RandomLabels
from caldist.inference.sample import units_of
from caldist.kernels import loader
from clustered_rows import bursts

FAST = loader.COMPILED
QUICK = {"measures": ["brier_score"], "n_resamples": 19, "rng": 0}


def labels(rng, p):
    return (rng.random(p.size) < p).astype(int)


def example(seed=0, n=300):
    """Three groups, of which "b" has a shift."""
    rng = np.random.default_rng(seed)
    v, by = rng.random(n), rng.choice(["a", "b", "c"], n)
    return labels(rng, np.clip(v + 0.3 * (by == "b"), 0, 1)), v, by


@pytest.fixture(scope="module")
def result():
    y, v, by = example()
    return evaluate_groups(y, v, by=by, n_resamples=99, rng=0)


def test_the_group_with_a_shift_comes_first(result):
    y, _, by = example()
    assert result.groups[0].name == "b"
    assert result.pvalue == result["b"].pvalue == 0.01
    assert result["a"].pvalue > 0.05
    assert [g.pvalue for g in result.groups] == sorted(g.pvalue for g in result.groups)
    for group in result.groups:
        rows = by == group.name
        assert group.n_rows == rows.sum()
        assert group.n_positives == y[rows].sum()
        assert group.note == ""


def test_intervals_are_those_of_the_rows_alone():
    y, v, by = example()
    weight = np.random.default_rng(1).random(y.size)
    cluster = np.arange(y.size) // 3
    for options in ({}, {"sample_weight": weight}, {"clusters": cluster}):
        measures = ["smooth_ce", "random_interval_ce", *(["lower_distance"] if FAST else [])]
        result = evaluate_groups(
            y, v, by=by, measures=measures, n_resamples=99, confidence_level=0.9, rng=7, **options
        )
        for group in result.groups:
            rows = by == group.name
            mine = {name: value[rows] for name, value in options.items()}
            for name, interval in group.intervals.items():
                assert interval == confidence_interval(
                    y[rows],
                    v[rows],
                    measure=name,
                    n_resamples=99,
                    confidence_level=0.9,
                    rng=7,
                    **mine,
                )


MANY = [False, True]  # rows, which have cells and random bytes


@pytest.fixture(params=MANY, ids=["few", "many"])
def many(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(simulated_groups, "_MANY", 0)
        monkeypatch.setattr(simulated_groups, "_CELLS", 8)
    return request.param


def simultaneous(code, y, v, resampler, clusters=None):
    _, parts, units = _divided(Rows.of(y, v, clusters=clusters), code)
    return _simultaneous(parts, units, resampler)


@pytest.mark.slow
@pytest.mark.usefixtures("many")
def test_adjusted_pvalues_agree_with_all_label_patterns():
    v = np.array([0.2, 0.5, 0.9, 0.3, 0.3, 0.7, 0.95])
    code = np.array([0, 0, 0, 1, 1, 1, 1])
    patterns = np.array(list(product((0, 1), repeat=7)))
    chance = np.prod(np.where(patterns == 1, v, 1 - v), axis=1)
    values = np.array(
        [[caldist.smooth_ce(y[code == g], v[code == g]) for g in (0, 1)] for y in patterns]
    )
    mean = chance @ values
    score = (values - mean) / np.sqrt(chance @ (values - mean) ** 2)
    largest = score.max(axis=1)
    for at in (3, 40, 77, 100, 127):
        y = patterns[at].astype(np.uint8)
        resampler = resampling.Resampler.of(at, n_resamples=9999 if FAST else 999)
        found, pvalue = simultaneous(code, y, v, resampler)
        assert found == pytest.approx(score[at], abs=0.2 if FAST else 0.5)
        for g in (0, 1):
            # The scores' scale is itself estimated from the draws.
            shift = 0.05 if FAST else 0.2
            near = [chance[largest >= score[at, g] + s].sum() for s in (shift, -shift)]
            assert near[0] - shift / 2 <= pvalue[g] <= near[1] + shift / 2


@pytest.mark.slow
@pytest.mark.usefixtures("many")
def test_the_family_wise_error_is_nominal():
    """Twelve calibrated groups of different sizes: any rejection counts."""
    rng = np.random.default_rng(3)
    times, rows, level = (250 if FAST else 10), 240, 0.1
    code = rng.integers(0, 12, rows)
    any_adjusted, any_alone = [], []
    for _ in range(times):
        v = rng.beta(0.5, 0.5, rows)
        y = labels(rng, v).astype(np.uint8)
        resampler = resampling.Resampler.of(rng, n_resamples=39)
        any_adjusted.append(simultaneous(code, y, v, resampler)[1].min() <= level)
        alone = [
            caldist.inference.testing.calibration_test(
                y[code == g], v[code == g], measure="smooth_ce", n_resamples=19, rng=rng
            ).pvalue
            for g in range(12 if len(any_alone) < 40 else 0)
        ]
        any_alone.append(bool(alone) and min(alone) <= level)
    assert np.mean(any_adjusted) <= level + 4 * math.sqrt(level * (1 - level) / times)
    if FAST:
        assert np.mean(any_alone[:40]) > 0.4


@pytest.mark.skipif(not FAST, reason="plain kernels are slow")
def test_the_family_wise_error_holds_with_unequal_clusters_of_rare_labels():
    """Five calibrated groups; by signs of clusters alone, half of the samples would reject."""
    rejected = 0
    for seed in range(40):
        y, v, cluster = bursts(np.random.default_rng(seed), 300, 1.5, together=0.9)
        resampler = resampling.Resampler.of(seed, n_resamples=99)
        _, pvalue = simultaneous(cluster % 5, y.astype(np.uint8), v, resampler, cluster)
        rejected += pvalue.min() <= 0.05
    assert rejected <= 7  # binomial, with 1/20 in fewer than one of a thousand


def test_groups_with_clusters_take_the_larger_of_two_pvalues():
    """By signs of clusters, and by labels that depend in each group as much as they do there."""
    rng = np.random.default_rng(0)
    y, v, cluster = bursts(rng, 120, 0.5, rate=0.2, together=0.9)
    code = cluster % 2
    y[code == 1] = rng.random(np.sum(code == 1)) < v[code == 1]
    cluster = np.where(cluster < 20, cluster // 2, cluster)  # some reach across both groups
    _, parts, units = _divided(Rows.of(y, v, clusters=cluster), code)
    resampler = resampling.Resampler.of(0, n_resamples=39)
    score, pvalue = _simultaneous(parts, units, resampler)
    side = SimulatedGroups.of(units)
    dependence = [units_of(part).dependence for part in parts]
    assert dependence[0] > 1.5 * dependence[1]
    of_cells = np.repeat(dependence, [units_of(part).prediction.size for part in parts])
    draws = [side.units.flip, side.units.drawing_in(np.arange(of_cells.size), of_cells)]
    scores, pvalues = [], []
    for draw in draws:
        values = null_values(side.units, side.statistics, resampler, draw)
        z = (values - values.mean(axis=0)) / values.std(axis=0)
        scores.append(z[0])
        pvalues.append((z.max(axis=1)[:, None] >= z[0] - 1e-9).mean(axis=0))
    assert score == pytest.approx(np.min(scores, axis=0))
    assert pvalue == pytest.approx(np.max(pvalues, axis=0))
    assert np.abs(pvalues[0] - pvalues[1]).max() > 0.05


@pytest.mark.slow
def test_cells_hardly_change_the_evidence(monkeypatch):
    """The same rows with cells and without, of groups with a shift, a slope, and neither."""
    if not FAST:
        pytest.skip("plain kernels are slow")
    rng = np.random.default_rng(8)
    v, by = rng.beta(2, 3, 12_000), rng.integers(0, 6, 12_000)
    p = np.clip(v + 0.02 * (by == 1) + 0.1 * (v - 0.5) * (by == 2), 0, 1)
    y = labels(rng, p)
    found = []
    for least in (0, 10**9):
        monkeypatch.setattr(simulated_groups, "_MANY", least)
        found.append(evaluate_groups(y, v, by=by, measures=[], n_resamples=1999, rng=0))
    for group in found[0].groups:
        assert group.score == pytest.approx(found[1][group.name].score, abs=0.15)
        assert group.pvalue == pytest.approx(found[1][group.name].pvalue, abs=0.04)


KINDS_OF_ROWS = ("rows", "weights", "summary")


@pytest.mark.parametrize("kind", KINDS_OF_ROWS)
def test_scores_and_pvalues_by_hand(kind, many):
    """Labels drawn row by row, smCE of the residual masses in cells, scores, the largest of all."""
    y, v, code = example(n=600)
    v, code = np.round(v, 2), np.unique(code, return_inverse=True)[1]  # equal predictions too
    weight = np.random.default_rng(2).random(y.size) + 0.1 if kind == "weights" else None
    _, parts, units = _divided(Rows.of(y, v, sample_weight=weight), code)
    if kind == "summary":
        parts = [Rows.of(caldist.Joint.from_arrays(y[code == g], v[code == g])) for g in range(3)]
        units = [units_of(part) for part in parts]
    resampler = resampling.Resampler.of(7, n_resamples=39)
    found = _simultaneous(parts, units, resampler)

    # One row after the other, in the order in which labels are drawn.
    code = np.repeat(np.arange(3), [part.n_rows for part in units])
    y, v, share = (
        np.concatenate([np.repeat(column(part), part.count) for part in units])
        for column in (lambda u: u.label, lambda u: u.prediction[u.place], lambda u: u.share)
    )
    assert np.bincount(code, share) == pytest.approx(1)
    by_bytes = many and kind != "weights"  # a byte for each row, and more where it does not decide
    if by_bytes:
        order = np.lexsort((v, code))
        y, v, share = y[order], v[order], share[order]
    support = [np.unique(v[code == g]) for g in range(3)]
    cells = [np.searchsorted(at, v[code == g]) for g, at in enumerate(support)]
    if many:  # eight cells of about equally many predictions
        cuts = [np.arange(8) * at.size // 8 for at in support]
        cells = [
            np.searchsorted(cut, cell, "right") - 1 for cut, cell in zip(cuts, cells, strict=True)
        ]

    def statistics(label):
        values = []
        for g, cell in enumerate(cells):
            here = code == g
            mass = np.bincount(cell, share[here])
            mean = np.bincount(cell, share[here] * v[here]) / mass
            residual = np.bincount(cell, share[here] * (label[here] - v[here]))
            values.append(caldist.smooth_ce.norm(mean)(residual))
        return values

    def replicate(rng):
        if by_bytes:
            each, count = np.unique(code + 1j * v, return_counts=True)
            return statistics(RandomLabels(each.imag.copy(), count).draw(rng))
        return statistics(rng.random(y.size) < v)

    drawn = resampler.run(replicate, family=null_distribution._FAMILY, size=y.size)
    values = np.vstack((statistics(y), drawn))
    score = (values - values.mean(axis=0)) / values.std(axis=0)
    reached = score.max(axis=1)[:, None] >= score[0] - 1e-9
    assert found[0] == pytest.approx(score[0], rel=1e-9)
    assert found[1] == pytest.approx(reached.mean(axis=0), abs=1e-12)


def test_many_groups_have_intervals_without_replicates():
    rng = np.random.default_rng(9)
    v, by = rng.random(2000), np.arange(2000) % 20
    y = labels(rng, v)
    measures = ["smooth_ce", "brier_score", *(["lower_distance"] if FAST else [])]
    result = evaluate_groups(y, v, by=by, measures=measures, n_resamples=39, rng=7)
    for name in (0, 19):
        for measure, interval in result[name].intervals.items():
            assert interval.n_resamples == 0
            assert interval == confidence_interval(
                y[by == name], v[by == name], measure=measure, method="cross_fit", rng=7
            )
    few = evaluate_groups(y, v, by=by % 19, measures=["smooth_ce"], n_resamples=39, rng=7)
    assert {group.intervals["smooth_ce"].method for group in few.groups} == {"resampling"}
    clustered = evaluate_groups(
        y, v, by=by, measures=["smooth_ce"], n_resamples=39, rng=7, clusters=np.arange(y.size) // 40
    )
    assert clustered[0].intervals["smooth_ce"].method == "resampling"


KINDS_OF_GROUPS = {
    "different predictions": {},
    "ties": {"digits": 1},
    "weights": {"weighted": True},
    "ties and weights": {"digits": 1, "weighted": True},
    "one label": {"shift": -2.0},
    "certain": {"digits": 0},
    "many rows of few predictions": {"digits": 0, "rows": 80},
    "-0.0": {"sign": -0.0},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS_OF_GROUPS)
@pytest.mark.parametrize("summarized", [False, True])
def test_groups_have_the_intervals_of_each_alone(kind, summarized):
    options = {"digits": 17, "weighted": False, "shift": 0.0, "rows": 9, "sign": 1.0}
    options |= KINDS_OF_GROUPS[kind]
    rng = np.random.default_rng(12)
    by = np.repeat(np.arange(24), [1, 1, 2, 3, *rng.integers(1, 3 * options["rows"], 20)])
    v = np.round(rng.beta(2, 3, by.size), options["digits"]) * options["sign"]
    y = labels(rng, v + options["shift"])
    more = {"sample_weight": rng.random(by.size) * (rng.random(by.size) < 0.9) + (by < 4)}
    more = more if options["weighted"] else {}
    measures = [caldist.smooth_ce, caldist.brier_score]
    if FAST:
        measures += [caldist.lower_distance, caldist.lower_distance.using(tol=1e-4)]
    mine = {at: {name: value[by == at] for name, value in more.items()} for at in range(24)}
    given, given_by = (y, v), {"by": by, **more}
    if summarized:
        given_by = {}
        given = [
            {k: caldist.Joint.from_arrays(y[by == k], v[by == k], **mine[k]) for k in range(24)}
        ]
    found = evaluate_groups(*given, **given_by, measures=measures, n_resamples=19, rng=7)
    for group in found.groups:
        alone = [given[0][group.name]] if summarized else [y[by == group.name], v[by == group.name]]
        own = {} if summarized else mine[group.name]
        for measure in measures:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few rows
                expected = confidence_interval(
                    *alone, measure=measure, method="cross_fit", rng=7, **own
                )
            assert group.intervals[str(measure)] == expected


def test_rounded_and_exact_summaries_have_the_intervals_of_each_alone():
    rng = np.random.default_rng(13)
    v = rng.random(600)
    y = labels(rng, v)
    exact = [caldist.Joint.from_arrays(y[k::24], v[k::24]) for k in range(24)]
    joints = {k: joint.coarsen(4) if k % 3 == 0 else joint for k, joint in enumerate(exact)}
    found = evaluate_groups(joints, measures=["smooth_ce"], n_resamples=19, rng=7)
    for k, joint in joints.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few rows
            expected = confidence_interval(joint, method="cross_fit", rng=7)
        assert found[k].intervals["smooth_ce"] == expected
        assert (expected.rounding > 0) == (k % 3 == 0)


def test_parts_of_rows_have_the_joints_and_units_of_each_alone():
    rng = np.random.default_rng(14)
    v = np.round(rng.random(400), 1)
    v[rng.random(400) < 0.05] = -0.0
    y, code = labels(rng, v), np.minimum(rng.geometric(0.05, 400) - 1, 59)
    code[:60] = np.arange(60)
    for at, part in enumerate(Rows.of(y, v).split(code, 60)):
        alone = Rows.of(y[code == at], v[code == at])
        assert part.joint == alone.joint
        assert part.joint.counts_rows
        assert part.joint.total == alone.joint.total
        assert not np.signbit(part.joint.prediction).any()
        assert np.array_equal(part.label, y[part.index])
        for name in ("prediction", "residual", "place", "label", "count", "share", "mass"):
            assert np.array_equal(getattr(units_of(part), name), getattr(units_of(alone), name)), (
                name
            )


def test_parts_without_rows_are_parts():
    """As labels of rows that were dropped leave them."""
    parts = Rows.of([0, 1, 1], [0.2, 0.4, 0.6]).split(np.array([0, 2, 2]), 4)
    assert [part.n_rows for part in parts] == [1, 0, 2, 0]
    assert parts[2].joint == Rows.of([1, 1], [0.4, 0.6]).joint


def test_clusters_may_reach_across_groups():
    """Sign flips keep the error rate when each cluster's labels come out together."""
    if not FAST:
        pytest.skip("plain kernels are slow")
    rng = np.random.default_rng(4)
    cluster = np.repeat(np.arange(50), 8)
    code = np.tile([0, 0, 0, 0, 1, 1, 1, 1], 50)
    rejected = {True: 0, False: 0}
    for _ in range(100):
        v = rng.random(400)
        y = (np.repeat(rng.random(50), 8) < v).astype(np.uint8)
        for flips in rejected:
            resampler = resampling.Resampler.of(rng, n_resamples=39)
            clusters = cluster if flips else None
            pvalue = simultaneous(code, y, v, resampler, clusters=clusters)[1]
            rejected[flips] += pvalue.min() <= 0.1
    assert rejected[True] <= 100 * (0.1 + 4 * math.sqrt(0.09 / 100)) < rejected[False]


def test_one_group_is_the_single_test():
    """With one group the score does not matter, only the rank."""
    rng = np.random.default_rng(5)
    v = rng.random(50)
    y = labels(rng, v)
    alone = caldist.inference.testing.calibration_test(
        y, v, measure="smooth_ce", rng=2, n_resamples=99
    )
    result = evaluate_groups(y, v, by=["all"] * 50, measures=[], rng=2, n_resamples=99)
    assert result.pvalue == alone.pvalue
    assert result.groups[0].intervals == {}


LABELS = ["x", "y", "x", "z"]
KINDS = {
    "list": LABELS,
    "tuple": tuple(LABELS),
    "array": np.array(LABELS),
    "objects": np.array(LABELS, dtype=object),
    "pandas": pd.Series(LABELS, index=[3, 1, 2, 0]),
    "categories": pd.Categorical(LABELS),
    "pandas text": pd.Series(LABELS, dtype="string"),
    "polars": pl.Series(LABELS),
    "polars categories": pl.Series(LABELS, dtype=pl.Categorical),
    "pyarrow": pa.array(LABELS),
    "pyarrow chunks": pa.chunked_array([LABELS[:2], LABELS[2:]]),
    "pyarrow dictionary": pa.array(LABELS).dictionary_encode(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_labels(kind):
    result = evaluate_groups([0, 1, 1, 0], [0.2, 0.4, 0.6, 0.8], by=KINDS[kind], **QUICK)
    assert {group.name: group.n_rows for group in result.groups} == {"x": 2, "y": 1, "z": 1}


@pytest.mark.parametrize(
    "by",
    [
        [1, 2, 1, 3],
        np.array([1, 2, 1, 3]),
        [True, False, True, True],
        [0.5, 1.5, 0.5, 2.0],
        [1, "1", 1, 2.5],
        [("a", 1), ("a", 2), ("a", 1), ("b", 1)],
        np.array(["2020-01-01", "2020-01-02", "2020-01-01", "2020-01-03"], "M8[D]"),
        pd.cut([1, 5, 1, 9], [0, 3, 6, 10]),
    ],
)
def test_labels_of_other_types(by):
    result = evaluate_groups([0, 1, 1, 0], [0.2, 0.4, 0.6, 0.8], by=by, **QUICK)
    assert sum(group.n_rows for group in result.groups) == 4
    assert len(result.groups) == (2 if by[0] is True else 3)
    assert "group" in str(result)
    assert len(result.to_frame()) == len(result.groups)


@pytest.mark.parametrize(("few", "kind"), [(True, "U"), (False, "U"), (True, "S")])
def test_texts_are_numbered_in_their_order(few, kind):
    """As NumPy does by sorting all of them, also where few come again and again."""
    rng = np.random.default_rng(15)
    number = rng.integers(0, 40 if few else 10**6, 10_000)
    texts = np.array(
        [f"{chr(0x4E00 + 97 * (n % 7))}{n}" if kind == "U" else f"{n}" for n in number]
    )
    texts = texts.astype(kind)
    names, code = number_labels(texts, texts.size, "by")
    expected, place = np.unique(texts, return_inverse=True)
    assert names == expected.tolist()
    assert code.dtype == np.int64
    assert np.array_equal(code, place)


@pytest.mark.parametrize("low", [0, 200, -(2**63), 2**63 - 50, 2**64 - 50, -128])
@pytest.mark.parametrize("spread", [1, 40, 10**15])
def test_integers_are_numbered_in_their_order(low, spread):
    """As NumPy does by sorting all of them, also where they are close to each other."""
    kind = np.uint64 if low > 2**63 else (np.int8 if low == -128 and spread < 100 else np.int64)
    most = min(spread, int(np.iinfo(kind).max) - low)
    number = np.random.default_rng(16).integers(0, most, 1000)
    values = np.array([low + n for n in number.tolist()], dtype=kind)
    names, code = number_labels(values, values.size, "by")
    expected, place = np.unique(values, return_inverse=True)
    assert names == expected.tolist()
    assert code.dtype == np.int64
    assert np.array_equal(code, place)


NAN = float("nan")


@pytest.mark.parametrize(
    ("by", "expected", "parts"),
    [
        (["a", None, "b"], ValueError, ["by[1]", "None", "one of their own"]),
        (["a", "b", NAN], ValueError, ["by[2]", "nan"]),
        (np.array([1.0, NAN, 2.0]), ValueError, ["by[1]", "nan"]),
        (pd.Series(["a", pd.NA, "b"], dtype="string"), ValueError, ["by[1]", "NA"]),
        (pd.Categorical(["a", None, "b"]), ValueError, ["by[1]", "nan"]),
        (pd.to_datetime(["2020-01-01", None, None]), ValueError, ["by[1]", "NaT"]),
        (pl.Series([None, "a", "b"]), ValueError, ["by[0]", "None"]),
        (pl.Series([1, None, 2]), ValueError, ["by[1]", "nan"]),
        (pa.array(["a", None, "b"]), ValueError, ["by[1]", "None"]),
        (np.ma.array([1, 2, 3], mask=[0, 0, 1]), ValueError, ["by[2]", "masked"]),
        (["a", "b"], ValueError, ["by", "2", "3"]),
        ("abc", TypeError, ["by", "'abc'"]),
        (None, TypeError, ["by", "None"]),
        ({"a": 1}, TypeError, ["by"]),
        (3, TypeError, ["by", "3"]),
        (np.eye(3), ValueError, ["by", "(3, 3)"]),
        ([["a"], ["b"], ["c"]], TypeError, ["by[0]", "hashable"]),
    ],
)
def test_bad_labels_are_named(by, expected, parts):
    with pytest.raises(expected) as caught:
        evaluate_groups([0, 1, 1], [0.2, 0.5, 0.9], by=by, **QUICK)
    for part in parts:
        assert part in str(caught.value), str(caught.value)


@pytest.mark.parametrize(
    ("options", "expected", "parts"),
    [
        ({"measures": "smooth_ce"}, TypeError, ["measures", "'smooth_ce'"]),
        ({"measures": 3}, TypeError, ["measures", "3"]),
        ({"measures": ["smooth_ce", "ece"]}, ValueError, ["measures[1]", "'ece'"]),
        ({"measures": [None]}, ValueError, ["measures[0]", "None"]),
        ({"confidence_level": 95}, ValueError, ["confidence_level", "95"]),
        ({"n_resamples": -1}, ValueError, ["n_resamples", "-1"]),
        ({"clusters": [1, 2]}, ValueError, ["clusters", "2", "3"]),
        ({"rng": "x"}, TypeError, ["rng", "'x'"]),
        ({"progress": 1}, TypeError, ["progress", "1"]),
        ({"sample_weight": [1, 0, 0]}, ValueError, ["sample_weight[2]", "'b'", "Leave"]),
    ],
)
def test_bad_options_are_named(options, expected, parts):
    with pytest.raises(expected) as caught:
        evaluate_groups([0, 1, 1], [0.2, 0.5, 0.9], by=["a", "a", "b"], **options)
    for part in parts:
        assert part in str(caught.value), str(caught.value)


def test_small_groups_are_noted_and_not_warned_of():
    y = np.array([0] * 30 + [1] * 30 + [0] * 30 + [1, 0, 0])
    v = np.full(93, 0.5)
    by = ["enough"] * 60 + ["no positives"] * 30 + ["three"] * 3
    result = evaluate_groups(y, v, by=by, n_resamples=39, rng=0)
    assert result["enough"].note == ""
    assert result["no positives"].note == "only 0 positives"
    assert result["three"].note == "only 1 positive and 2 negatives"
    clustered = evaluate_groups(y, v, by=by, n_resamples=39, rng=0, clusters=np.arange(93) // 15)
    assert clustered["enough"].note == "only 4 clusters"
    by_fives = evaluate_groups(y, v, by=by, n_resamples=39, rng=0, clusters=np.arange(93) // 5)
    assert by_fives["enough"].note == "only 6 positive clusters and 6 negative clusters"


def test_certain_predictions_and_impossible_labels():
    v = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.5])
    y = np.array([0, 0, 1, 0, 1, 1, 0])
    by = ["fine"] * 3 + ["wrong"] * 3 + ["coin"]
    result = evaluate_groups(y, v, by=by, **QUICK)
    assert result["wrong"].pvalue == 1 / 20
    # A statistic that cannot vary has score 0: that it is never the largest proves nothing.
    assert result["fine"].score == result["coin"].score == 0
    assert result["fine"].pvalue == result["coin"].pvalue > 0.5


def test_rows_without_weight_do_not_count():
    y, v, by = example()
    weight = np.ones(y.size)
    weight[by == "b"] = np.arange(np.sum(by == "b")) < 40
    kept = weight > 0
    options = {"measures": ["smooth_ce"], "n_resamples": 39, "rng": 1}
    full = evaluate_groups(y, v, by=by, sample_weight=weight, **options)
    part = evaluate_groups(y[kept], v[kept], by=by[kept], sample_weight=weight[kept], **options)
    for group in full.groups:
        assert group.pvalue == part[group.name].pvalue
        assert group.intervals == part[group.name].intervals


def test_the_evidence_of_a_group_does_not_depend_on_its_share_of_the_weight():
    y, v, by = example()
    options = {"measures": [], "n_resamples": 39, "rng": 1}
    equal = evaluate_groups(y, v, by=by, sample_weight=np.ones(y.size), **options)
    tiny = evaluate_groups(y, v, by=by, sample_weight=np.where(by == "b", 1e-99, 1.0), **options)
    assert tiny["b"].score == pytest.approx(equal["b"].score)
    assert tiny["b"].pvalue == equal["b"].pvalue == 1 / 40


def test_rows_without_weight_are_too_few_as_well():
    weight = np.tile([1.0, 1.0, 0.0], 20)
    y, v = np.tile([1, 0, 1], 20), np.full(60, 0.5)
    noted = evaluate_groups(y, v, by=np.arange(60) < 15, sample_weight=weight, **QUICK)
    assert noted[False].note == ""
    assert noted[True].note == "only 5 positives and 5 negatives"
    assert noted[True].n_rows == 15


def test_the_same_seed_gives_the_same_result(monkeypatch):
    y, v, by = example(n=2400 if FAST else 60)
    results = []
    for cores in (1, 3):
        monkeypatch.setattr(resampling, "thread_count", lambda cores=cores: cores)
        results.append(evaluate_groups(y, v, by=by, measures=["smooth_ce"], n_resamples=39, rng=5))
    assert results[0] == results[1]
    order = np.random.default_rng(0).permutation(y.size)
    shuffled = evaluate_groups(
        y[order], v[order], by=by[order], measures=["smooth_ce"], n_resamples=39, rng=5
    )
    assert shuffled == results[0]
    first, second = (
        evaluate_groups(y, v, by=by, measures=[], n_resamples=39, rng=np.random.default_rng(5))
        for _ in range(2)
    )
    assert first == second


def test_many_groups():
    rng = np.random.default_rng(6)
    n = 6000 if FAST else 600
    v, by = rng.random(n), rng.integers(0, n // 20, n)
    result = evaluate_groups(labels(rng, v), v, by=by, **QUICK)
    assert len(result.groups) == np.unique(by).size
    assert sum(group.n_rows for group in result.groups) == n


def test_the_table(result, monkeypatch):
    columns = ["group", "n_rows", "n_positives"]
    for name in ("smooth_ce", "lower_distance", "brier_score"):
        columns += [name, f"{name}_lower", f"{name}_upper"]
    columns += ["score", "pvalue", "note"]
    frames = {}
    for module in ("pandas", "polars"):
        frames[module] = result.to_frame(module)
        assert type(frames[module]).__module__.startswith(module)
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=f"needs {module}, .*: pip install {module}$"):
            result.to_frame(module)
    assert list(frames["pandas"].columns) == columns
    assert frames["polars"].columns == columns
    assert frames["pandas"]["pvalue"].tolist() == [group.pvalue for group in result.groups]


def test_printing_is_aligned(result):
    lines = str(result).splitlines()
    assert lines[0].split() == [
        "group",
        "rows",
        "positives",
        "smooth_ce",
        "lower_distance",
        "brier_score",
        "p-value",
        "note",
    ]
    assert len(lines) == 5
    end = lines[0].index("p-value") + len("p-value")
    assert all(len(line) == end for line in lines[1:4])
    assert lines[1].startswith("b ")
    assert "95%" in lines[4]


def test_results_are_frozen():
    result = evaluate_groups([0, 1], [0.2, 0.7], by=["a", "b"], **QUICK)
    assert isinstance(result, GroupEvaluation)
    assert isinstance(result.groups[0], Group)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.n_resamples = 5
    with pytest.raises(KeyError):
        result["missing"]


def test_clusters_of_all_groups_get_a_sign():
    """The first group's clusters end early: signs are needed for those of all."""
    y, v = np.tile([0, 1], 100), np.tile([0.3, 0.6], 100)
    by = np.repeat([0, 1], 100)
    _, _, units = _divided(Rows.of(y, v, clusters=np.arange(200)), by)
    assert SimulatedGroups.of(units).units.n_clusters == 200
