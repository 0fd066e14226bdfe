"""Change the package at random, and see whether a test notices.

``python scripts/mutate.py --area inference --count 20 --seed 1`` takes 20 small changes of the code
below ``src/caldist/inference``, one at a time: another comparison, operator, constant or Boolean,
``min`` for ``max``, a guard or a statement left out. For each it runs the tests that reach the
changed line, fastest first, and stops at the first failure. What survives is printed with its file
and line: write a test that fails, or, if no test can, list it in ``equivalent_mutants.txt`` beside
this script, in the form in which it is printed, with the reason in a comment.

All happens in a copy of the tree. Which tests reach which line is measured with pytest-cov, once
per test file, and kept in ``.mutate_cache``: the first run with all tests takes longer than all
tests do, ``--tests`` takes fewer files. Compiled kernels are out of reach;
``CALDIST_PURE_PYTHON=1`` runs plain ones, slowly. The package has to be installed by
``pip install -e``, so that its kernels lie in the tree.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src", "caldist")
PLAIN = os.environ.get("CALDIST_PURE_PYTHON", "") not in {"", "0"}
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".*_cache", ".hypothesis", ".venv", ".ci-venv*", "__pycache__", "build", "dist", "site"
)

OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"), ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.MatMult: ("@", "+"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "|"),
    ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"), ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}  # fmt: skip
NAMES = {
    "max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "any": "all",
    "all": "any", "floor": "ceil", "ceil": "floor", "hypot": "max", "argmax": "argmin",
    "argmin": "argmax", "nextafter": "max",
}  # fmt: skip
LEAVING = (ast.Raise, ast.Return, ast.Continue, ast.Break)


class Mutant(NamedTuple):
    """One change of one file below src/caldist, at bytes of its text."""

    path: str
    line: int
    start: int
    end: int
    new: str
    function: bool  # whether it is in one; other lines run when the module is imported

    def of(self, text: bytes) -> bytes:
        """Return the changed text."""
        return text[: self.start] + self.new.encode() + text[self.end :]

    def changes(self, text: bytes) -> bool:
        """Return whether this is another program, and one that Python reads."""
        try:
            return ast.dump(ast.parse(self.of(text))) != ast.dump(ast.parse(text))
        except SyntaxError:
            return False

    def diff(self, text: bytes) -> tuple[str, str, str]:
        """Return the file, the line that goes and the one that comes."""
        first = text.rfind(b"\n", 0, self.start) + 1
        last = text.find(b"\n", self.end)
        changed = text[first : self.start] + self.new.encode() + text[self.end : last]
        return self.path, _flat(text[first:last]), _flat(changed)


def _flat(text: bytes) -> str:
    return " ".join(text.decode().split())


# -- changes ---------------------------------------------------------------------------------------


def mutants_of(path: str, text: bytes) -> list[Mutant]:
    """Return all changes of a file, some of which may be no valid code."""
    tree = ast.parse(text)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def begin(node: Any) -> int:
        return starts[node.lineno - 1] + int(node.col_offset)

    def end(node: Any) -> int:
        return starts[node.end_lineno - 1] + int(node.end_col_offset)

    def between(left: ast.AST, right: ast.AST, operator: ast.AST) -> Iterator[tuple[int, int, str]]:
        old, new = OPERATORS[type(operator)]
        at = text.find(old.encode(), end(left), begin(right))
        if at >= 0:
            yield at, at + len(old), new

    def changes(node: Any) -> Iterator[tuple[int, int, str]]:
        whole = (begin(node), end(node)) if hasattr(node, "lineno") else (0, 0)
        match node:
            case ast.Compare():
                operands = [node.left, *node.comparators]
                for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
                    yield from between(left, right, operator)
            case ast.BinOp():
                yield from between(node.left, node.right, node.op)
            case ast.AugAssign():
                yield from between(node.target, node.value, node.op)
                yield (*whole, "pass")
            case ast.BoolOp():
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield from between(left, right, node.op)
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                yield begin(node), begin(node.operand), ""
            case ast.Constant(value=bool()):
                yield (*whole, str(not node.value))
            case ast.Constant(value=int()):
                yield (*whole, str(node.value + max(1, node.value // 10)))
            case ast.Constant(value=float()) if node.value > 1e-6 or not node.value:
                yield (*whole, repr(1.1 * node.value or 0.1))  # smaller ones only guard against 0
            case ast.Call(func=ast.Name(id=name)) if name in NAMES:
                yield begin(node.func), end(node.func), NAMES[name]
            case ast.Call(func=ast.Attribute(attr=name)) if name in NAMES:
                yield end(node.func) - len(name), end(node.func), NAMES[name]
            case ast.If() | ast.IfExp() | ast.While():
                guard = isinstance(node, ast.If) and isinstance(node.body[-1], LEAVING)
                old = text[begin(node.test) : end(node.test)].decode()
                yield begin(node.test), end(node.test), "False" if guard else f"not ({old})"
            case ast.Expr(value=ast.Call()) | ast.Continue() | ast.Break():
                yield (*whole, "pass")

    return sorted(
        Mutant(path, text.count(b"\n", 0, first) + 1, first, last, new, function)
        for node, function in _nodes(tree, function=False)
        for first, last, new in changes(node)
    )


def mutants_below(package: Path, area: str) -> list[tuple[Mutant, bytes]]:
    """Return all changes of a folder or file of the package, each with the file's text."""
    files = (package / area).rglob("*.py") if (package / area).is_dir() else [package / area]
    return [
        (mutant, text)
        for file in files
        if file.is_file() and (PLAIN or package / "kernels" not in file.parents)
        for text in [file.read_bytes()]
        for mutant in mutants_of(file.relative_to(package).as_posix(), text)
    ]


def _nodes(node: ast.AST, *, function: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Yield nodes that do something: no annotations, no texts, no messages."""
    yield node, function
    for name, value in ast.iter_fields(node):
        parts = value if isinstance(value, list) else [value]
        inside = function or (name == "body" and isinstance(node, ast.FunctionDef | ast.Lambda))
        for part in parts:
            skipped = (
                not isinstance(part, ast.AST)
                or name in {"annotation", "returns"}
                or isinstance(part, ast.JoinedStr)
                or (isinstance(part, ast.keyword) and part.arg == "strict")  # of zip
                or (name == "decorator_list" and "dataclass" in ast.unparse(part))
                or (isinstance(part, ast.If) and "TYPE_CHECKING" in ast.unparse(part.test))
            )
            if not skipped:
                yield from _nodes(part, function=inside)


# -- tests -----------------------------------------------------------------------------------------


class Reach(NamedTuple):
    """What a test file reaches: seconds of its tests, and for each source what runs each line."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[str]]]
    digests: dict[str, str]

    def tests(self, mutant: Mutant, digest: str) -> set[str]:
        """Return the tests that reach a line; the file, where that has changed since."""
        lines = self.lines.get(mutant.path, {})
        if mutant.function and self.digests.get(mutant.path) == digest:
            return set(lines.get(str(mutant.line), ()))
        return {test for tests in lines.values() for test in tests}


class Copy:
    """A copy of the tree, in which files are changed and tests run."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.tree = root, folder / "tree"
        shutil.copytree(root, self.tree, ignore=NOT_COPIED, symlinks=True)
        (folder / "coverage").write_text("[run]\nsource = caldist\n", "utf-8")
        (folder / "seconds.py").write_text(SECONDS, "utf-8")
        self.folder = folder
        paths = [str(self.tree / "src"), str(folder), os.environ.get("PYTHONPATH", "")]
        self.environment = {**os.environ, "CI": "1", "PYTHONPATH": os.pathsep.join(paths)}
        self.environment["COVERAGE_FILE"] = str(folder / "data")

    def pytest(self, *arguments: str, seconds: float | None = None) -> tuple[int | None, str]:
        """Run pytest; return its exit status, None if it took too long, and what it said."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-m", "slow or not slow", *arguments]
        process = subprocess.Popen(  # noqa: S603 -- our own command
            command, cwd=self.tree, env=self.environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            out, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, ""
        return process.returncode, out.decode(errors="replace")

    def reach(self, file: str) -> Reach:
        """Return what a test file reaches, from the cache if the file has not changed."""
        text = (self.tree / file).read_bytes()
        kind = "plain" if PLAIN else "compiled"
        cache = self.root / ".mutate_cache" / f"{kind}-{file.replace(os.sep, '-')}.json"
        digest = _digest(text)
        if cache.exists():
            kept = json.loads(cache.read_text("utf-8"))
            if kept.pop("digest") == digest:
                return Reach(**kept)
        print(f"reach of {file}", file=sys.stderr, flush=True)
        for name in ("data", "seconds.json"):
            (self.folder / name).unlink(missing_ok=True)
        config = f"--cov-config={self.folder / 'coverage'}"
        self.pytest(
            file, "-p", "seconds", "--cov=caldist", "--cov-context=test", "--cov-report=", config
        )
        found = self._measured()
        cache.parent.mkdir(exist_ok=True)
        cache.write_text(json.dumps({"digest": digest, **found._asdict()}), "utf-8")
        return found

    def _measured(self) -> Reach:
        from coverage import CoverageData  # of pytest-cov

        times = self.folder / "seconds.json"
        seconds = json.loads(times.read_text("utf-8")) if times.exists() else {}
        data = CoverageData(str(self.folder / "data"))
        data.read()
        package = self.tree / PACKAGE
        lines, digests = {}, {}
        for name in data.measured_files():
            found = {
                str(line): sorted({test.rpartition("|")[0] for test in tests} & seconds.keys())
                for line, tests in data.contexts_by_lineno(name).items()
            }
            path = Path(name).relative_to(package).as_posix()
            if any(found.values()):
                lines[path] = {line: tests for line, tests in found.items() if tests}
                digests[path] = _digest(Path(name).read_bytes())
        return Reach(seconds, lines, digests)

    def write(self, path: str, text: bytes) -> None:
        """Write a file of the package, and forget what was compiled of it."""
        file = self.tree / PACKAGE / path
        file.write_bytes(text)
        Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)


# A plugin of pytest that writes how long each test took that passed.
SECONDS = """
import json
from collections import Counter
from pathlib import Path

seconds, failed = Counter(), set()

def pytest_runtest_logreport(report):
    seconds[report.nodeid] += report.duration
    if not report.passed:
        failed.add(report.nodeid)

def pytest_sessionfinish():
    kept = {test: time for test, time in seconds.items() if test not in failed}
    Path(__file__).with_name("seconds.json").write_text(json.dumps(kept), "utf-8")
"""


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


# -- a run -----------------------------------------------------------------------------------------


def try_mutant(copy: Copy, mutant: Mutant, reaches: Sequence[Reach], limit: float) -> str:
    """Return what became of a mutant, in words that begin with killed or survived."""
    text = (copy.tree / PACKAGE / mutant.path).read_bytes()
    digest = _digest(text)
    seconds = {
        test: reach.seconds[test] for reach in reaches for test in reach.tests(mutant, digest)
    }
    tests, total = [], 0.0
    for test in sorted(seconds, key=lambda test: (seconds[test], test)):
        if total + seconds[test] <= limit:
            tests.append(test)
            total += seconds[test]
    if not seconds:
        return "survived: no test reaches it"
    if not tests:
        return "survived: every test that reaches it takes longer than the limit"
    chosen = copy.folder / "tests"
    chosen.write_text("\n".join(tests), "utf-8")
    copy.write(mutant.path, mutant.of(text))
    status, said = copy.pytest("-x", f"@{chosen}", seconds=60 + 5 * total)
    copy.write(mutant.path, text)
    if status is None:
        return "killed by the time limit"
    if status == 0:
        return f"survived {len(tests)} of {len(seconds)} tests that reach it"
    if status > 1 and copy.pytest("--collect-only", f"@{chosen}")[0]:
        message = f"pytest cannot run these tests without a change either:\n{said}"
        raise SystemExit(message)
    failed = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", said, re.MULTILINE)
    return f"killed by {failed[1] if failed else 'an error'}"


def equivalent(file: Path) -> set[tuple[str, str, str]]:
    """Read the mutants that change nothing anybody can see: three lines each."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    lines = [line for line in lines if line and not line.startswith("#")]
    return {
        (path.partition(":")[0], old.removeprefix("- "), new.removeprefix("+ "))
        for path, old, new in zip(*[iter(lines)] * 3, strict=True)
    }


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> None:
    """Sample mutants, run tests, print survivors."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--area", default="", help="a folder or file below src/caldist")
    parser.add_argument("--count", type=int, default=20, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--tests", nargs="+", default=["**/test_*.py"], help="patterns below tests")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of tests per mutant")
    options = parser.parse_args(arguments)
    known = equivalent(root / "scripts" / "equivalent_mutants.txt")
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(root, Path(folder))
        candidates = mutants_below(copy.tree / PACKAGE, options.area)
        if not candidates:
            parser.error(f"--area {options.area}: nothing to change; kernels must not be compiled")
        # By a digest, so that a change of the code leaves the other mutants of a seed as they are.
        candidates.sort(key=lambda one: _digest(f"{options.seed} {one[0].diff(one[1])}".encode()))
        tests = {
            str(file.relative_to(root))
            for name in options.tests
            for file in (root / "tests").glob(name)
        }
        reaches = [copy.reach(file) for file in sorted(tests)]
        sample = islice((one for one in candidates if one[0].changes(one[1])), options.count)
        for mutant, text in sample:
            path, old, new = diff = mutant.diff(text)
            found = (
                "equivalent" if diff in known else try_mutant(copy, mutant, reaches, options.limit)
            )
            counts[found.split()[0].strip(":")] += 1
            print(f"{path}:{mutant.line}\n- {old}\n+ {new}\n# {found}\n", flush=True)
    killed, survived = counts["killed"], counts["survived"]
    print(f"{killed} of {killed + survived} killed; {counts['equivalent']} are equivalent")


if __name__ == "__main__":
    main()
