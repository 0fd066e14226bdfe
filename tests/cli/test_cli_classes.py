"""The command line with several classes: patterns, names, gates, formats and refusals."""

import csv
import io
import json

import numpy as np
import pytest

import caldist
from caldist import multiclass
from caldist.cli import _source
from command_lines import HAS_DUCKDB, run, write_csv, write_json_lines

NAMES = ["cat", "dog", "owl"]


def sample(n=120):
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), n)
    label = (truth.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(max=2)
    sharp = truth**3 / (truth**3).sum(axis=1, keepdims=True)
    return label, truth, sharp


LABEL, TRUTH, SHARP = sample()
ANIMAL = np.array(NAMES)[LABEL]


@pytest.fixture(params=["duckdb", "standard library"])
def reader(request, monkeypatch):
    """Read files in both ways."""
    if request.param == "duckdb" and not HAS_DUCKDB:
        pytest.skip("duckdb is not installed")
    if request.param == "standard library":
        monkeypatch.setattr(_source, "find_spec", lambda _: None)


@pytest.fixture
def file(tmp_path):
    columns = {"animal": ANIMAL, "number": LABEL}
    for prefix, matrix in (("a", TRUTH), ("b", SHARP)):
        columns |= {f"{prefix}_{name}": matrix[:, at] for at, name in enumerate(NAMES)}
    columns |= {"weight": 1 + np.arange(120) % 3, "site": np.array(["n", "s"])[np.arange(120) % 2]}
    return write_csv(tmp_path / "rows.csv", columns)


def lines_of(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["results"]


def test_a_pattern_is_a_model(reader, file):
    result = run(
        "measure", file, "--label", "animal", "--score", "a_*", "--score", "b_*", "--format", "json"
    )
    found = json.loads(result.stdout)
    assert found["classes"] == NAMES
    assert found["columns"]["b_*"] == ["b_cat", "b_dog", "b_owl"]
    assert (
        "Classes, from the names of the columns and in their order: cat, dog, owl."
        in found["notes"]
    )
    for line, matrix in zip(found["results"], (TRUTH, SHARP), strict=True):
        assert line["classwise_distance"] == multiclass.classwise_distance(LABEL, matrix)
        table = multiclass.classwise_table(LABEL, matrix, confidence_level=None)
        assert (line["noise"], line["rows"], line["classes"]) == (table.noise, 120, 3)


def test_columns_one_by_one_need_classes(reader, file):
    columns = ("--score", "b_owl", "--score", "b_cat", "--score", "b_dog")
    options = ("--classes", "owl, cat,dog", "--label", "animal", "--format", "json")
    [line] = lines_of(run("measure", file, *columns, *options))
    assert line["score"] == "b"
    assert line["classwise_distance"] == pytest.approx(multiclass.classwise_distance(LABEL, SHARP))
    options = ("--classes", "2,0,1", "--label", "number", "--format", "json")
    [again] = lines_of(run("measure", file, *columns, *options))
    assert again["classwise_distance"] == line["classwise_distance"]


@pytest.mark.parametrize("style", ["table", "csv", "markdown", "json"])
def test_every_format_has_the_classes(file, style):
    options = ("--label", "animal", "--score", "b_*", "--each-class", "--format", style)
    result = run("measure", file, *options)
    assert result.exit_code == 0, result.stderr
    table = multiclass.classwise_table(ANIMAL, SHARP, classes=NAMES, confidence_level=1 - 0.05 / 3)
    worst = sorted(table.lines, key=lambda item: (-item.lower, -item.share))
    assert all(name in result.stdout for name in NAMES)
    assert "Shares add up to classwise_distance" in result.stdout + result.stderr
    if style == "csv":
        found = list(csv.DictReader(io.StringIO(result.stdout)))
        assert [line["class"] for line in found] == [line.name for line in worst]
        assert [float(line["share"]) for line in found] == [line.share for line in worst]
        assert [float(line["lower"]) for line in found] == [line.lower for line in worst]


def test_weights_and_sub_groups(file):
    options = ("--label", "animal", "--score", "b_*", "--format", "json")
    [line] = lines_of(run("measure", file, *options, "--weight", "weight"))
    weight = 1 + np.arange(120) % 3
    expected = multiclass.classwise_distance(LABEL, SHARP, sample_weight=weight)
    assert line["classwise_distance"] == expected
    first, second = lines_of(run("measure", file, *options, "--by", "site"))
    assert (first["group"], second["group"]) == ("n", "s")
    assert first["classwise_distance"] == multiclass.classwise_distance(LABEL[::2], SHARP[::2])


def test_all_measures(file):
    options = ("--label", "animal", "--score", "b_*", "--format", "json", "--measure", "all")
    [line] = lines_of(run("measure", file, *options))
    assert line["smooth_ce"] == multiclass.smooth_ce(LABEL, SHARP)
    assert line["kernel_ce"] == multiclass.kernel_ce(LABEL, SHARP)


@pytest.mark.parametrize(
    ("option", "limit", "code", "said"),
    [
        ("--fail-above", "0", 1, "failed: classwise_distance is above 0"),
        ("--fail-above", "0.9", 0, ""),
        ("--require-below", "0.9", 0, ""),
        ("--require-below", "0.1", 3, "undecided"),
    ],
)
def test_gates_are_one_sided_limits(file, option, limit, code, said):
    options = ("--label", "animal", "--score", "b_*", "--format", "json", option, limit)
    result = run("measure", file, *options)
    assert result.exit_code == code, result.stderr
    assert said in result.stderr
    [line] = json.loads(result.stdout)["results"]
    limits = multiclass.confidence_interval(LABEL, SHARP, confidence_level=0.9)
    assert (line["lower_limit"], line["upper_limit"]) == (limits.lower, limits.upper)


def test_two_classes_gate_as_one_column(tmp_path):
    path = write_csv(
        tmp_path / "two.csv",
        {"y": (LABEL == 0).astype(int), "p_0": 1 - SHARP[:, 0], "p_1": SHARP[:, 0]},
    )
    options = ("--label", "y", "--fail-above", "0.5", "--format", "json")
    [several] = lines_of(run("measure", path, *options, "--score", "p_*"))
    [one] = lines_of(
        run("measure", path, *options, "--score", "p_1", "--measure", "lower_distance")
    )
    assert several["classwise_distance"] == one["lower_distance"]
    for end in ("lower_limit", "upper_limit"):
        assert several[end] == one[end]


def test_the_test_is_the_function(file):
    options = ("--label", "animal", "--score", "b_*", "--format", "json")
    combined, *parts = lines_of(run("test", file, *options))
    found = multiclass.calibration_test(LABEL, SHARP, n_resamples=99, rng=0)
    assert (combined["measure"], combined["pvalue"]) == ("auto", found.pvalue)
    assert [part["pvalue"] for part in parts] == [part.pvalue for part in found.components]
    [one] = lines_of(run("test", file, *options, "--measure", "top_label"))
    assert one["measure"] == "top_label"


def test_the_comparison_is_the_function(file):
    scores = ("--score", "a_*", "--score", "b_*")
    options = ("--label", "animal", "--format", "json")
    [line] = lines_of(run("compare", file, *scores, *options))
    found = multiclass.compare(LABEL, TRUTH, SHARP, n_resamples=99, rng=0)
    for key in ("difference", "lower", "upper", "pvalue"):
        assert line[key] == getattr(found, key)
    assert line["classwise_smooth_ce_a"] == found.value_a


def test_a_report_is_written(file, tmp_path):
    path = tmp_path / "report.json"
    options = ("--label", "animal", "--score", "b_*")
    result = run("report", file, *options, "--confidence-level", "0.9", "-o", path)
    assert result.exit_code == 0, result.stderr
    found = caldist.reporting.Report.from_json(path)
    expected = caldist.report(
        ANIMAL,
        {"b": SHARP},
        classes=NAMES,
        n_resamples=99,
        confidence_level=0.9,
        rng=0,
        source={"file": str(file)},
    )
    assert found == expected
    assert "Classes, from the names of the columns" in result.stdout
    assert "classwise distance to calibration" in result.stdout


SAME = ("--label", "animal", "--score", "b_*")
NAMED = ("--label", "animal", "--score", "b_cat", "--score", "b_dog", "--score", "b_owl")


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("measure", ("--score", "b_*"), "--label is missing"),
        ("measure", ("--label", "animl", "--score", "b_*"), "Did you mean 'animal'?"),
        ("measure", ("--label", "animal", "--score", "c_*"), "the pattern matches no column"),
        ("measure", ("--label", "animal", "--score", "b_c*"), "matches 1 column, 'b_cat'"),
        (
            "measure",
            ("--label", "animal", "--score", "*_*"),
            "one star, for the name of a class, not 2",
        ),
        ("measure", (*SAME, "--score", "a_cat"), "pass patterns only"),
        ("measure", (*SAME, "--classes", "cat,dog"), "names 2 classes, and --score 'b_*' stands"),
        ("measure", (*SAME, "--classes", "dog,cat,owl"), "the same names in another order"),
        (
            "measure",
            (*NAMED, "--classes", "dog,cat,owl"),
            "['b_cat', 'b_dog', 'b_owl'] and the classes are ['dog', 'cat', 'owl'], the same",
        ),
        ("measure", (*SAME, "--classes", "cat,cat,owl"), "'cat' twice"),
        ("measure", (*SAME, "--classes", "cat,,owl"), "an empty name"),
        (
            "measure",
            ("--label", "animal", "--classes", "a,b"),
            "--score is missing. Name the columns of the classes",
        ),
        ("measure", (*SAME, "--classes", "cat,dog,emu"), "line 13: column 'animal' is 'owl'"),
        ("measure", ("--label", "number", "--score", "b_*"), "--classes 0,1,2"),
        ("measure", (*SAME, "--clusters", "site"), "Keep one row of each cluster"),
        ("measure", (*SAME, "--measure", "ece"), "--measure is 'ece': of several classes"),
        ("measure", (*SAME, "--measure", " , "), "names no measure"),
        ("report", (*SAME, "--measure", "ece"), "--measure was given with several classes"),
        ("report", (*SAME, "--tolerance", "0.1"), "--tolerance was given with several classes"),
        (
            "measure",
            (*SAME, "--measure", "kernel_ce", "--fail-above", "0.1"),
            "cannot be judged by kernel_ce",
        ),
        ("measure", (*SAME, "--fail-above", "5"), "For 5% pass 0.05."),
        (
            "measure",
            (*SAME, "--require-below", "0"),
            "--require-below is 0.0: it must lie strictly",
        ),
        ("test", (*SAME, "--tolerance", "0.1"), "--require-below decides"),
        ("test", (*SAME, "--measure", "ece"), "measure is 'ece'"),
        ("compare", SAME, "names one model, and at least two are compared"),
        ("compare", (*SAME, "--score", "a_*", "--measure", "brier_score"), "Leave it out"),
        ("report", (*SAME, "--by", "site"), "by was given with several classes"),
    ],
)
def test_what_is_wrong_is_said_with_a_remedy(file, tmp_path, command, options, message):
    out = ("-o", tmp_path / "report.json") if command == "report" else ()
    result = run(command, file, *options, *out)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_bad_values_are_named_by_column_and_row(tmp_path):
    good = {"y": ["a", "b"], "p_a": [0.5, 0.25], "p_b": [0.5, 0.75]}
    for change, message in (
        ({"p_b": [0.5, 1.5]}, "bad.csv, line 3: column 'p_b' is '1.5'"),
        ({"p_b": [0.5, 0.5]}, "bad.csv, line 3: columns 'p_a' to 'p_b' sum to 0.75"),
        ({"y": ["a", "c"]}, "bad.csv, line 3: column 'y' is 'c'"),
        ({"y": ["a", ""]}, "bad.csv, line 3: column 'y' is empty"),
        ({"p_b": [0.5, ""]}, "bad.csv, line 3: column 'p_b' is empty"),
    ):
        path = write_csv(tmp_path / "bad.csv", good | change)
        result = run("measure", path, "--label", "y", "--score", "p_*")
        assert result.exit_code == 2, message
        assert message in result.stderr


def test_a_column_that_is_called_like_a_pattern_is_a_column(tmp_path):
    path = write_csv(tmp_path / "star.csv", {"y": [0, 1, 1], "p*": [0.2, 0.6, 0.9]})
    result = run("measure", path, "--label", "y", "--score", "p*", "--format", "json")
    assert lines_of(result)[0]["smooth_ce"] == caldist.smooth_ce([0, 1, 1], [0.2, 0.6, 0.9])
    refused = run("measure", path, "--label", "y", "--score", "p*", "--each-class")
    assert refused.exit_code == 2
    assert "there are no classes" in refused.stderr


def test_summaries_have_no_classes(tmp_path):
    caldist.Joint.from_arrays([0, 1], [0.2, 0.7]).save(tmp_path / "one.npz")
    result = run("measure", tmp_path / "one.npz", "--classes", "a,b")
    assert result.exit_code == 2
    assert "--classes was given with a summary" in result.stderr


@pytest.mark.parametrize("style", ["table", "csv", "markdown", "json"])
def test_hostile_names_of_classes_are_shown_and_not_obeyed(tmp_path, style):
    name = "\x1b[2Jred"
    rows = {"y": [name, "b"] * 6, f"p_{name}": [0.5, 0.25] * 6, "p_b": [0.5, 0.75] * 6}
    path = write_json_lines(tmp_path / "rows.jsonl", rows)
    options = ("--label", "y", "--score", "p_*", "--each-class", "--format", style)
    result = run("measure", path, *options)
    assert result.exit_code == 0, result.stderr
    assert "\x1b" not in result.stdout + result.stderr
    assert "[2Jred" in result.stdout.replace("\\[", "[")


def test_rounded_probabilities_are_divided_by_their_sums(tmp_path):
    rounded = np.round(TRUTH, 1)
    columns = {"animal": ANIMAL} | {f"p_{name}": rounded[:, at] for at, name in enumerate(NAMES)}
    options = ("--label", "animal", "--score", "p_*", "--format", "json")
    path = write_csv(tmp_path / "rounded.csv", columns)
    refused = run("measure", path, *options)
    assert refused.exit_code == 2
    assert "--normalize divides them by their sums" in refused.stderr
    (line,) = lines_of(run("measure", path, *options, "--normalize"))
    whole = rounded / rounded.sum(axis=1, keepdims=True)
    assert line["classwise_distance"] == multiclass.classwise_distance(ANIMAL, whole, classes=NAMES)
    one = run("measure", path, "--label", "animal", "--score", "p_cat", "--normalize")
    assert one.exit_code == 2
    assert "--normalize is for several classes" in one.stderr
