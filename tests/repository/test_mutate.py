"""The script that changes the package finds a weak test that is planted, in a copy of the tree."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("pytest_cov")

ROOT = Path(__file__).parents[2]
LIMITS = """
def lower(value, error):
    return value - error


def upper(value, error):
    return value + error


def worst(error):
    return error or 1.0
"""
TESTS = """
from caldist.inference import limits


def test_the_lower_limit():
    assert limits.lower(3, 1) == 2


def test_the_upper_limit():  # weak: the sign may be the other one
    assert limits.upper(3, 1) > 0
"""
EQUIVALENT = """
# Never called: a stand-in for a change that no test can see.
inference/limits.py
- return error or 1.0
+ return error or 1.1
"""


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("mutate", ROOT / "scripts" / "mutate.py")
    module = sys.modules["mutate"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutate"]


@pytest.mark.slow
def test_a_planted_weak_test_is_found(script, tmp_path, capsys):
    package = tmp_path / "src" / "caldist"
    files = {
        package / "__init__.py": "",
        package / "inference" / "limits.py": LIMITS,
        package / "kernels" / "sums.py": "def add(a, b):\n    return a + b\n",
        tmp_path / "tests" / "test_limits.py": TESTS,
        tmp_path / "scripts" / "equivalent_mutants.txt": EQUIVALENT,
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    script.main(["--count", "9"], root=tmp_path)
    said = capsys.readouterr().out
    assert "limits.py:3\n- return value - error\n+ return value + error\n# killed by" in said
    assert "limits.py:7\n- return value + error\n+ return value - error\n# survived 1 of 1" in said
    assert "limits.py:11\n- return error or 1.0\n+ return error and 1.0\n# survived: no" in said
    assert said.endswith("1 of 3 killed; 1 are equivalent\n")
    assert {path: path.read_text("utf-8") for path in files} == files
    assert not list(tmp_path.rglob("*.pyc"))
    with pytest.raises(SystemExit):
        script.main(["--area", "kernels"], root=tmp_path)
    assert "--area kernels: nothing to change" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a < b <= c", {"a <= b <= c", "a < b < c"}),
        ("a not in b", {"a in b"}),
        ("(a + b) * c", {"(a - b) * c", "(a + b) / c"}),
        ("a and not b", {"a or not b", "a and b"}),
        ("f(9, 20, 0.5, 0.0, True)", {
            "f(10, 20, 0.5, 0.0, True)", "f(9, 22, 0.5, 0.0, True)", "f(9, 20, 0.55, 0.0, True)",
            "f(9, 20, 0.5, 0.1, True)", "f(9, 20, 0.5, 0.0, False)", "pass",
        }),
        ("x = max(a, b.min())", {"x = min(a, b.min())", "x = max(a, b.max())"}),
        ("a -= b", {"a += b", "pass"}),
        ("x = a if b else c", {"x = a if not (b) else c"}),
        ("def f():\n if a: return\n", {"def f():\n if False: return\n"}),
        ("def f():\n if a: b\n", {"def f():\n if not (a): b\n"}),
        ("def f(x: int = 1) -> g[2]:\n 'It is 3.'", {"def f(x: int = 2) -> g[2]:\n 'It is 3.'"}),
        ("raise ValueError(f'{a + b}')", set()),
        ("é = 'ü' + a", {"é = 'ü' - a"}),
    ],
)  # fmt: skip
def test_changes(script, code, expected):
    text = code.encode()
    mutants = [one for one in script.mutants_of("x.py", text) if one.changes(text)]
    assert {one.of(text).decode() for one in mutants} == expected
    assert all(one.path == "x.py" for one in mutants)
