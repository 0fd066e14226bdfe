"""Where tests stand: folders mirror the packages, and none is taken for what it tests."""

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

import caldist

TESTS = Path(__file__).parents[1]
PACKAGES = {path.parent.name for path in Path(caldist.__file__).parent.glob("[a-z]*/__init__.py")}
OTHERS = {"support", "stored", "package", "repository", "sklearn_", "torch_"}
FILES = sorted(TESTS.rglob("*.py"))


def test_each_folder_is_that_of_a_package():
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert folders - OTHERS <= PACKAGES
    assert {"sklearn", "torch"} <= PACKAGES  # these have an underscore here, so that


@pytest.mark.parametrize("name", ["torch", "sklearn", "data", "plots"])
def test_no_folder_of_tests_can_be_imported_as_a_package(name):
    found = find_spec(name)
    origin = [] if found is None else [found.origin, *(found.submodule_search_locations or ())]
    assert not any(TESTS in Path(place).parents for place in origin if place)


def private_packages(path):
    """Return the packages of caldist of which a file imports private modules or names."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("caldist."):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("caldist.")]
        else:
            continue
        for parts in (name.split(".") for name in names):
            if parts[1] not in {"_util", "_compiled"} and any(p[0] == "_" for p in parts[2:]):
                yield parts[1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(TESTS).as_posix())
def test_a_test_imports_private_names_of_one_package_at_most(path):
    assert len({*private_packages(path)}) <= 1
