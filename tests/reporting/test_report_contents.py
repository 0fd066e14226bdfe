"""What a report has beside its numbers: source, contents, overview, sub-groups, points to touch."""

import datetime as dt
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import caldist
from caldist.data.categories import bin_numbers
from caldist.data.rows import Rows
from caldist.inference.regions import Region
from caldist.plots import DecisionCurveDisplay
from caldist.plots.map import _stated, recalibration_curve
from caldist.reporting import Report
from caldist.reporting.model import GroupReport
from caldist.reporting.subgroups import columns_of, groups_of_models
from caldist.reporting.verdict import verdict
from command_lines import run
from pages import Page

QUICK = {"n_resamples": 59, "rng": 0}
HOSTILE = "<script>alert(1)</script>"
SOURCE = {
    "file": ["scores.csv", "more.csv"],
    "date": dt.date(2024, 6, 30),
    "version": 7,
    "rows_dropped": {"without a label": 12, "without a score": 3, "of another kind": 0},
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    risk = rng.random(400)
    y = (rng.random(400) < risk).astype(int)
    months = [f"2024-{month:02d}" for month in rng.permutation(np.arange(400) % 3 + 8)]
    return {
        "y_true": y,
        "y_prob": {"one": risk, "two": risk**1.5},
        "by": {"age": rng.normal(60, 10, 400), "month": months},
    }


@pytest.fixture(scope="module")
def report(rows):
    return caldist.report(**rows, source=SOURCE, **QUICK)


@pytest.fixture(scope="module")
def page(report):
    return report.to_html()


# -- the source ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_format_says_where_the_rows_come_from(report, page):
    for text in (str(report), Page(page).text):
        for line in (
            "File: scores.csv, more.csv",
            "Date: 2024-06-30",
            "Version: 7",
            "Rows dropped: 15 (12 without a label, 3 without a score)",
        ):
            assert line in text
    assert report.data.left_out == 15
    assert "none was left out" not in Page(page).text
    assert Report.from_json(report.to_json()) == report
    assert "none was left out" in caldist.report([0, 1] * 9, [0.4, 0.6] * 9, **QUICK).to_html()


def test_sources_of_several_classes():
    matrix = np.tile([[0.2, 0.3, 0.5], [0.5, 0.25, 0.25]], (20, 1))
    found = caldist.report([2, 0] * 20, matrix, source={"file": "a.csv", "date": None}, **QUICK)
    for text in (str(found), found.to_html()):
        assert "File: a.csv" in text
        assert "Date" not in text


def test_several_columns_of_sub_groups_on_the_command_line(tmp_path):
    """The same sub-groups, numbers in bins among them, as the library makes of the columns."""
    path, out = tmp_path / "scores.csv", tmp_path / "report.json"
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"p": rng.random(200).round(4)})
    table["y"] = (rng.random(200) < table["p"]).astype(int)
    table["bmi"] = rng.normal(25, 3, 200).round(3)
    table["ward"] = rng.integers(3, size=200)
    table["sex"] = rng.choice(["f", "m"], 200)
    table.to_csv(path, index=False)
    command = ["report", str(path), "--label", "y", "--score", "p"]
    by = ["--by", "bmi", "--by", "ward", "--by", "sex"]
    done = run(*command, *by, "-o", str(out), draws=59)
    assert done.exit_code == 0, done.output
    found = Report.from_json(out).groups
    assert [group.by for group in found] == ["bmi"] * 4 + ["ward"] * 3 + ["sex"] * 2
    columns = {name: table[name] for name in ("bmi", "ward", "sex")}
    library = caldist.report(table["y"], {"p": table["p"]}, by=columns, **QUICK)
    assert found == library.groups


def test_one_column_of_sub_groups_elsewhere(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("y,p,a,b\n" + "0,0.4,u,v\n1,0.6,u,w\n" * 20)
    for command in ("measure", "summarize"):
        done = run(command, str(path), "--by", "a", "--by", "b", draws=59)
        assert done.exit_code == 2
        assert "--by was given 2 times" in done.output
    path.write_text("y,p_a,p_b\n" + "a,0.4,0.6\n" * 20)
    asked = ["report", str(path), "--label", "y", "--score", "p_*", "--by", "y"]
    done = run(*asked)
    assert done.exit_code == 2
    assert "--by was given with several classes, whose report has no sub-groups" in done.output


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("a.csv", TypeError, "source is 'a.csv': it must be a dict"),
        ({1: "a"}, TypeError, "source has the key 1, but its keys must be strings"),
        ({"rows_dropped": -1}, ValueError, r"source\['rows_dropped'\] is -1"),
        ({"rows_dropped": "many"}, ValueError, r"source\['rows_dropped'\] is 'many'"),
        ({"rows_dropped": {"bad": 0.5}}, ValueError, r"\['bad'\] is 0.5: it must be a number"),
    ],
)
def test_bad_sources(source, error, message):
    with pytest.raises(error, match=message):
        caldist.report([0, 1], [0.2, 0.7], source=source)


def test_hostile_sources_are_escaped():
    found = caldist.report(
        [0, 1] * 9, [0.4, 0.6] * 9, source={HOSTILE: HOSTILE, "file": "a\x1b[31m\nb"}, **QUICK
    )
    page = found.to_html()
    assert "script" not in Page(page).tags
    assert "\x1b" not in page + str(found)


def test_the_command_line_names_its_file(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("y,p\n" + "0,0.4\n1,0.6\n" * 20)
    out = tmp_path / "report.json"
    command = ["report", str(path), "--label", "y", "--score", "p"]
    done = run(*command, "-o", str(out), draws=59)
    assert done.exit_code == 0, done.output
    found = Report.from_json(out)
    assert {line.name: line.value for line in found.data.source} == {"file": str(path)}


def test_the_command_line_says_what_it_dropped(tmp_path):
    path, out = tmp_path / "scores.csv", tmp_path / "report.json"
    path.write_text("y,p\n" + "0,0.4\n1,0.6\n,0.5\n" * 20)
    command = ["report", str(path), "--label", "y", "--score", "p"]
    done = run(*command, "--drop-missing", "-o", str(out), draws=59)
    assert done.exit_code == 0, done.output
    found = Report.from_json(out)
    assert (found.data.n_rows, found.data.left_out) == (40, 20)
    assert "Rows dropped: 20" in done.stdout


def test_the_command_line_puts_numbers_into_bins(tmp_path):
    path, out = tmp_path / "scores.csv", tmp_path / "report.json"
    path.write_text("y,p,age\n" + "".join(f"{k % 2},0.5,{20 + k % 50}\n" for k in range(200)))
    command = ["report", str(path), "--label", "y", "--score", "p"]
    done = run(*command, "--by", "age", "-o", str(out), draws=59)
    assert done.exit_code == 0, done.output
    assert [(group.by, group.group) for group in Report.from_json(out).groups] == [
        ("age", "20 to 32"),
        ("age", "33 to 44"),
        ("age", "45 to 57"),
        ("age", "58 to 69"),
    ]


# -- contents and overview -----------------------------------------------------------------------


def test_contents_lead_to_every_section(page):
    anchors = re.findall(r'<li><a href="#([\w-]+)">', page)
    assert anchors == re.findall(r'<h2 id="([\w-]+)">', page)
    assert anchors[0] == "overview"
    assert {"groups", "clinical", "compared"} <= set(anchors)


def test_twenty_models_have_an_overview_before_their_cards(report):
    one = report.models[0]
    many = tuple(replace(one, name=f"model {at}") for at in range(20))
    page = replace(report, models=many, figures=(), pairs=(), groups=()).to_html()
    overview, cards = page.split('<h2 id="verdict">')
    for at in range(20):
        assert f'<a href="#model-{at + 1}">model {at}</a>' in overview
        assert f'id="model-{at + 1}" aria-label="model {at}"' in cards
    alone = replace(report, models=(one,), figures=(), pairs=(), groups=()).to_html()
    assert 'id="overview"' not in alone


# -- sub-groups ----------------------------------------------------------------------------------


def test_several_columns_are_adjusted_together(report, rows):
    columns = rows["by"]
    for name in columns:
        by = columns[name]
        if name == "age":
            labels, code = bin_numbers(by, 400, "by")
            by = [labels[at] for at in code]
        found = caldist.evaluate_groups(
            rows["y_true"], rows["y_prob"]["one"], by=by, measures=["smooth_ce"], **QUICK
        )
        shown = [one for one in report.groups if one.by == name and one.model == "one"]
        assert {one.group for one in shown} == {group.name for group in found.groups}
        for one in shown:
            assert one.n_rows == found[one.group].n_rows
            assert one.pvalue <= min(1, 2 * found[one.group].pvalue) + 0.1  # other draws


def test_tables_say_how_they_are_adjusted(report, page):
    said = (
        "Each interval holds for its sub-group by itself, with 95% confidence. p-values are "
        "adjusted for the 7 sub-groups of a model, of 2 columns: calibrated predictions would show "
        "this much in any of them with at most that chance."
    )
    for text in (str(report), Page(page).text):
        assert said in text


@pytest.mark.slow
def test_the_verdict_names_the_sub_groups_that_are_not_calibrated():
    """5 of 200 sites are shifted by one logit, which the model as a whole does not show."""
    rng = np.random.default_rng(1)
    logit = rng.normal(0, 1.5, 40_000)
    site = rng.integers(0, 200, logit.size)
    truth = 1 / (1 + np.exp(-logit - (site < 5)))
    y_true, y_prob = rng.random(logit.size) < truth, 1 / (1 + np.exp(-logit))
    found = caldist.report(y_true, y_prob, by={"site": site.astype(str)}, n_resamples=999)
    [model] = found.models
    assert model.pvalue > 0.05
    off = sorted((one for one in found.groups if one.pvalue < 0.05), key=lambda one: one.pvalue)
    assert {one.group for one in off} <= {"0", "1", "2", "3", "4"}
    words = (
        f"As a whole the data are compatible with perfect calibration (p = {model.pvalue:.3f}), "
        f"but {len(off)} of 200 sub-groups are not calibrated: site {off[0].group} "
        "(adjusted p ≤ 0.001), "
    )
    assert words in model.verdict
    [card] = re.findall(r'<p class="verdict">(.*?)</p>', found.to_html())
    for text in (card, str(found)):
        assert words in text


def verdict_of(groups, pvalue=0.2, regions=()):
    made = [GroupReport("m", name, 100, 50, 0.1, 0.0, 0.2, p, "", by="site") for name, p in groups]
    return verdict(0.0, 0.1, pvalue, regions, 0.95, least_pvalue=0.001, groups=made)


def test_sub_groups_in_words():
    assert "sub-group" not in verdict_of([("a", 0.05), ("b", 1.0)])
    text = verdict_of([("a", 0.01), ("b", 1.0)])
    assert text.endswith("but 1 of 2 sub-groups is not calibrated: site a (adjusted p = 0.010).")
    many = [(f"{at}\nb", 0.04 - at / 1000) for at in range(9)]
    text = verdict_of([*many, ("x" * 99, 0.002)], pvalue=0.001)
    assert "range of predictions it errs. Taken separately, 10 of 10 sub-groups are not" in text
    assert f"site {'x' * 34}… (adjusted p = 0.002), site 8 b (adjusted p = 0.032), " in text
    assert text.endswith("(adjusted p = 0.033) and 7 more.")
    region = Region(0.1, 0.2, 0.1, 0.5)
    assert "but it is over-confident" in verdict_of(many, regions=[region])
    assert "Taken separately, 9 of 9" in verdict_of(many, regions=[region])


def test_dates_are_sorted_by_time_and_bins_by_size(report, rows):
    of_one = [group for group in report.groups if group.model == "one"]
    assert [group.group for group in of_one if group.by == "month"] == [
        "2024-08",
        "2024-09",
        "2024-10",
    ]
    ages = [group.group for group in of_one if group.by == "age"]
    assert len(ages) == 4
    lows = [float(label.split(" to ")[0]) for label in ages]
    assert lows == sorted(lows)
    assert lows[0] == pytest.approx(rows["by"]["age"].min(), rel=1e-3)


def groups_of(rows, by, group_order=None):
    data = {"one": Rows.of(rows["y_true"], rows["y_prob"]["one"])}
    columns = columns_of(by, data["one"].n_rows)
    return [group.group for group in groups_of_models(data, columns, group_order, QUICK)]


def test_sub_groups_are_sorted_as_asked(rows):
    y, p = rows["y_true"], rows["y_prob"]["one"]
    by = np.where(np.arange(400) % 2 == 0, "a", "b")
    worse = np.where(by == "b", p**4, p)
    data = {"y_true": y, "y_prob": {"one": worse}}
    assert groups_of(data, by) == ["b", "a"]
    assert groups_of(data, by, group_order="label") == ["a", "b"]
    order = pd.Categorical(by, categories=["b", "a"], ordered=True)
    assert groups_of(data, pd.Series(order), group_order="label") == ["b", "a"]
    with pytest.raises(ValueError, match="group_order is 'size'"):
        caldist.report(y, p, by=by, group_order="size")


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (pd.to_datetime(["2024-10-01", "2024-02-01"] * 200), ["2024-02-01", "2024-10-01"]),
        (
            [dt.date(2024, 10, 1), dt.date(2024, 2, 1)] * 200,
            ["2024-02-01", "2024-10-01"],
        ),
        (np.array(["2024-10", "2024-02"] * 200, "datetime64[M]"), ["2024-02-01", "2024-10-01"]),
        (["2024-Q4", "2023-Q1"] * 200, ["2023-Q1", "2024-Q4"]),
        ([2021, 2019] * 200, ["2019", "2021"]),
    ],
)
def test_times_of_any_kind_are_in_order(rows, by, expected):
    assert groups_of(rows, by) == expected


def test_frames_name_their_columns(rows):
    frame = pl.DataFrame({"site": ["x", "y"] * 200, "sex": ["f", "f", "m", "m"] * 100})
    found = caldist.report(rows["y_true"], rows["y_prob"]["one"], by=frame, **QUICK)
    assert {(group.by, group.group) for group in found.groups} == {
        ("site", "x"),
        ("site", "y"),
        ("sex", "f"),
        ("sex", "m"),
    }
    assert "site" in str(found)
    single = caldist.report(rows["y_true"], rows["y_prob"]["one"], by=["x", "y"] * 200, **QUICK)
    assert {group.by for group in single.groups} == {""}


def test_bins_are_named_by_what_lies_in_them():
    labels, code = bin_numbers([1, 2, 3, 4, 5, 6, 7, 8], 8, "by")
    assert labels == ["1 to 2", "3 to 4", "5 to 6", "7 to 8"]
    assert code.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert bin_numbers([0.0] * 6 + [1.5, 2.5], 8, "by")[0] == ["0", "1.5 to 2.5"]
    close = 1 + np.arange(40) * 1e-9
    assert len(set(bin_numbers(close, 40, "by")[0])) == 4


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ({}, "by is empty"),
        ({"age": [0.5, np.nan] * 200}, r"by\[1\] is nan"),
        ({"age": np.append(np.linspace(0, 1, 399), np.inf)}, r"by\[399\] is inf"),
        ({"a": ["x"] * 400, "b": ["x"] * 3}, r"by\['b'\] has 3 values"),
        (np.linspace(0, 1, 100), "by has 100 values"),
    ],
)
def test_bad_columns(rows, by, message):
    with pytest.raises(ValueError, match=message):
        groups_of(rows, by)


# -- figures and clinical measures -----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("joint", [False, True])
def test_clinical_measures(rows, joint):
    data = (rows["y_true"], rows["y_prob"]["two"])
    if joint:
        data = (caldist.Joint.from_arrays(*data).coarsen(10),)
    found = caldist.report(*data, **QUICK)
    [model] = found.models
    summary = caldist.clinical.calibration_summary(*data, **QUICK)
    assert not model.clinical.reason
    for one in model.clinical.estimates:
        expected = summary.estimates[one.name]
        ends = expected.to_dict()
        assert (one.value, one.lower, one.upper) == (ends["value"], ends["lower"], ends["upper"])
    assert model.clinical.test_pvalue == summary.test.pvalue
    page = found.to_html()
    assert "Clinical measures" in page
    assert f"{summary.ici.value:.3g}" in page
    slope = "log odds near 0 and 1 magnify" if joint else f"{summary.slope.value:.3g}"
    assert slope in page
    figure = next(one for one in found.figures if one.clinical)
    assert figure.display is DecisionCurveDisplay
    benefit = caldist.clinical.net_benefit(*data, thresholds=figure.models[0].threshold)
    np.testing.assert_allclose(figure.models[0].model, benefit.model)
    assert figure.alt in page
    assert Report.from_json(found.to_json()) == found


@pytest.mark.slow
def test_clinical_measures_that_are_missing_have_a_reason():
    found = caldist.report([0] * 30, np.linspace(0.1, 0.3, 30), **QUICK)
    assert found.models[0].clinical.estimates == ()
    assert found.models[0].clinical.reason in Page(found.to_html()).text
    rough = caldist.Joint.from_masses([0.2, 0.6], [8, 4], [2, 6], n_rows=20, radius=0.01)
    without = caldist.report(rough, **QUICK)
    assert not any(figure.clinical for figure in without.figures)


def test_limits_in_figures_are_rounded_outwards():
    rng = np.random.default_rng(3)
    curve = recalibration_curve(
        "a", caldist.recalibrate(rng.random(200) < 0.4, rng.random(200), rng=0), None
    )
    words = _stated(replace(curve, lower_before=0.0129, upper_after=0.0121))
    assert words == ": smCE ≥ 0.012, then ≤ 0.013"


# -- measures and a tolerance --------------------------------------------------------------------


def test_the_table_has_the_measures_that_were_asked_for():
    rows = ([0, 1] * 9, [0.4, 0.6] * 9)
    chosen = caldist.report(*rows, measures=["ece", caldist.log_loss], **QUICK)
    assert [measure.name for measure in chosen.models[0].measures] == ["ece", "log_loss"]
    none = caldist.report(*rows, measures=[], **QUICK)
    assert none.models[0].measures == ()
    assert "smCE" not in str(none).partition("\n\n")[0]
    assert none.to_html()
    with pytest.raises(ValueError, match=r"measures\[0\] is 'x'"):
        caldist.report(*rows, measures=["x"])


@pytest.mark.parametrize(
    ("tolerance", "words"), [(0.9, "within"), (0.1, "beyond"), (0.25, "too few rows to tell")]
)
def test_the_verdict_says_whether_a_tolerance_is_kept(tolerance, words):
    assert words in verdict(0.2, 0.4, 0.5, (), 0.95, tolerance=tolerance)
    assert "tolerance" not in verdict(0.2, 0.4, 0.5, (), 0.95)


def test_a_report_takes_a_tolerance_and_refuses_one_that_is_none(tmp_path):
    found = caldist.report([0, 1] * 9, [0.4, 0.6] * 9, tolerance=0.9, **QUICK)
    assert "within the tolerance of 0.9" in found.models[0].verdict
    with pytest.raises(ValueError, match="tolerance is 2"):
        caldist.report([0, 1] * 9, [0.4, 0.6] * 9, tolerance=2)
    path, out = tmp_path / "rows.csv", tmp_path / "report.json"
    path.write_text("y,p\n" + "0,0.4\n1,0.6\n" * 20)
    columns = ("--label", "y", "--score", "p", "--tolerance", 0.9)
    for measures, names in (("clinical", []), ("ece,log_loss", ["ece", "log_loss"])):
        done = run("report", path, *columns, "--measure", measures, "-o", out)
        assert done.exit_code == 0, done.output
        [model] = Report.from_json(out).models
        assert [measure.name for measure in model.measures] == names
        assert "within the tolerance of 0.9" in model.verdict
