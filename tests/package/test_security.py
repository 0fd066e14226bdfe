"""What SECURITY.md promises: each promise has a test that is there."""

import ast
import re
from pathlib import Path

import pytest

import caldist

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "SECURITY.md"
_RUNS = {"eval", "exec", "compile"}
_UNPICKLE = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}


@pytest.mark.skipif(not PAGE.exists(), reason="only the repository has SECURITY.md")
def test_every_test_that_the_page_names_is_there():
    page = PAGE.read_text("utf-8")
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", page)
    assert len(named) > 15
    for file, name in named:
        assert f"\ndef {name}(" in (TESTS / file).read_text("utf-8"), (file, name)
    promises = [line for line in page.splitlines() if line.startswith("| ")][1:]
    assert all("::" in line.rpartition(" | ")[2] for line in promises)


def test_nothing_is_unpickled_or_evaluated():
    for path in Path(caldist.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in _RUNS, (path, node.lineno)
            if isinstance(node, ast.Import | ast.ImportFrom):
                module = getattr(node, "module", None) or ""
                names = {module, *(alias.name for alias in node.names)}
                assert not {name.partition(".")[0] for name in names} & _UNPICKLE, path
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant), path
                assert node.value.value is False, path
