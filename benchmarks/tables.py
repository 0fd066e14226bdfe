"""Tables as text for the terminal and as a Markdown page."""

from __future__ import annotations

import datetime as dt
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import caldist
from caldist.kernels import loader

MISS = "MISS"


@dataclass(frozen=True)
class Table:
    """Rows of cells under a header, with a note below."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def as_text(self) -> str:
        """Return it in aligned columns."""
        lines = [self.header, *self.rows]
        width = [max(len(line[k]) for line in lines) for k in range(len(self.header))]
        text = ["  ".join(map(str.ljust, line, width)).rstrip() for line in lines]
        text.insert(1, "  ".join("-" * w for w in width))
        return "\n".join([self.title, "", *text, "", self.note]).rstrip() + "\n"

    def as_markdown(self) -> str:
        """Return it as a section of a Markdown page, the misses in bold."""
        lines = [f"| {' | '.join(self.header)} |", f"|{'---|' * len(self.header)}"]
        for row in self.rows:
            cells = [f"**{cell}**" if MISS in cell else cell for cell in row]
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join([f"## {self.title}", "", *lines, "", self.note]).rstrip() + "\n"


def number(value: float) -> str:
    """Return about three digits of a number."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def size_name(n: int) -> str:
    """Return 1e6 for a million; other numbers with commas."""
    exponent = len(str(n)) - 1
    return f"1e{exponent}" if n == 10**exponent and n >= 1000 else f"{n:,}"


def verdict(kept: bool) -> str:  # noqa: FBT001
    """Say whether a target is kept."""
    return "ok" if kept else MISS


def machine() -> list[str]:
    """Describe where the times were taken."""
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        names = {
            line.split(":", 1)[1].strip() for line in cpuinfo.split("\n") if "model name" in line
        }
        cpu = ", ".join(sorted(names))
    except OSError:
        cpu = ""
    kernels = "compiled" if loader.COMPILED else "run as plain Python"
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    return [
        f"CPU: {cpu or platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        f"System: {platform.platform()}",
        f"{versions}, caldist {caldist.__version__} with kernels {kernels}",
        f"Date: {dt.datetime.now(dt.UTC):%Y-%m-%d}",
    ]


def page(tables: Sequence[Table], arguments: Sequence[str]) -> str:
    """Return the Markdown page."""
    command = " ".join(["python -m benchmarks", *arguments])
    lines = ["# Benchmarks", "", *(f"- {line}" for line in machine()), ""]
    lines += ["Run again with:", "", "```", command, "```", ""]
    return "\n".join(lines) + "\n" + "\n".join(table.as_markdown() for table in tables)
