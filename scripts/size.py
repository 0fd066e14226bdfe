"""Count lines of code, Python tokens and files, per folder: ``python scripts/size.py``.

Docstrings, comments and blank lines are no code. ``--write`` puts a picture of the packages, in the
order in which they may import each other, into ``docs/architecture.md``; ``--check`` fails if the
page has other packages, or a number that is off by more than 5%: a change of some lines need not
touch the page. Needs the standard library alone.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "caldist"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- size: begin, python scripts/size.py --write -->\n", "<!-- size: end -->\n"
LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip


class Size(NamedTuple):
    """Numbers that add up over files."""

    files: int
    lines: int
    tokens: int


def size_of(text: str) -> Size:
    """Count one file, given as text."""
    docs = set(_docstring_lines(ast.parse(text)))
    lines: set[int] = set()
    tokens = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT and token.start[0] not in docs:
            tokens += 1
            lines.update(range(token.start[0], token.end[0] + 1))
    return Size(1, len(lines), tokens)


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield from range(first.lineno, (first.end_lineno or first.lineno) + 1)


def folders() -> dict[str, Size]:
    """Return the size of each package of caldist, of its other modules, and of the tests."""
    sizes: dict[str, Size] = {}
    for path in sorted([*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]):
        if PACKAGE in path.parents:
            parts = path.relative_to(PACKAGE).parts
            name = f"{parts[0]}/" if len(parts) > 1 else "modules"
        else:
            name = "tests/"
        found = size_of(path.read_text(encoding="utf-8"))
        sizes[name] = _total([sizes.get(name, Size(0, 0, 0)), found])
    return sizes


def layers() -> list[list[str]]:
    """Return the packages as pyproject.toml orders them; first those that it does not order."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    [ordered] = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    found = [
        [part.strip().removeprefix("caldist.") for part in re.split("[:|]", row)] for row in ordered
    ]
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"_compiled"}
    return [sorted(packages - {name for row in found for name in row}), *found]


def summary(name: str) -> str:
    """Return the first line of the docstring of a package or module."""
    path = PACKAGE / name / "__init__.py"
    path = path if path.exists() else PACKAGE / f"{name}.py"
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]


def picture() -> str:
    """Return the packages as boxes, with their lines of code and what they are."""
    sizes, boxes = folders(), []
    for row in filter(None, layers()):
        lines = []
        for name in row:
            module = PACKAGE / f"{name}.py"
            text = module.read_text(encoding="utf-8") if module.exists() else ""
            size = size_of(text) if text else sizes[f"{name}/"]
            lines.append(f"{name:13} {size.lines:5,} │ {summary(name)}")
        boxes.append(lines)
    width = max(len(line) for lines in boxes for line in lines)
    top, between, bottom = (
        f"{left}{'─' * 21}{middle}{'─' * (width - 20)}{right}\n"
        for left, middle, right in ("┌┬┐", "├┼┤", "└┴┘")
    )
    drawn = ["".join(f"│ {line:{width}} │\n" for line in lines) for lines in boxes]
    return f"```text\n{top}{between.join(drawn)}{bottom}```\n"


def table() -> str:
    """Return the sizes of the package, of what is there for the paper, and of the tests."""
    sizes = folders()
    tests, paper = sizes.pop("tests/"), sizes.pop("paper/")
    rows = [
        ("src/caldist without paper/", _total(sizes.values())),
        ("src/caldist/paper/", paper),
        ("tests/", tests),
    ]
    head = "| folder | files | lines of code | tokens |\n|---|--:|--:|--:|\n"
    return head + "".join(
        f"| {name} | {size.files:,} | {size.lines:,} | {size.tokens:,} |\n" for name, size in rows
    )


def _total(sizes: Iterable[Size]) -> Size:
    files, lines, tokens = zip(*sizes, strict=True)
    return Size(sum(files), sum(lines), sum(tokens))


def _is_near(page: str, current: str) -> bool:
    """Whether two pages have the same words, and numbers that differ by at most 5%."""
    number = re.compile(r"\d[\d,]*")
    old, new = ([int(n.replace(",", "")) for n in number.findall(text)] for text in (page, current))
    words = [re.sub(r"[\s─]+", " ", number.sub("#", text)) for text in (page, current)]
    return words[0] == words[1] and all(
        abs(a - b) <= max(5, 0.05 * b) for a, b in zip(old, new, strict=True)
    )


def main(arguments: list[str]) -> int:
    """Print the sizes, write them into the page, or return 1 if the page has other ones."""
    if arguments not in ([], ["--write"], ["--check"]):
        print("usage: python scripts/size.py [--write | --check]", file=sys.stderr)
        return 2
    if not arguments:
        for name, size in folders().items():
            print(f"{name:16} {size.files:5,} files {size.lines:7,} lines {size.tokens:9,} tokens")
        print(f"\n{table()}", end="")
        return 0
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    current = f"{before}{BEGIN}{picture()}\n{table()}{END}{after}"
    if arguments == ["--write"]:
        PAGE.write_text(current, encoding="utf-8")
    elif not _is_near(page, current):
        print(f"{PAGE.name} has old sizes; run: python scripts/size.py --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
