"""The demo's data and the command line around it."""

import subprocess
import sys
from importlib.resources import files

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

import caldist
from caldist.cli import _Commands, main
from caldist.cli._demo_table import demo_table
from caldist.data.validate import check_flag
from caldist.datasets import load_demo
from caldist.errors import InvalidInput
from caldist.measures.registry import shown_in

MODELS = [
    "logistic_regression",
    "naive_Bayes",
    "nearest_neighbours",
    "decision_tree",
    "random_forest",
    "gradient_boosting",
]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_the_data_are_labels_and_probabilities():
    demo = load_demo()
    label, predictions = demo.y_true, demo.y_prob
    assert label.shape == (1797,)
    assert set(label.tolist()) == {0, 1}
    assert list(predictions) == MODELS
    for prediction in predictions.values():
        assert prediction.shape == label.shape
        assert prediction.min() >= 0
        assert prediction.max() <= 1


def test_the_file_is_what_the_script_writes():
    data = files("caldist.datasets")
    header, *rows = (data / "demo.csv").read_text(encoding="ascii").splitlines()
    assert header.split(",") == ["label", *MODELS]
    assert len(rows) == 1797
    assert all(",".join(map(repr, _numbers(row))) == row for row in rows)
    note = (data / "README.md").read_text(encoding="ascii")
    assert "CC BY 4.0" in note
    assert all(f"`{name}`" in note for name in MODELS)


def _numbers(row):
    label, *predictions = row.split(",")
    return [int(label), *map(float, predictions)]


def test_the_models_differ_as_the_demo_says():
    demo = load_demo()
    label, predictions = demo.y_true, demo.y_prob
    logistic, tree = predictions["logistic_regression"], predictions["decision_tree"]
    assert caldist.smooth_ce(label, logistic) < 0.1 * caldist.smooth_ce(label, tree)
    assert caldist.ece(label, logistic) > caldist.ece(label, tree)


def test_demo_prints_every_measure_of_every_model():
    result = run("demo")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    for measure in shown_in("evaluate"):
        cells = next(line.split() for line in lines if f" {measure.name} " in line)
        assert cells[:2] == [measure.symbol, measure.name]
        assert len(cells) == 2 + len(MODELS)
    assert {word for model in MODELS for word in model.split("_")} <= set(result.stdout.split())
    assert "CC BY 4.0" in result.stdout


def test_the_table_has_the_values_and_sorts_by_smooth_ce():
    label = np.array([0, 1, 0, 1])
    predictions = {"far_off": np.array([1.0, 0, 1, 0]), "right": np.array([0.0, 1, 0, 1])}
    lines = demo_table(label, predictions).splitlines()
    assert lines[0].split() == ["far"]
    assert lines[1].split() == ["symbol", "measure", "right", "off"]
    assert lines[2].split() == ["smCE", "smooth_ce", "0.0000", "0.5000"]
    assert lines[-1].split() == ["accuracy", "1.0000", "0.0000"]


def test_version():
    result = run("--version")
    assert result.exit_code == 0
    assert caldist.__version__ in result.stdout


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_names_the_commands(option):
    result = run(option)
    assert result.exit_code == 0
    assert "demo" in result.stdout


@pytest.mark.parametrize("arguments", [["nonsense"], ["--nonsense"], ["demo", "nonsense"]])
def test_misuse_ends_with_code_2(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "nonsense" in result.stderr


def _refuse_value():
    raise InvalidInput(argument="y_prob", index=3, value=1.5, reason="it is above 1")


def _refuse_file():
    raise OSError("y_prob[3] is 1.5")


def _refuse_type():  # only what the package itself raises is a refusal
    check_flag("progress", 3)


@pytest.mark.parametrize(
    ("refuse", "message"),
    [
        (_refuse_value, "y_prob[3] is 1.5: it is above 1."),
        (_refuse_file, "y_prob[3] is 1.5"),
        (_refuse_type, "progress is 3: it must be True or False."),
    ],
)
def test_what_the_library_refuses_ends_with_code_2_and_one_line(refuse, message):
    group = _Commands(commands=[click.Command("refuse", callback=refuse)])
    result = CliRunner().invoke(group, ["refuse"])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == f"Error: {message}\n"


def test_python_m_caldist():
    ended = subprocess.run(
        [sys.executable, "-m", "caldist", "--version"], capture_output=True, text=True, check=True
    )
    assert caldist.__version__ in ended.stdout
    assert ended.stderr == ""
