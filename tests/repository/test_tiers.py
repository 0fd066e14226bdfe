"""The fast tier: it has a test of every public function, and fewer examples."""

import ast
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

import caldist
from caldist.kernels.loader import COMPILED

TESTS = Path(__file__).parents[1]


def is_slow(node):
    """Whether a test or, by ``pytestmark``, a file is marked."""
    marks = getattr(node, "decorator_list", [])
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
        marks = [node.value]
    return any("pytest.mark.slow" in ast.unparse(mark) for mark in marks)


@cache
def names_in_fast_tests():
    """Return the names and attributes in the code of tests, imports left out."""
    found = set()
    for path in TESTS.rglob("test_*.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        if any(is_slow(node) for node in body if isinstance(node, ast.Assign)):
            continue
        for node in body:
            if not is_slow(node):
                parts = list(ast.walk(node))
                found |= {part.attr for part in parts if isinstance(part, ast.Attribute)}
                found |= {part.id for part in parts if isinstance(part, ast.Name)}
    return found


PACKAGES = [f"caldist.{name}" for name in dir(caldist) if find_spec(f"caldist.{name}")]


@pytest.mark.parametrize("place", ["caldist", *PACKAGES])
def test_every_public_function_is_in_a_fast_test(place):
    module = pytest.importorskip(place, exc_type=ImportError)
    functions = {name for name in module.__all__ if not isinstance(getattr(module, name), type)}
    assert sorted(functions - names_in_fast_tests()) == []


@pytest.mark.skipif(not COMPILED, reason="plain kernels have 15 examples in both tiers")
def test_the_fast_tier_has_fewer_examples(request):
    fast = request.config.option.markexpr == "not slow"
    assert settings().max_examples == (25 if fast else 150)


@pytest.mark.slow
def test_a_run_of_all_tests_starts_workers_and_these_start_none(tmp_path):
    conftest = Path(__file__).parents[1] / "conftest.py"
    (tmp_path / "conftest.py").write_text(conftest.read_text("utf-8"), "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = few", "utf-8")
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "test_worker.py").write_text(
        "import os\n\ndef test_name():\n    assert os.environ['PYTEST_XDIST_WORKER'][:2] == 'gw'\n",
        "utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=120
    )
    assert "1 passed" in done.stdout, done.stdout
