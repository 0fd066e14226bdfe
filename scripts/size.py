"""Count lines of code, Python tokens and files, per folder: ``python scripts/size.py``.

Docstrings, comments and blank lines are no code. ``--write`` puts the table into
``docs/architecture.md``; ``--check`` fails if it stands there otherwise. Needs the standard library
alone.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
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


def table() -> str:
    """Return the table as Markdown: packages by size, then the sums, then the tests."""
    sizes = folders()
    tests, paper = sizes.pop("tests/"), sizes.pop("paper/")
    rows = sorted(sizes.items(), key=lambda item: (-item[1].lines, item[0]))
    rows += [
        ("**src/caldist without paper/**", _total(sizes.values())),
        ("paper/", paper),
        ("tests/", tests),
    ]
    head = "| folder | files | lines of code | tokens |\n|---|--:|--:|--:|\n"
    return head + "".join(
        f"| {name} | {size.files:,} | {size.lines:,} | {size.tokens:,} |\n" for name, size in rows
    )


def _total(sizes: Iterable[Size]) -> Size:
    files, lines, tokens = zip(*sizes, strict=True)
    return Size(sum(files), sum(lines), sum(tokens))


def main(arguments: list[str]) -> int:
    """Print the table, write it into the page, or return 1 if the page has another one."""
    if arguments not in ([], ["--write"], ["--check"]):
        print("usage: python scripts/size.py [--write | --check]", file=sys.stderr)
        return 2
    if not arguments:
        print(table(), end="")
        return 0
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    current = f"{before}{BEGIN}{table()}{END}{after}"
    if arguments == ["--write"]:
        PAGE.write_text(current, encoding="utf-8")
    elif page != current:
        print(f"{PAGE.name} has old sizes; run: python scripts/size.py --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
