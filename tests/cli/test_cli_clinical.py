"""caldist measure --measure clinical."""

import json

import numpy as np
import pytest

import caldist
from command_lines import run, sample_rows, write_csv

NAMES = [
    *("intercept", "slope", "observed_over_expected", "ici", "e50", "e90", "emax"),
    "cox_test_pvalue",
]


@pytest.fixture
def rows():
    return sample_rows()


@pytest.fixture
def file(tmp_path, rows):
    return write_csv(tmp_path / "rows.csv", rows)


def clinical(*arguments):
    return run("measure", *arguments, "--measure", "clinical", "--format", "json")


def test_the_numbers_are_those_of_the_library(file, rows):
    result = clinical(file, "--label", "won", "--score", "first")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert [line["measure"] for line in found["results"]] == NAMES
    summary = caldist.clinical.calibration_summary(
        rows["won"], rows["first"], n_resamples=99, rng=0
    )
    for line in found["results"][:-1]:
        part = getattr(summary, line["measure"])
        assert (line["value"], line["lower"], line["upper"]) == (part.value, part.lower, part.upper)
    assert found["results"][-1]["value"] == summary.test.pvalue
    assert "95% intervals" in found["notes"][-1]


def test_a_summary_has_values_and_the_reason_for_what_it_lacks(file, tmp_path):
    out = str(tmp_path / "rows.npz")
    assert run("summarize", file, "--label", "won", "--score", "first", "-o", out).exit_code == 0
    result = clinical(out)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    slope = next(line for line in found["results"] if line["measure"] == "slope")
    assert slope["value"] is slope["lower"] is slope["upper"] is None
    assert any("joint of exact predictions" in note for note in found["notes"])
    ici = next(line for line in found["results"] if line["measure"] == "ici")
    assert ici["value"] > 0
    assert ici["lower"] is ici["upper"] is None
    assert any("windows of the smoother" in note for note in found["notes"])


def test_what_cannot_be_computed(tmp_path):
    p = np.linspace(0.1, 0.9, 40)
    table = {"y": [0] * 20 + [1] * 20, "p": p, "site": ["all"] * 40}
    file = write_csv(
        tmp_path / "separated.csv", {key: list(column) for key, column in table.items()}
    )
    result = clinical(file, "--label", "y", "--score", "p")
    assert result.exit_code == 2
    assert "separates the labels" in result.stderr
    result = run(
        "measure", file, "--label", "y", "--score", "p", "--measure", "clinical",
        "--fail-above", "0.1",
    )  # fmt: skip
    assert result.exit_code == 2
    assert "--fail-above cannot be judged by --measure clinical" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "positive"),
    [(("no", "yes"), "yes"), (("healthy", "ill"), "ill"), ((1, 2), "2"), ((-1, 1), "1")],
)
@pytest.mark.parametrize("command", ["measure", "test"])
def test_any_two_labels(tmp_path, rows, names, positive, command):
    table = rows | {"won": [names[k] for k in rows["won"]]}
    file = write_csv(tmp_path / "words.csv", table)
    columns = ("--label", "won", "--score", "first", "--format", "json")
    result = run(command, file, *columns, "--positive", positive)
    assert result.exit_code == 0, result.stderr
    plain = run(command, write_csv(tmp_path / "plain.csv", rows), *columns)
    assert json.loads(result.stdout)["results"] == json.loads(plain.stdout)["results"]


def test_a_wrong_or_lonely_positive_label(tmp_path, rows):
    file = write_csv(tmp_path / "words.csv", rows | {"won": [f"w{k}" for k in rows["won"]]})
    result = run("measure", file, "--label", "won", "--score", "first", "--positive", "yes")
    assert result.exit_code == 2
    assert "words.csv, line 2: column 'won' is 'w1'" in result.stderr
    assert "no label is --positive, 'yes'" in result.stderr
    result = run("measure", file, "--score", "first", "--positive", "w1")
    assert result.exit_code == 2
    assert "--positive was given without --label" in result.stderr
