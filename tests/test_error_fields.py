"""Errors about what a user passed have fields, of which their sentence is made."""

import ast
import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import caldist
from caldist._util.invalid import Invalid, clause_of, show
from caldist.errors import CertificateError, InvalidInput, InvalidType, ToleranceError

SOURCE = Path(caldist.__file__).parent

# Errors that stay plain: file and function, and why.
PLAIN = {
    ("errors.py", "refuse_unknown"): "too many arguments: Python's own error, with the answer",
    ("errors.py", "refuse_option"): "an unknown argument: Python's own error, with the answer",
    ("measures/base.py", "using"): "an unknown option: Python's own error, with the answer",
    ("inference/gates.py", "__bool__"): "Python's protocol of truth values",
    ("clinical/calibration_curve.py", "__iter__"): "Python's protocol of unpacking",
}

# Sentences that are read after all: file and function, and why.
READ = {
    ("engines/files.py", "reading"): "DuckDB's message, of which the first part is shown",
}
READERS = {
    *("replace", "partition", "rpartition", "split", "rsplit", "splitlines"),
    *("removeprefix", "removesuffix", "startswith", "endswith"),
}


# -- what the source may do ------------------------------------------------------------------------


def is_plain(node):
    """Whether it makes a ValueError or a TypeError, or one of another error's type."""
    if isinstance(node, ast.Raise) and node.exc is not None:
        raised = ast.unparse(node.exc)
        return raised in {"ValueError", "TypeError"} or raised.startswith("type(")
    return isinstance(node, ast.Call) and ast.unparse(node.func) in {"ValueError", "TypeError"}


def reads_a_sentence(node):
    """Whether it takes a message to pieces, as in ``str(error).partition(":")``."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    text = ast.unparse(node.func.value)
    said = {"message", "str(error)", "str(caught)", "str(failure)", "str(exception)"}
    return node.func.attr in READERS and (text in said or text.endswith(".args[0]"))


def places(what):
    """Yield the file and the function of every node of the package of which ``what`` is true."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        tree = ast.parse(path.read_text("utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for node in filter(what, ast.walk(tree)):
            around = [one for one in functions if one.lineno <= node.lineno <= one.end_lineno]
            yield name, max(around, key=lambda one: one.lineno).name if around else ""


def test_what_refuses_a_value_says_so_in_fields():
    assert {*places(is_plain)} == PLAIN.keys()


def test_no_code_reads_a_sentence():
    assert {*places(reads_a_sentence)} <= READ.keys()


@pytest.mark.parametrize(
    ("source", "plain", "read"),
    [
        ("raise ValueError(message)", True, False),
        ("raise TypeError", True, False),
        ("raise type(error)('…') from None", True, False),
        ("return ValueError('…')", True, False),
        ("raise InvalidInput(argument='y_true', reason='is empty')", False, False),
        ("raise", False, False),
        ("str(error).replace('y_prob', name)", False, True),
        ("error.args[0].partition(': ')", False, True),
        ("message.split()", False, True),
        ("name.split()", False, False),
    ],
)
def test_the_rules_find_what_they_are_for(source, plain, read):
    nodes = list(ast.walk(ast.parse(source)))
    assert any(map(is_plain, nodes)) == plain
    assert any(map(reads_a_sentence, nodes)) == read


# -- what an error is ------------------------------------------------------------------------------

FIELDS = ("argument", "index", "value", "reason", "remedy")
ERRORS = [
    InvalidInput(argument="y_prob", reason="is empty"),
    InvalidInput(argument="y_prob", index=3, value=np.float64(70), reason="is no probability"),
    InvalidInput(argument="y_prob", index=(3, 1), value=1.5, reason="r", remedy="Do this."),
    InvalidType(argument="rng", value=None, reason="it must be a seed", remedy="Pass 0."),
]


def fields(error):
    return [getattr(error, name) for name in FIELDS]


@pytest.mark.parametrize("error", ERRORS, ids=str)
@pytest.mark.parametrize(
    "again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy]
)
def test_an_error_that_is_pickled_or_copied_keeps_all(error, again):
    other = again(error)
    assert type(other) is type(error)
    assert fields(other) == fields(error)
    assert (str(other), repr(other), other.args) == (str(error), repr(error), error.args)
    assert other.but(argument="x").value == error.value
    assert other != error  # as with Python's own exceptions


def test_an_error_that_was_raised_is_pickled_too():
    with pytest.raises(caldist.InvalidInput) as caught:
        caldist.smooth_ce([0, 1], [0.2, 70])
    error = pickle.loads(pickle.dumps(caught.value))
    assert fields(error)[:3] == ["y_prob", 1, 70]
    assert str(error) == str(caught.value)


def test_an_error_with_other_fields():
    error = ERRORS[1]
    other = error.but(argument="--score", index=None, remedy="Divide by 100.")
    assert fields(other) == ["--score", None, 70, "is no probability", "Divide by 100."]
    assert str(other) == "--score is 70.0: is no probability. Divide by 100."
    assert fields(error) == ["y_prob", 3, 70, "is no probability", ""]
    assert str(error) == "y_prob[3] is 70.0: is no probability."
    assert type(ERRORS[3].but(argument="x")) is InvalidType
    assert str(ERRORS[0].but(value=[])) == "y_prob is []: is empty."
    with pytest.raises(TypeError, match="argumnet"):
        error.but(argumnet="x")


@pytest.mark.parametrize(("index", "place"), [(None, "a"), (0, "a[0]"), ((2, 1), "a[2, 1]")])
@pytest.mark.parametrize("kind", [InvalidInput, InvalidType])
def test_the_sentence_is_made_of_the_fields(kind, index, place):
    def made(**others):
        error = kind(argument="a", index=index, **others)
        assert error.place == place
        return error

    remedy = "Do this. Or that."
    assert str(made(reason="is bad")) == f"{place} is bad."
    assert str(made(reason="is bad", remedy=remedy)) == f"{place} is bad. Do this. Or that."
    assert str(made(value=3, reason="it is bad")) == f"{place} is 3: it is bad."
    assert str(made(value=None, reason="it is bad", remedy=remedy)) == (
        f"{place} is None: it is bad. Do this. Or that."
    )
    assert made(reason="is bad").value is None
    assert made(value=3, reason="it is bad", remedy=remedy).clause == f"{place} is 3: it is bad"


def test_values_are_shown_briefly_and_as_numbers():
    assert show(np.float32(0.1)) == "0.1"
    assert show(np.str_("yes")) == show("yes") == "'yes'"
    assert len(show("x" * 1000)) == 60
    assert show("x" * 1000).endswith("...")


def test_the_clause_of_any_error():
    assert clause_of(ERRORS[2]) == "y_prob[3, 1] is 1.5: r"
    assert clause_of(ValueError("File is not a zip file.")) == "File is not a zip file"


def test_the_family_of_exceptions():
    assert issubclass(InvalidInput, ValueError)
    assert issubclass(InvalidType, TypeError)
    assert not issubclass(InvalidInput, TypeError)
    assert not issubclass(InvalidType, ValueError)
    assert issubclass(ToleranceError, ArithmeticError)
    assert issubclass(CertificateError, ValueError)
    for kind in (ToleranceError, CertificateError):
        assert not issubclass(kind, Invalid)
    for kind in (InvalidInput, InvalidType, ToleranceError, CertificateError):
        assert kind.__module__ == "caldist.errors"
        assert getattr(caldist.errors, kind.__name__) is kind
    assert not hasattr(caldist.certificates, "CertificateError")


def test_an_error_with_bounds_keeps_them():
    error = pickle.loads(pickle.dumps(ToleranceError("not close enough", 0.1, 0.2)))
    assert (str(error), error.lower, error.upper) == ("not close enough", 0.1, 0.2)


def test_a_cell_of_a_file_has_fields_and_a_place(tmp_path):
    pytest.importorskip("duckdb")
    path = tmp_path / "rows.csv"
    path.write_text("label,score\n0,0.5\n1,zz\n", "utf-8")
    with pytest.raises(InvalidInput) as refused:
        caldist.summarize(path, y_true="label", y_prob="score")
    error = refused.value
    assert (error.argument, error.index, error.value) == ("column 'score'", 1, "zz")
    assert error.place == f"{path}, line 3: column 'score'"
    assert str(error).startswith(f"{error.place} is 'zz': ")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert error.but(argument="--score").place == error.place
