"""The package as a whole: names, imports, metadata, limits that the project sets itself."""

import ast
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import typing
from importlib.metadata import metadata, version
from pathlib import Path

import pytest

import caldist
from caldist.kernels import loader
from public_names import SUBMODULES, public

ROOT = Path(__file__).parents[2]


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | environment,
    ).stdout.strip()


def test_the_version_is_written_once():
    assert caldist.__version__ == version("caldist")
    assert metadata("caldist")["License-Expression"] == "BSD-3-Clause"


def test_show_versions(capsys):
    caldist.show_versions()
    printed = capsys.readouterr().out
    for word in ("caldist: ", "kernels: ", "python: ", "numpy: "):
        assert word in printed


def test_importing_caldist_imports_nothing_heavy():
    heavy = "scipy pandas polars pyarrow duckdb dask torch matplotlib sklearn click tqdm narwhals"
    code = (
        "import sys, caldist; caldist.smooth_ce([0, 1], [0.2, 0.7]);"
        f"print([m for m in {heavy.split()!r} if m in sys.modules])"
    )
    assert run(code) == "[]"


def test_importing_caldist_needs_no_kernels():
    code = """import sys
for name in ("kernels", "_compiled", "measures", "data.sorting"):
    sys.modules[f"caldist.{name}"] = None
import caldist"""
    assert run(code) == ""


def test_the_environment_variable_selects_plain_kernels():
    code = "import caldist; from caldist.kernels import loader; print(loader.COMPILED)"
    assert run(code, CALDIST_PURE_PYTHON="1") == "False"


def test_plain_kernels_need_no_cython():
    code = (
        "import sys; sys.modules['cython'] = None; import caldist;"
        "print(caldist.smooth_ce([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]))"
    )
    assert run(code, CALDIST_PURE_PYTHON="1") == "0.03125"


@pytest.mark.skipif("CALDIST_REQUIRE_COMPILED" not in os.environ, reason="only where it is set")
def test_kernels_are_compiled_where_that_is_required():
    expected = "CALDIST_PURE_PYTHON" not in os.environ
    assert expected == loader.COMPILED


def test_every_kernel_is_offered_by_the_dispatcher():
    sources = (ROOT / "src" / "caldist" / "kernels").glob("*.py")
    names = {path.stem for path in sources if not path.name.startswith("_")} - {"arrays", "loader"}
    assert names <= set(loader.__all__)
    for name in names:
        assert getattr(loader, name)


def test_public_functions_are_documented_in_full():
    for name, thing in public().items():
        if name.startswith(("engines.", "paper.run")):  # these refer to others
            continue
        if inspect.isfunction(thing) or isinstance(thing, caldist.measures.Measure):
            doc = inspect.getdoc(thing) or ""
            for parameter in inspect.signature(thing).parameters:
                described = re.search(rf"(\*\*|\b){parameter}\b( :|``|\n|, )", doc)
                assert described or "optimal_partition" in name, (name, parameter)


def test_options_are_keyword_only():
    for name, thing in public().items():
        if (inspect.isfunction(thing) or isinstance(thing, caldist.measures.Measure)) and next(
            iter(inspect.signature(thing).parameters), ""
        ) == "y_true":
            for parameter in inspect.signature(thing).parameters.values():
                is_data = parameter.name.startswith(("y_true", "y_prob"))
                positional = parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
                assert positional == is_data, (name, parameter)


def test_every_module_says_what_it_holds():
    for path in (ROOT / "src").rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), path


def test_set_up_commands_stand_in_the_readme():
    text = (ROOT / "README.md").read_text("utf-8")
    lines = text.splitlines()
    assert lines.count('pip install ".[report]" && caldist demo') == 1
    assert lines.count('pip install ".[test]" && pytest') == 1
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert [code for _, code in blocks if "pip " in code] == [
        'pip install ".[report]" && caldist demo\n',  # alone, and as it is typed
        'pip install ".[test]" && pytest\n',
    ]
    assert text.count("pip install") == 3
    [sentence] = [line for line in lines if "`pip install caldist`" in line]
    assert "from the first release on" in sentence
    assert "In a checkout" in text.split("pip install")[0]


@pytest.mark.slow
def test_the_readme_shows_what_its_examples_print():
    name = "make_readme_output"
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = (ROOT / "README.md").read_text("utf-8")
    python, shell = script.EXAMPLE.finditer(text)
    assert len(python["code"].split("\n\n")[1].splitlines()) == 5  # six lines, with the import
    assert shell["code"].startswith("caldist measure rows.csv ")
    assert python["output"]
    assert shell["output"]
    assert script.refreshed(text) == text, "run python scripts/make_readme_output.py"


def test_a_function_and_what_it_returns_are_both_public():
    """The types of results that are named in signatures can be imported from where people are."""
    for name, thing in public().items():
        if not inspect.isfunction(thing):
            continue
        returned = re.findall(r"[A-Z]\w+", str(inspect.signature(thing).return_annotation))
        known = {address.rpartition(".")[2] for address in public()}
        for kind in set(returned) - {
            "Vector",
            "Labels",
            "Summary",
            "NDArray",
            "Callable",
            "Path",
            "Any",
            "None",
        }:
            assert kind in known, (name, kind)


@pytest.mark.slow
def test_misspelt_names_are_errors_for_type_checkers(tmp_path):
    code = "import caldist\n\ncaldist.smooth_ce([0], [0.5])\ncaldist.smoth_ce([0], [0.5])\n"
    (tmp_path / "code.py").write_text(code, "utf-8")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), "code.py"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT / "src")},
    ).stdout
    assert 'code.py:4: error: Module has no attribute "smoth_ce"' in found
    assert "code.py:3" not in found


def test_what_methods_and_attributes_return_is_public():
    """Of every public class and function, in every public module."""
    modules = [caldist, *(getattr(caldist, name) for name in SUBMODULES)]
    public = {
        id(item) for module in modules for item in (getattr(module, n) for n in module.__all__)
    }
    things = [
        (f"{module.__name__}.{name}", getattr(module, name))
        for module in modules
        for name in module.__all__
        if not name.startswith("__")
    ]
    for name, thing in things:
        for where, kind in returned_types(name, thing):
            if kind.__module__.startswith("caldist."):
                assert id(kind) in public, (where, kind)


def returned_types(name, thing):
    """Give the classes in what a function, or the public parts of a class, return or hold."""
    if inspect.isfunction(thing):
        yield from ((name, kind) for kind in classes_in(hints(thing).get("return")))
    elif (
        inspect.isclass(thing) and thing is not caldist.measures.Measure
    ):  # which others are made from
        for attribute, hint in hints(thing).items():
            if not attribute.startswith("_"):
                yield from ((f"{name}.{attribute}", kind) for kind in classes_in(hint))
        for attribute, member in vars(thing).items():
            plain = getattr(member, "__func__", getattr(member, "fget", None)) or member
            if not attribute.startswith("_") and inspect.isfunction(plain):
                found = classes_in(hints(plain).get("return"))
                yield from ((f"{name}.{attribute}", kind) for kind in found)


def hints(thing):
    """Return the annotations as types; those that are for type checkers only have none."""
    try:
        return typing.get_type_hints(thing)
    except (NameError, TypeError):
        return {}


def classes_in(hint):
    """Give the classes that a type is made of."""
    if inspect.isclass(hint) and not typing.get_args(hint):
        yield hint
    for part in typing.get_args(hint):
        yield from classes_in(part)
