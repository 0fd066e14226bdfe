"""Reports of many models, many sub-groups and long names."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

import caldist


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    truth = rng.random(600)
    return {
        "y_true": (rng.random(600) < truth).astype(int),
        "y_prob": {"honest": truth, "other": truth**2},
        "by": rng.choice(["north", "south"], 600),
    }


@pytest.fixture(scope="module")
def report(rows):
    return caldist.report(**rows, n_resamples=99, rng=0)


def test_many_models_take_the_resamples_they_need(rows):
    rng = np.random.default_rng(3)
    y_true = rows["y_true"][:60]
    models = {f"model {at}": rng.random(60) for at in range(4)}
    found = caldist.report(y_true, models, n_resamples=99, rng=0)
    assert len(found.pairs) == 6
    assert any("from 360 resamples" in note for note in found.data.notes)


@pytest.mark.slow
def test_too_many_pairs_are_left_out_and_said(rows, monkeypatch):
    monkeypatch.setattr("caldist.reporting.build._MOST_RESAMPLES", 50)
    found = caldist.report(rows["y_true"], rows["y_prob"], n_resamples=59, rng=0)
    assert found.pairs == ()
    assert any("1 pairs of models are not compared" in note for note in found.data.notes)


@pytest.fixture(scope="module")
def crowded_report(report):
    """Hold more models, pairs and sub-groups than a page can show."""
    group, [pair] = report.groups[0], report.pairs
    return replace(
        report,
        figures=report.figures * 12,
        pairs=(pair,) * 3_000,
        groups=tuple(replace(group, group=f"g{at}", pvalue=at / 5e3) for at in range(5_000)),
    )


@pytest.mark.slow
def test_a_page_stays_small_whatever_there_is_to_show(crowded_report):
    text = crowded_report.to_html()
    assert len(text.encode()) < 1_000_000
    assert "more figures are left out" in text
    assert "the 500 with the smallest p-values of 5,000" in text
    assert "g499" in text
    assert "g500" not in text
    assert str(crowded_report).count("\n") < 150
    assert len(json.loads(crowded_report.to_json())["groups"]) == 5_000


@pytest.mark.slow
def test_a_clustered_pvalue_is_not_called_exact(rows):
    clustered = caldist.report(
        rows["y_true"], rows["y_prob"]["honest"], clusters=np.arange(600) // 4, n_resamples=99
    )
    assert "Right for many clusters" in clustered.to_html()
    assert "Exact in finite samples" not in clustered.to_html()


def test_clusters_and_seeds_of_any_kind(rows):
    named = np.array([f"p{at}" if at % 2 else at for at in range(150)], dtype=object)
    found = caldist.report(
        rows["y_true"],
        rows["y_prob"]["honest"],
        clusters=np.repeat(named, 4),
        n_resamples=99,
        rng=np.int64(3),
    )
    assert (found.data.n_clusters, found.seed) == (150, 3)


@pytest.mark.slow
def test_long_names_are_shortened_in_figures_only(rows):
    names = [f"{'a long name of a model ' * 3}{end}" for end in ("one", "two")]
    values = list(rows["y_prob"].values())
    found = caldist.report(
        rows["y_true"], dict(zip(names, values, strict=True)), n_resamples=99, rng=0
    )
    figure = found.figures[0]
    assert names[0] in figure.alt
    assert names[0] not in figure.svg()
    assert "…" in figure.svg()


def test_few_clusters_are_noted_and_not_warned_of():
    """Of the interval and of the test, whose p-value is careful then."""
    rng = np.random.default_rng(0)
    p = rng.random(200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = caldist.report(rng.random(200) < p, p, clusters=np.arange(200) % 5, n_resamples=99)
    first, second = (note for note in found.data.notes if note.startswith("only 5 clusters are"))
    assert "a confidence interval may hold" in first
    assert "the p-value is the larger of two" in second
    assert first in str(found)
    assert second in str(found)


@pytest.mark.slow
def test_every_format_says_what_is_taken_as_independent(rows):
    y_true, y_prob = rows["y_true"], next(iter(rows["y_prob"].values()))
    clusters = np.arange(y_true.size) // 4
    for given, words in (
        (None, "Rows are taken as independent. If some belong together"),
        (clusters, f"The {clusters.max() + 1:,} clusters are taken as independent"),
    ):
        found = caldist.report(y_true, y_prob, clusters=given, n_resamples=99)
        for text in (str(found), found.to_html(), found.to_json()):
            assert words in text
        which = "" if given is None else f"in {clusters.max() + 1:,} clusters that are "
        head = f"{y_true.size:,} rows, {y_true.sum():,} of them with label 1, {which}taken as indep"
        assert head in found.to_html()
