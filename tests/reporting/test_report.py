"""Reports: what they say, in every format, with hostile names, and in a real browser."""

import copy
import json
import pickle
import re
import warnings
from html import escape
from importlib.resources import files

import jsonschema
import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest

import caldist
from caldist import plots
from caldist._util.numbers import down, up
from caldist.inference.intervals import interval_of
from caldist.inference.regions import Region
from caldist.reporting import build
from caldist.reporting.verdict import verdict
from pages import PROBE, Page, browse

HOSTILE = "<script>alert('x')</script> $\\frac{1}{2}$ | `a` _b_ \"'&"


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    truth = rng.random(600)
    odds = (truth / (1 - truth)) ** 2.5
    return {
        "y_true": (rng.random(600) < truth).astype(int),
        "y_prob": {"honest": truth, "over-confident": odds / (1 + odds)},
        "by": rng.choice(["north", "south"], 600),
    }


@pytest.fixture(scope="module")
def report(rows):
    return caldist.report(**rows, n_resamples=99, rng=0)


@pytest.mark.slow
def test_numbers_are_those_of_the_functions(report, rows):
    y_true = rows["y_true"]
    for model in report.models:
        y_prob = rows["y_prob"][model.name]
        options = {"n_resamples": 99, "rng": 0}
        bracket = caldist.confidence_interval(y_true, y_prob, measure="distance", **options)
        assert (model.population_lower, model.population_upper) == (bracket.lower, bracket.upper)
        assert model.pvalue == caldist.calibration_test(y_true, y_prob, **options).pvalue
        measures = {measure.name: measure for measure in model.measures}
        interval = caldist.confidence_interval(y_true, y_prob, **options)
        smooth = measures["smooth_ce"]
        assert (smooth.value, smooth.lower, smooth.upper) == (
            interval.value,
            interval.lower,
            interval.upper,
        )
        assert measures["ece"].value == caldist.ece(y_true, y_prob)
        assert measures["ece"].lower is None
        assert model.lower <= model.upper
    [pair] = report.pairs
    assert pair.difference == pytest.approx(
        report.models[0].measures[0].value - report.models[1].measures[0].value
    )
    assert {(group.model, group.group) for group in report.groups} == {
        (model, group) for model in rows["y_prob"] for group in ("north", "south")
    }


def test_the_verdict_finds_over_confidence(report):
    honest, over = report.models
    assert "compatible with perfect calibration" in honest.verdict
    assert "not perfectly calibrated" in over.verdict
    assert "over-confident between" in over.verdict
    assert "under-confident" not in over.verdict


def test_a_lower_bound_of_0_is_not_said():
    for lower in (0.0, 1e-9):
        assert verdict(lower, 0.04, 0.5, [], 0.9).startswith(
            "With 90% confidence this model is at most 0.0400 from calibrated. The data are "
            "compatible"
        )
    assert "at least 0.0125 and at most 0.0406" in verdict(0.01256, 0.04056, 0.5, [], 0.95)
    assert "at least 0.000312 and at most 0.00132 " in verdict(3.129e-4, 1.311e-3, 0.5, [], 0.95)


def test_bounds_in_words_are_rounded_outwards():
    assert (down(0.0129), up(0.0121), down(0.012), up(0.012)) == (
        "0.0129",
        "0.0121",
        "0.0120",
        "0.0120",
    )
    assert (down(0.00054999), up(0.00054901)) == ("0.000549", "0.000550")
    assert (down(0.45678), up(0.45678)) == ("0.456", "0.457")


@pytest.mark.parametrize(
    ("region", "words"),
    [
        (Region(0.7, 0.9, -0.1, 0.2), "over-confident between 0.7 and 0.9 (predictions too high"),
        (Region(0.7, 0.9, 0.1, 0.2), "under-confident between 0.7 and 0.9 (predictions too low"),
        (Region(0.1, 0.3, 0.1, 0.2), "over-confident between 0.1 and 0.3 (predictions too low"),
        (Region(0.1, 0.9, 0.1, 0.2), "predicts too low between 0.1 and 0.9 (by 0.1"),
        (Region(0.49, 1.0, 0.1, 0.2), "is under-confident between 0.49 and 1 (predictions too low"),
        (Region(1.0, 1.0, -0.1, 0.2), "over-confident at 1 (predictions too high"),
        (Region(6e-16, 0.2, 0.1, 0.2), "over-confident between 0 and 0.2 (predictions too low"),
    ],
)
def test_regions_in_words(region, words):
    assert words in verdict(0.01, 0.04, 0.001, [region], 0.95)


def test_json_round_trips_and_follows_its_schema(report, tmp_path):
    text = report.to_json(tmp_path / "report.json")
    assert (tmp_path / "report.json").read_text(encoding="utf-8") == text
    schema = json.loads(files("caldist.reporting").joinpath("report.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(text), schema)
    for source in (text, tmp_path / "report.json", str(tmp_path / "report.json")):
        again = caldist.reporting.Report.from_json(source)
        assert again == report
        assert again.to_json() == text
        assert str(again) == str(report)
    assert "<img" not in again.to_html()


@pytest.mark.parametrize("text", ["{}", '{"format": "caldist-report-2"}', "{nonsense"])
def test_a_foreign_file_is_not_a_report(text):
    with pytest.raises(ValueError, match="report"):
        caldist.reporting.Report.from_json(text)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_report(report, rows):
    again = caldist.report(**rows, n_resamples=99, rng=0)
    assert again == report
    assert again.to_json() == report.to_json()
    assert again.to_html() == report.to_html()
    assert caldist.report(**rows, n_resamples=99, rng=1) != report


def test_one_array_is_one_model(rows):
    found = caldist.report(rows["y_true"], rows["y_prob"]["honest"], n_resamples=99)
    assert [model.name for model in found.models] == ["model"]
    assert found.pairs == found.groups == ()


@pytest.mark.slow
def test_weights_and_clusters(rows):
    rng = np.random.default_rng(1)
    found = caldist.report(
        rows["y_true"],
        rows["y_prob"]["honest"],
        sample_weight=rng.random(600),
        clusters=np.arange(600) // 4,
        n_resamples=99,
    )
    assert found.data.weighted
    assert found.data.n_clusters == 150
    assert "150 clusters" in found.to_html()


def test_few_positives_become_a_note_and_not_a_warning():
    rng = np.random.default_rng(2)
    y_true = np.zeros(300, int)
    y_true[:4] = 1
    found = caldist.report(y_true, rng.random(300) * 0.03, n_resamples=99)
    assert any("4 of 300 rows" in note for note in found.data.notes)


def test_certain_predictions_that_fail_are_noted():
    found = caldist.report([0, 1, 1, 0] * 20, [1.0, 1.0, 0.5, 0.5] * 20, n_resamples=99)
    assert "model predicts exactly 1 for 40 rows, and 20 of them turn out otherwise." in (
        found.data.notes
    )


@pytest.mark.parametrize(
    ("y_prob", "error", "message"),
    [
        ({}, ValueError, "empty dict"),
        ({"a": [0.5, 1.5]}, ValueError, r"y_prob\['a'\]\[1\] is 1.5"),
        ({1: [0.5, 0.5]}, TypeError, "name of a model must be a string"),
        ([0.5, float("nan")], ValueError, r"y_prob\[1\] is nan"),
    ],
)
def test_bad_predictions_are_refused(y_prob, error, message):
    with pytest.raises(error, match=message):
        caldist.report([0, 1], y_prob)


def test_swapped_arguments_are_recognised():
    with pytest.raises(ValueError, match=r"y_true and y_prob\['m'\] look swapped"):
        caldist.report([0.2, 0.5, 0.9], {"m": [0, 1, 1]})


# -- what it draws is what it says ---------------------------------------------------------------


@pytest.fixture(scope="module")
def clustered():
    """Rows of 60 clusters, each decided by one random number: calibrated, though it looks bad."""
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(60), 20)
    y_prob = rng.random(60)[cluster]
    y_true = (rng.random(60)[cluster] < y_prob).astype(int)
    return {"y_true": y_true, "y_prob": y_prob, "clusters": cluster}


def test_figures_show_the_results_of_the_text(clustered):
    options = {"confidence_level": 0.9, "n_resamples": 99}
    found = caldist.report(**clustered, **options)
    [model] = found.models
    assert model.regions == ()
    assert "compatible with perfect calibration" in model.verdict
    shown = {figure.display.__name__: figure for figure in found.figures}
    [witness] = shown["WitnessDisplay"].models
    assert (witness.regions, witness.confidence_level) == (model.regions, 0.9)
    assert witness.value == model.measures[0].value
    drawn = shown["WitnessDisplay"].svg()
    assert "no region stands out from chance" in drawn
    assert "sure" not in drawn
    [distance] = shown["DistanceDisplay"].models
    assert distance.population_upper == float(up(model.population_upper))
    [curve] = shown["ReliabilityDisplay"].models
    assert curve.confidence_level == 0.9
    assert "90% band if calibrated" in shown["ReliabilityDisplay"].svg()
    independent = plots.ReliabilityDisplay.from_predictions(
        clustered["y_true"], clustered["y_prob"], confidence_level=0.9
    )
    plt.close(independent.figure_)
    [narrow] = independent.models
    assert np.nanmean(curve.band_upper) > np.nanmean(narrow.band_upper) + 0.05


@pytest.mark.slow
def test_regions_that_are_said_are_drawn(report):
    over = report.models[1]
    assert over.regions
    [witness] = [
        figure.models[0]
        for figure in report.figures
        if figure.display is plots.WitnessDisplay and figure.models[0].name == over.name
    ]
    assert witness.regions is over.regions


@pytest.mark.slow
@pytest.mark.parametrize("again", [copy.deepcopy, lambda found: pickle.loads(pickle.dumps(found))])
def test_copies_draw_the_same_page(report, again):
    other = again(report)
    assert other == report
    assert other.to_html() == report.to_html()
    with pytest.raises(TypeError):
        other.versions["caldist"] = "0"


@pytest.mark.slow
def test_a_generator_draws_one_report(rows):
    found = [
        caldist.report(rows["y_true"], rows["y_prob"]["honest"], n_resamples=99, rng=rng)
        for rng in (np.random.default_rng(5), np.random.default_rng(5), None)
    ]
    assert found[0] == found[1]
    assert [one.seed for one in found] == [None] * 3
    with pytest.raises(TypeError, match="rng is True: it must be"):
        caldist.report(rows["y_true"], rows["y_prob"]["honest"], rng=True)


@pytest.mark.slow
@pytest.mark.parametrize("place", [build, caldist.groups.evaluation])
def test_other_warnings_are_not_kept_back(monkeypatch, place):
    def warns(*args):
        warnings.warn("from within", UserWarning, stacklevel=2)
        return interval_of(*args)

    monkeypatch.setattr(place, "interval_of", warns)
    y_true, y_prob = np.zeros(300, int), np.linspace(0, 0.03, 300)
    y_true[:4] = 1
    models = {"a": y_prob, "b": y_prob / 2}
    with pytest.warns(UserWarning) as caught:  # noqa: PT030 -- all of them are looked at
        found = caldist.report(y_true, models, by=np.arange(300) % 2, n_resamples=99)
    assert {str(warning.message) for warning in caught} == {"from within"}
    assert sum("4 of 300 rows have label 1" in note for note in found.data.notes) == 1


# -- summaries -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_joint_is_reported_like_its_rows(rows):
    y_true, y_prob = rows["y_true"], rows["y_prob"]["over-confident"]
    expected = caldist.report(y_true, y_prob, n_resamples=99)
    found = caldist.report(caldist.Joint.from_arrays(y_true, y_prob), n_resamples=99)
    assert found == expected
    assert found.to_html() == expected.to_html()


@pytest.mark.slow
def test_rounded_predictions_have_no_values_without_a_bound(rows, tmp_path):
    joint = caldist.Joint.from_arrays(rows["y_true"], rows["y_prob"]["honest"])
    exact = caldist.report(joint, n_resamples=99)
    found = caldist.report(joint.coarsen(6), n_resamples=99)
    values = {measure.name: measure for measure in found.models[0].measures}
    assert values["upper_distance"].value is not None  # of which ldCE and a map give bounds
    for name in ("ece", "binned_ece"):
        assert values[name].value is values[name].lower is values[name].upper is None
        assert "not bounded" in values[name].note
    assert values["interval_ce"].value is None
    for before in exact.models[0].measures:
        after = values[before.name]
        if after.lower is not None:
            assert after.lower <= before.lower + 1e-3
            assert after.upper >= before.upper - 1e-3
    assert found.models[0].lower <= exact.models[0].lower
    assert found.models[0].pvalue > exact.models[0].pvalue
    assert found.data.n_rows == 600
    assert "rounded to 64 cells, by 0.00" in found.data.notes[0]
    schema = json.loads(files("caldist.reporting").joinpath("report.schema.json").read_text())
    jsonschema.validate(json.loads(found.to_json()), schema)
    assert "64 cells" in Page(found.to_html()).text
    assert caldist.reporting.Report.from_json(found.to_json()) == found


@pytest.mark.slow
def test_several_joints_are_not_compared(rows):
    weight = np.linspace(1, 2, 600)
    joints = {
        "a": caldist.Joint.from_arrays(rows["y_true"][:200], rows["y_prob"]["honest"][:200]),
        "b": caldist.Joint.from_arrays(
            rows["y_true"], rows["y_prob"]["honest"], sample_weight=weight
        ),
    }
    found = caldist.report(joints, n_resamples=99)
    assert found.pairs == ()
    assert (found.data.n_rows, found.data.positives, found.data.share_of_ones) == (None,) * 3
    notes = " ".join(found.data.notes)
    assert "summaries do not say whether they share rows" in notes
    assert f"a has 200 rows of its own, {rows['y_true'][:200].sum()} with label 1." in notes
    assert "b has 600 rows of its own." in notes
    assert found.models[0].mean_label == rows["y_true"][:200].mean()
    assert "Each model has rows of its own, taken as independent." in Page(found.to_html()).text
    assert caldist.reporting.Report.from_json(found.to_json()) == found


def test_what_a_joint_cannot_say_is_refused(rows):
    joint = caldist.Joint.from_arrays(rows["y_true"], rows["y_prob"]["honest"])
    for options, message in (
        ({"by": rows["by"]}, "by was given with a Joint"),
        ({"clusters": rows["by"]}, "clusters was given with a Joint"),
        ({"sample_weight": np.ones(600)}, "sample_weight was given with a Joint"),
    ):
        with pytest.raises(TypeError, match=message):
            caldist.report(joint, **options)
    masses = caldist.Joint.from_masses([0.2, 0.7], [0.4, 0.1], [0.1, 0.4])
    with pytest.raises(ValueError, match="do not say how many rows there are"):
        caldist.report(masses)


def test_rows_that_a_table_left_out_are_said(rows):
    table = {"y": [0, 1, None, 1] * 30, "p": [0.2, 0.6, 0.7, None] * 30}
    joint = caldist.summarize(pl.DataFrame(table), y_true="y", y_prob="p", invalid="count")
    found = caldist.report(joint, n_resamples=99)
    assert found.data.left_out == 60
    assert (
        "model: 60 rows were left out, 30 with a missing label, 30 with a missing prediction."
        in (found.data.notes)
    )
    assert "none was left out" not in found.to_html()


def test_certain_predictions_of_summaries():
    y_true, y_prob = [0, 1, 1, 0] * 20, [1.0, 0.0, 0.5, 0.5] * 20
    joint = caldist.Joint.from_arrays(y_true, y_prob)
    sure = "model predicts exactly {} for 20 rows, and 20 of them turn out otherwise."
    notes = caldist.report(joint, n_resamples=99).data.notes
    assert {sure.format(0), sure.format(1), "model has only 3 different predictions."} <= set(notes)
    notes = caldist.report(joint.coarsen(8), n_resamples=99).data.notes
    assert sure.format(1) in notes  # which has a cell of its own
    assert not any("exactly 0" in note or "different predictions" in note for note in notes)
    weighted = caldist.Joint.from_arrays(y_true, y_prob, sample_weight=np.linspace(1, 2, 80))
    notes = caldist.report(weighted, n_resamples=99).data.notes
    assert not any("exactly" in note for note in notes)


# -- as a dict and as a frame --------------------------------------------------------------------


def test_frames_have_a_line_for_each_model_and_measure(report):
    frame = report.to_frame("pandas")
    assert list(frame.columns) == ["model", "measure", "symbol", "value", "lower", "upper"]
    assert len(frame) == sum(len(model.measures) for model in report.models)
    line = frame[(frame["model"] == "honest") & (frame["measure"] == "smooth_ce")].iloc[0]
    assert line["value"] == report.models[0].measures[0].value
    assert frame[frame["measure"] == "ece"]["upper"].isna().all()
    assert isinstance(report.to_frame("polars"), pl.DataFrame)


def test_dicts_are_what_json_holds(report):
    content = json.loads(report.to_json())
    assert content.pop("format") == "caldist-report-1"
    assert content == report.to_dict()
    assert report.models[1].regions[0].to_dict() == content["models"][1]["regions"][0]


@pytest.fixture(scope="module")
def hostile_report(rows):
    return caldist.report(
        rows["y_true"],
        {HOSTILE: rows["y_prob"]["honest"]},
        by=np.where(rows["by"] == "north", HOSTILE, "south"),
        n_resamples=99,
        rng=0,
    )


@pytest.mark.slow
def test_names_from_the_data_are_escaped(hostile_report):
    text = hostile_report.to_html()
    page = Page(text)
    assert "script" not in page.tags
    assert HOSTILE in page.text
    json.loads(hostile_report.to_json())


@pytest.mark.slow
def test_the_page_is_one_small_file_with_every_figure_described(report):
    text = report.to_html()
    assert len(text.encode()) < 1_000_000
    page = Page(text)
    assert {"script", "iframe", "object", "embed"}.isdisjoint(page.tags)
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    assert len(page.images) == 3 + 2 * len(report.models)
    assert all(image["alt"] for image in page.images)
    assert all(image["src"].startswith("data:image/svg+xml;base64,") for image in page.images)


def test_the_bars_are_named_by_their_width_which_dark_mode_leaves_as_it_is(report):
    text = Page(report.to_html()).text
    assert text.count("(wide bar)") == text.count("(narrow bar)") == len(report.models)
    assert "light bar" not in text
    assert "dark bar" not in text


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_names_in_any_script_draw_without_a_warning(rows):
    names = ("模型 🚀", "نموذج", "नमूना")
    y_prob = dict(zip(names, rows["y_prob"].values(), strict=False))
    found = caldist.report(rows["y_true"], y_prob, n_resamples=99)
    assert all(name in Page(found.to_html()).text for name in y_prob)
    assert any("模型" in figure.svg() for figure in found.figures)  # real text


@pytest.mark.slow
def test_a_notebook_shows_the_page_in_a_frame(report):
    shown = report._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert Page(shown).tags == ["iframe"]


def test_a_region_on_both_sides_of_one_half_is_said_with_its_own_verb():
    regions = [Region(0.1, 0.3, 0.1, 0.2), Region(0.7, 0.8, -0.1, 0.2), Region(0.4, 0.6, 0.2, 0.1)]
    words = verdict(0.01, 0.04, 0.0005, regions, 0.95)
    assert words.endswith(
        "(p = 0.0005): it is over-confident between 0.1 and 0.3 (predictions too low by 0.1 on "
        "average), between 0.7 and 0.8 (predictions too high by 0.1 on average) and predicts too "
        "low between 0.4 and 0.6 (by 0.2 on average)."
    )


@pytest.mark.slow
def test_columns_of_text_go_left_and_of_numbers_right(report):
    head, first, second, *_ = str(report).split("with at most that chance.\n\n")[1].splitlines()
    assert head.startswith("model           group  rows")
    assert head.endswith("p-value")
    assert len(head) == len(first) == len(second)


@pytest.mark.slow
def test_the_page_defines_its_terms_for_print(report):
    text = Page(report.to_html()).text
    definitions = text.split("What the numbers mean")[1]
    for measure in report.models[0].measures:
        assert f"{measure.meaning[1:]}." in definitions


# -- in a browser ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(browser, report, tmp_path, width, scheme):
    flags = ["--force-dark-mode"] if scheme == "dark" else []
    page = report.to_html().replace("</body>", PROBE + "</body>")
    if scheme == "dark":  # headless Chromium follows no desktop's preference
        page = page.replace("(prefers-color-scheme: dark)", "all")
    frame = f'<iframe srcdoc="{escape(page)}" style="width:{width}px;border:0"></iframe>'
    outside = f"<!DOCTYPE html><title>frame</title><body>{frame}</body>"  # windows are 500 at least
    done = browse(outside, tmp_path, 1300, "--dump-dom", *flags)
    assert "CONSOLE" not in done.stderr
    [found] = re.findall(r'<pre id="probe">(.*?)</pre>', done.stdout)
    probe = json.loads(found)
    assert probe["images"]
    assert min(probe["images"]) > 100
    assert probe["width"] == width
    assert max(probe["overflow"], probe["beyond"]) <= 0
    assert probe["contrast"] >= 4.5
    assert probe["tip"] == "block"
    assert probe["focusable"] > 20
    assert (
        probe["passed"] == []
    )  # by keys all is reached, and shows it; numbers of figures in a table


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_paper(browser, report, tmp_path, scheme):
    """Black on white whatever the screen is; what is folded is printed, what is touched is not."""
    page = (
        report.to_html().replace("</body>", PROBE + "</body>").replace("@media print", "@media all")
    )
    if scheme == "dark":
        page = page.replace("(prefers-color-scheme: dark)", "all")
    width = 700  # of a sheet between its margins
    frame = f'<iframe srcdoc="{escape(page)}" style="width:{width}px;border:0"></iframe>'
    done = browse(
        f"<!DOCTYPE html><title>frame</title><body>{frame}</body>", tmp_path, 1300, "--dump-dom"
    )
    [found] = re.findall(r'<pre id="probe">(.*?)</pre>', done.stdout)
    probe = json.loads(found)
    assert probe["width"] == width
    assert probe["overflow"] <= 0
    assert probe["contrast"] >= 4.5
    assert probe["hidden"]
    assert probe["folded"]
    assert min(probe["folded"]) > 100


@pytest.mark.slow
def test_printed_to_a_file(browser, report, tmp_path):
    sheets = tmp_path / "report.pdf"
    browse(report.to_html(), tmp_path, 1000, f"--print-to-pdf={sheets}", "--no-pdf-header-footer")
    content = sheets.read_bytes()
    assert content.startswith(b"%PDF")
    assert 4 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 12


@pytest.mark.slow
def test_hostile_names_run_nothing_in_a_browser(browser, hostile_report, tmp_path):
    done = browse(hostile_report.to_html(), tmp_path, 1000, "--dump-dom")
    assert "CONSOLE" not in done.stderr
    assert "alert('x')" in done.stdout
    assert "<script" not in done.stdout
