"""Write ``evidence.md``, what is tested and how far, when a build begins; git ignores the page.

Everything is counted in the sources of the tests and in the tables of the studies; nothing is run.
"""

from __future__ import annotations

import ast
import math
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from studies.runs import read_rows

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "docs" / "evidence.md"
TESTS = ROOT / "tests"
INSTANCES = {"distribution", "uniform_bins", "instance", "softmax", "ring"}  # not oracles
ERRORS = 3  # standard errors that a share may be off before it counts

_PAGE = """\
# What is tested, and how far

Counted in the tests and in the results of the studies when this page was built. {tests:,} test
functions, and among them properties that Hypothesis tries on
{examples} examples each, unless they say fewer. In CI the examples are always the same; an
exploring run, and the fuzzer from a new seed every day, try others.

## Numbers against oracles
{oracles} ways to the same numbers that share no code with the package: linear programs, brute
force, rational arithmetic, dense sums. {families} families of instances, easy and adversarial.

{oracle_table}

## Theorems as properties
Each statement of the papers that relates measures is quoted in `tests/test_theorems.py`, with its
proved constant: {theorems} properties, {theorem_examples:,} examples a run.

{theorem_list}

## Faults injected
- Certificates with every field changed, saved files with every bit flipped, bad labels, predictions
  and weights: all are refused, with an error that names the argument, the value and its place
  (`test_certificates.py`, `test_saved_files.py`, `test_bad_input.py`).
- {promises} tests stand behind the promises of `SECURITY.md`.
- {planted} faults planted in the package are found by the fuzzer, one by each of its targets, and
  found again by the command that it prints.

## Statements about the population
Lines "below" are those whose share is worse than the level promises by more than {errors} standard
errors of the study: of a thousand exact ones, one or two. Comparisons of models with one event or
four are below, which is too few for any interval. So is the classic law of Hosmer and Lemeshow,
which stands there beside the drawn labels that replace it.

{study_table}

## Platforms
The release workflow builds {wheels} wheels and tests each where it was built: CPython {pythons} on
{platforms}. `.ci/run` tests Python 3.11 in full, and
the core of the tests with the least versions of what is required and on Python 3.12 and 3.13;
with the least versions also the engines but dask, and scikit-learn.
Nothing is claimed for interpreters without a global lock.
"""


def trees() -> dict[str, ast.Module]:
    """Return the syntax of each test file by its path below ``tests``."""
    return {
        path.relative_to(TESTS).as_posix(): ast.parse(path.read_text("utf-8"))
        for path in sorted(TESTS.rglob("*.py"))
    }


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yield the tests of a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


def is_property(test: ast.FunctionDef) -> bool:
    """Whether Hypothesis draws its examples."""
    return any(
        isinstance(part, ast.Name) and part.id == "given"
        for decorator in test.decorator_list
        for part in ast.walk(decorator)
    )


def examples() -> int:
    """Return how many examples all tests try, the slow tier included, on compiled kernels."""
    text = (TESTS / "conftest.py").read_text("utf-8")
    return int(re.search(r"^EXAMPLES, .* = (\d+),", text, re.MULTILINE)[1])  # type: ignore[index]


def families(tree: ast.Module) -> int:
    """Return how many families of instances the tests draw from."""
    return next(
        len(node.value.elts)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
        if isinstance(node.targets[0], ast.Name) and node.targets[0].id == "FAMILIES"
    )


def first_sentence(node: ast.FunctionDef) -> str:
    """Return what a docstring says first."""
    text = " ".join((ast.get_docstring(node) or "").split())
    return re.split(r"(?<=\.) (?=[A-Z])", text)[0].rstrip(".")


def oracle_rows(parsed: dict[str, ast.Module]) -> list[tuple[str, str, int, int]]:
    """Return name, meaning, tests and properties of each oracle that a test compares with."""
    rows = []
    for module in ("oracles", "class_oracles"):
        for node in parsed[f"support/{module}.py"].body:
            if not isinstance(node, ast.FunctionDef) or not ast.get_docstring(node):
                continue
            if node.name in INSTANCES:
                continue
            users = [
                test
                for tree in parsed.values()
                if _imported(tree, module)
                for test in functions(tree)
                if _uses(test, node.name)
            ]
            if users:
                count = sum(map(is_property, users))
                rows.append((f"{module}.{node.name}", first_sentence(node), len(users), count))
    return rows


def _imported(tree: ast.Module, module: str) -> bool:
    return any(
        alias.name == module
        for node in tree.body
        if isinstance(node, ast.Import)
        for alias in node.names
    )


def _uses(test: ast.FunctionDef, name: str) -> bool:
    return any(
        isinstance(part, ast.Attribute)
        and part.attr == name
        and isinstance(part.value, ast.Name)
        and part.value.id == "oracles"
        for part in ast.walk(test)
    )


def below(share: float, level: float, count: int) -> bool:
    """Whether a share of right statements is below its level by more than the study's noise."""
    return share < level - ERRORS * math.sqrt(level * (1 - level) / count)


def study_rows() -> list[tuple[str, int, int, int, str]]:
    """Return for each study with a promise: what it is, lines, data sets, lines below and where."""
    read = {
        name: read_rows(ROOT / "docs" / "studies" / f"{name}.csv")
        for name in ("coverage", "power", "multiclass")
    }
    kept = [
        (
            "[intervals contain the truth](studies/coverage.md)",
            [
                (
                    (float(row["coverage"]), float(row["level"]), int(row["data_sets"])),
                    f"{row['law']} of {row['rows']} rows, events: {row['events']}",
                )
                for row in read["coverage"]
            ],
        ),
        (
            "[tests reject calibrated models no more often than they say](studies/power.md)",
            [
                (
                    (
                        1 - float(row["rejected"]) / float(row["data_sets"]),
                        1 - float(row["level"]),
                        int(row["data_sets"]),
                    ),
                    row["test"],
                )
                for row in read["power"]
                if row["kind"] == "size"
            ],
        ),
        (
            "[limits for several classes, each end](studies/multiclass.md)",
            [
                ((1 - float(row[side]), 0.95, int(row["data_sets"])), row["law"])
                for row in read["multiclass"]
                for side in ("lower_misses", "upper_misses")
            ],
        ),
    ]
    rows = []
    for name, lines in kept:
        where = [place for line, place in lines if below(*line)]
        count = sum(line[-1] for line, _ in lines)
        rows.append((name, len(lines), count, len(where), "; ".join(sorted(set(where)))))
    return rows


def facts() -> dict[str, Any]:
    """Count everything."""
    parsed = trees()
    tests = [test for tree in parsed.values() for test in functions(tree)]
    oracles = oracle_rows(parsed)
    theorems = [test for test in functions(parsed["test_theorems.py"]) if is_property(test)]
    with (ROOT / "pyproject.toml").open("rb") as file:
        builds = tomllib.load(file)["tool"]["cibuildwheel"]["build"]
    pythons = [f"3.{build.removeprefix('cp3').removesuffix('-*')}" for build in builds]
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    platforms = re.findall(r"- \{name: ([^,]+),", workflow)
    kinds = sum(2 if name.startswith("Linux") else 1 for name in platforms)
    return {
        "tests": len(tests),
        "examples": examples(),
        "oracles": len(oracles),
        "families": families(parsed["support/strategies.py"]),
        "oracle_table": _table(("oracle", "what it is", "tests", "of them properties"), oracles),
        "theorems": len(theorems),
        "theorem_examples": len(theorems) * examples(),
        "theorem_list": "\n".join(f"- {first_sentence(test)} (`{test.name}`)" for test in theorems),
        "promises": len(set(re.findall(r"`[\w/]+\.py::\w+`", _text("SECURITY.md")))),
        "planted": sum(
            test.name.endswith("_is_found") for test in functions(parsed["repository/test_fuzz.py"])
        ),
        "errors": ("no", "one", "two", "three")[ERRORS],
        "study_table": _table(("promise", "lines", "data sets", "below", "where"), study_rows()),
        "pythons": f"{pythons[0]} to {pythons[-1]}",
        "platforms": ", ".join(platforms) + " (Linux: glibc and musl)",
        "wheels": len(pythons) * kinds,
    }


def _text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    cells = (
        [f"{cell:,}" if isinstance(cell, int) else cell.replace("|", r"\|") for cell in line]
        for line in lines
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def render() -> str:
    """Return the page."""
    return _PAGE.format(**facts())


def write_page(_: Sphinx) -> None:
    """Write the page."""
    TARGET.write_text(render(), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the page before Sphinx reads the sources."""
    app.connect("builder-inited", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
