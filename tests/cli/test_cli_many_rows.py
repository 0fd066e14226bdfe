"""Commands read Parquet files of many rows as a summary, and say so."""

import json

import numpy as np
import pandas as pd
import pytest

import caldist
from caldist.cli import _by_summary, _source
from command_lines import run

duckdb = pytest.importorskip("duckdb")

COLUMNS = ("--label", "won", "--score", "p")
SAID = "summarised first, on 65,536 cells."


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr(_by_summary, "MANY", 500)


def table(n=600):
    rng = np.random.default_rng(2)
    p = rng.random(n)
    return pd.DataFrame(
        {
            "won": (rng.random(n) < p**1.3).astype(np.int8),
            "p": p,
            "weight": rng.integers(1, 4, n),
            "site": rng.choice(["north", "south, east"], n),
            "age": rng.integers(20, 90, n),
            "team": rng.integers(0, 90, n),
        }
    )


@pytest.fixture
def rows():
    return table()


@pytest.fixture
def file(tmp_path, rows):
    rows.to_parquet(tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def reported(file, *options):
    """Return what a report says as JSON, without what it says of itself, and standard error."""
    out = file.parent / "report.json"
    done = run("report", file, *options, "-o", out)
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text(encoding="utf-8"))
    assert {"name": "file", "value": str(file)} in found["data"].pop("source")
    return found, done.stderr


def expected(joint):
    found = json.loads(caldist.report({"p": joint}, n_resamples=99, rng=0).to_json())
    del found["data"]["source"]
    return found


def joint_of(rows, **weights):
    return caldist.Joint.from_arrays(rows["won"], rows["p"], **weights).coarsen(16)


@pytest.mark.slow
@pytest.mark.parametrize("named", [True, False])
def test_a_report_is_that_of_the_summary(file, rows, named):
    few = rows[["won", "p"]] if not named else rows
    few.to_parquet(file)
    found, said = reported(file, *(COLUMNS if named else COLUMNS[4:]))
    assert f"600 rows: {SAID}\nThe report uses this summary; --exact uses every row" in said
    assert ("using label 'won' and score 'p'" in said) != named
    assert found == expected(joint_of(rows))
    assert "rounded to 65,536 cells" in " ".join(found["data"]["notes"])


@pytest.mark.slow
def test_rows_are_read_where_they_are_asked_for_or_few(file, rows, monkeypatch):
    whole = caldist.report({"p": joint_of(rows)}, n_resamples=99, rng=0)
    found, said = reported(file, *COLUMNS, "--exact")
    assert SAID not in said
    assert "rounded" not in " ".join(found["data"]["notes"])
    assert found["models"][0]["population_lower"] == pytest.approx(
        whole.models[0].population_lower, abs=1e-4
    )
    monkeypatch.setattr(_by_summary, "MANY", 601)
    assert reported(file, *COLUMNS)[0] == found


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("--clusters", "team"),
        ("--score", "q"),
        ("--positive", 1),
        ("--weight", "weight", "--by", "site"),
    ],
)
def test_what_needs_rows_gets_them(file, rows, options):
    rows.assign(q=rows["p"] ** 2).to_parquet(file)
    found, said = reported(file, *COLUMNS, *options)
    assert SAID not in said
    assert found == reported(file, *COLUMNS, *options, "--exact")[0]


@pytest.mark.slow
def test_several_files_count_together(tmp_path, rows):
    for at in range(2):
        folder = tmp_path / f"day={at}"
        folder.mkdir()
        rows[at::2].to_parquet(folder / "rows.parquet")
    out = tmp_path / "report.json"
    done = run("report", tmp_path / "day=*" / "*.parquet", *COLUMNS, "--by", "day", "-o", out)
    assert f"600 rows: {SAID}" in done.stderr
    found = json.loads(out.read_text(encoding="utf-8"))
    assert {(group["group"], group["n_rows"]) for group in found["groups"]} == {
        ("0", 300),
        ("1", 300),
    }


@pytest.mark.slow
def test_sub_groups_are_kept(file, rows):
    found, said = reported(file, *COLUMNS, "--by", "site", "--by", "age")
    assert SAID in said
    whole, _ = reported(file, *COLUMNS, "--by", "site", "--by", "age", "--exact")
    named = [
        sorted((group["by"], group["group"], group["n_rows"], group["positives"]) for group in part)
        for part in (found["groups"], whole["groups"])
    ]
    assert named[0] == named[1]
    assert len(named[0]) == 6  # two sites, and four bins of ages
    values = [{g["group"]: g["smooth_ce"] for g in part["groups"]} for part in (found, whole)]
    assert values[0] == pytest.approx(values[1], abs=1e-5)


@pytest.mark.slow
def test_too_many_sub_groups_need_rows(file, rows, monkeypatch):
    monkeypatch.setattr(_by_summary, "_CELLS", 11)
    found, said = reported(file, *COLUMNS, "--by", "team")
    assert SAID not in said
    assert found == reported(file, *COLUMNS, "--by", "team", "--exact")[0]


def test_a_sub_group_that_is_missing_is_said_as_ever(file, rows):
    rows.loc[7, "site"] = None
    rows.to_parquet(file)
    done = run("report", file, *COLUMNS, "--by", "site", "-o", file.parent / "report.json")
    assert done.exit_code == 2
    assert "rows.parquet, row 8: column 'site' is empty" in done.stderr


def test_many_sub_groups_share_the_cells(file, rows, monkeypatch):
    monkeypatch.setattr(_by_summary, "_CELLS", 12)
    joints = []
    monkeypatch.setattr(
        "caldist.reporting.report", lambda _models, by, **_: joints.append(by) or 1 / 0
    )
    run("report", file, *COLUMNS, "--by", "site", "-o", file.parent / "report.json")
    [by] = joints
    assert {joint.grid.bits for joint in by["site"].values()} == {11}


@pytest.mark.slow
def test_weights_of_all_rows_need_no_rows(file, rows):
    found, said = reported(file, *COLUMNS, "--weight", "weight")
    assert SAID in said
    assert found == expected(joint_of(rows, sample_weight=rows["weight"].to_numpy(float)))


@pytest.mark.slow
@pytest.mark.parametrize("dropping", [True, False])
def test_missing_values(file, rows, dropping):
    rows.loc[[3, 5], "p"] = None
    rows.loc[[4, 5], "won"] = 0
    rows.to_parquet(file)
    if not dropping:
        done = run("report", file, *COLUMNS, "-o", file.parent / "report.json")
        assert done.exit_code == 2
        assert (
            "rows.parquet, row 4: column 'p' is empty: a value is missing (the first of 2 rows)"
            in done.stderr
        )
        return
    out = file.parent / "report.json"
    done = run("report", file, *COLUMNS, "--drop-missing", "-o", out)
    assert "2 of 600 rows were left out for missing values: in p (2)." in done.stdout
    found = json.loads(out.read_text(encoding="utf-8"))
    assert {"name": "rows_dropped", "value": "2"} in found["data"]["source"]
    assert found["data"]["left_out"] == 2
    assert found["data"]["n_rows"] == 598


def test_what_is_no_probability_is_refused_with_its_place(file, rows):
    rows.loc[9, "p"] = 1.5
    rows.to_parquet(file)
    done = run("report", file, *COLUMNS, "-o", file.parent / "report.json")
    assert done.exit_code == 2
    assert "rows.parquet, row 10: column 'p' is '1.5'" in done.stderr


# -- other commands ------------------------------------------------------------------------------


def measured(file, *options):
    done = run("measure", file, *COLUMNS[:4], "--format", "json", *options)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout), SAID in done.stderr


def value_of(line, name):
    return line[name], line["lower"][name], line["upper"][name]


@pytest.mark.parametrize("options", [(), ("--weight", "weight")])
def test_measures_of_a_summary_have_bounds(file, rows, options):
    found, said = measured(file, *options)
    assert said
    weight = {"sample_weight": rows["weight"].to_numpy(float)} if options else {}
    expected = caldist.evaluate(joint_of(rows, **weight))["smooth_ce"]
    [line] = found["results"]
    assert line["rows"] == 600
    assert value_of(line, "smooth_ce") == (expected.value, expected.lower, expected.upper)
    exact = caldist.smooth_ce(rows["won"], rows["p"], **weight)
    assert expected.lower <= exact <= expected.upper
    table = run("measure", file, *COLUMNS[:4], *options).stdout
    assert "contain the value on the rows themselves" in table
    assert "where cells tell nothing about it. Name such a measure in --measure" in table


def test_sub_groups_of_a_summary_are_those_of_the_rows(file, rows, monkeypatch):
    rows.loc[[3, 5], "p"] = None
    rows.to_parquet(file)
    found, said = measured(file, "--by", "site", "--drop-missing")
    assert said
    monkeypatch.setattr(_by_summary, "MANY", 601)
    whole, said = measured(file, "--by", "site", "--drop-missing")
    assert not said
    assert found["by"] == whole["by"] == "site"
    assert found["dropped"]["rows"] == whole["dropped"]["rows"] == 2
    for line, exact in zip(found["results"], whole["results"], strict=True):
        same = ("score", "group", "rows", "dropped")
        assert [line[name] for name in same] == [exact[name] for name in same]
        _, lower, upper = value_of(line, "smooth_ce")
        assert lower <= exact["smooth_ce"] <= upper
        assert upper - lower < 1e-4


@pytest.mark.parametrize("options", [("--clusters", "team"), ("--measure", "smooth_ce,binned_ece")])
def test_measures_that_need_rows_get_them(file, options):
    assert not measured(file, *options)[1]


def test_gates_of_a_summary(file):
    options = (*COLUMNS[:4], "--require-below", 0.5)
    done = run("measure", file, *options)
    assert (done.exit_code, SAID in done.stderr) == (0, True)
    assert "upper_limit" in done.stdout


def test_the_test_of_a_summary_allows_for_rounding(file, rows):
    done = run("test", file, *COLUMNS, "--format", "json")
    assert (done.exit_code, SAID in done.stderr) == (0, True), done.output
    [line] = json.loads(done.stdout)["results"]
    expected = caldist.calibration_test(joint_of(rows), n_resamples=99, rng=0)
    assert (line["pvalue"], line["rounding"]) == (expected.pvalue, expected.rounding)
    assert "rounding was added to pvalue" in run("test", file, *COLUMNS).stdout


def test_a_recalibration_of_a_summary(file, rows):
    out = file.parent / "map.json"
    done = run("recalibrate", file, *COLUMNS, "-o", out)
    assert (done.exit_code, SAID in done.stderr) == (0, True), done.output
    expected = caldist.recalibrate(joint_of(rows), n_resamples=99, rng=0)
    assert caldist.recalibration.CalibrationMap.load(out) == expected.map


def test_bad_rows_of_files_too_large_to_read_again_are_counted(file, rows, monkeypatch):
    rows.loc[9, "p"] = 1.5
    rows.to_parquet(file)
    monkeypatch.setattr(_source, "_READ_AGAIN", 10)
    done = run("measure", file, *COLUMNS[:4])
    assert done.exit_code == 2
    assert (
        "rows.parquet has rows that are not valid: 1 with a bad prediction (not between 0 and 1)"
        in done.stderr
    )


# -- sub-groups of a joint, in Python ------------------------------------------------------------


def halves(rows):
    return {name: joint_of(part) for name, part in rows.groupby("site")}


def test_a_joint_has_sub_groups_that_are_joints(rows):
    by = {"site": halves(rows)}
    found = caldist.report(joint_of(rows), by=by, n_resamples=99)
    groups = caldist.evaluate_groups(by["site"], measures=["smooth_ce"], n_resamples=99, rng=0)
    assert {g.group: (g.smooth_ce, g.lower, g.upper, g.pvalue) for g in found.groups} == {
        g.name: (
            *(getattr(g.intervals["smooth_ce"], e) for e in ("value", "lower", "upper")),
            g.pvalue,
        )
        for g in groups.groups
    }
    assert {g.by for g in found.groups} == {"site"}


@pytest.mark.slow
def test_numbers_are_put_into_bins_of_equally_many_rows(rows):
    ages = {age: joint_of(part) for age, part in rows.groupby("age")}
    found = caldist.report(joint_of(rows), by={"age": ages}, n_resamples=99)
    whole = caldist.report(rows["won"], rows["p"], by={"age": rows["age"]}, n_resamples=99)
    sizes = [[(g.group, g.n_rows) for g in part.groups] for part in (found, whole)]
    assert sizes[0] == sizes[1]
    few = {0.5: joint_of(rows[:200]), 1.5: joint_of(rows[200:])}
    found = caldist.report(joint_of(rows), by={"dose": few}, n_resamples=99)
    assert {g.group for g in found.groups} == {"0.5", "1.5"}


@pytest.mark.parametrize(
    ("by", "error", "message"),
    [
        (["a"] * 600, TypeError, "by was given with a Joint"),
        ({"site": ["a"] * 600}, TypeError, "by was given with a Joint"),
        ({}, TypeError, "by was given with a Joint"),
        ({"site": {}}, TypeError, "by was given with a Joint"),
        (
            {"site": {"a": caldist.Joint.empty(16)}},
            ValueError,
            r"by\['site'\]\['a'\] has no rows. Leave it out",
        ),
        (
            {"site": {"a": caldist.Joint.from_arrays([0, 1], [0.2, 0.6], sample_weight=[1, 2])}},
            ValueError,
            r"by\['site'\]\['a'\] has sums of weights",
        ),
        (
            {"site": {"a": caldist.Joint.from_arrays([0, 1], [0.2, 0.6])}},
            ValueError,
            r"by\['site'\] has joints of 2 rows, and the joint of all has 600. Pass those of all",
        ),
    ],
)
def test_other_sub_groups_of_a_joint_are_refused(rows, by, error, message):
    with pytest.raises(error, match=message):
        caldist.report(joint_of(rows), by=by)


def test_sub_groups_of_several_joints_are_refused(rows):
    joint = joint_of(rows)
    with pytest.raises(ValueError, match="by was given with 2 joints, each of rows of its own"):
        caldist.report({"a": joint, "b": joint}, by={"site": halves(rows)})
