"""Trace which files three calls go through: ``python scripts/walks.py``.

``--write`` puts the walks into ``docs/architecture.md``; ``--check`` fails if the page has others.
Each call runs in a process of its own, on 300 rows of the demo's data, with plain kernels, because
compiled functions cannot be traced, and in one thread, so that the order is always the same.
``_util/`` is left out, and so is what happens while modules are imported. Needs DuckDB and the
extra ``report``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- walks: begin, python scripts/walks.py --write -->\n", "<!-- walks: end -->\n"
LEFT_OUT = ("_util/", "kernels/_shim.py")  # the second stands for Cython where it is not installed
ROWS = 300
PREPARED = f"""
import caldist
demo = caldist.datasets.load_demo()
y_true, y_prob = demo.y_true[:{ROWS}], demo.y_prob["random_forest"][:{ROWS}]
"""
FILE = (
    PREPARED
    + """
import csv, pathlib
with pathlib.Path("rows.csv").open("w", newline="") as file:
    csv.writer(file).writerows([("label", "score"), *zip(y_true.tolist(), y_prob.tolist())])
from caldist.cli import main
"""
)
WALKS = {  # the call as the page names it: what comes before, and the call
    "caldist.smooth_ce(y_true, y_prob)": (PREPARED, "caldist.smooth_ce(y_true, y_prob)"),
    "caldist.confidence_interval(y_true, y_prob)": (
        PREPARED,
        "caldist.confidence_interval(y_true, y_prob)",
    ),
    "caldist report rows.csv --label label --score score --out report.html": (
        FILE,
        "main('report rows.csv --label label --score score -o report.html'.split())",
    ),
}


class Walk:
    """A profiler that notes, for each file of the package, the first function called in it."""

    def __init__(self, package: Path) -> None:
        self.package = f"{package}{os.sep}"
        self.first: dict[str, str] = {}
        self.importing = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Take one event of ``sys.setprofile``."""
        name, file = frame.f_code.co_name, frame.f_code.co_filename
        if not file.startswith(self.package):
            return
        if name == "<module>":
            self.importing += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not self.importing and not name.startswith("<"):
            path = Path(file.removeprefix(self.package)).as_posix()
            self.first.setdefault(path, frame.f_code.co_qualname.replace(".<locals>", ""))

    def lines(self) -> str:
        """Return a line for each file, in the order of the calls."""
        shown = {path: name for path, name in self.first.items() if not path.startswith(LEFT_OUT)}
        width = max(map(len, shown))
        return "".join(f"{path:{width}}  {name}\n" for path, name in shown.items())


def trace(name: str) -> str:
    """Make one of the calls in this process, and return its lines."""
    import caldist

    before, call = WALKS[name]
    names: dict[str, object] = {}
    exec(before, names)  # noqa: S102 -- our own code
    walk = Walk(Path(caldist.__file__).parent)
    sys.setprofile(walk)
    try:
        exec(call, names)  # noqa: S102
    except SystemExit:
        pass  # how a command ends
    finally:
        sys.setprofile(None)
    return walk.lines()


def traced(name: str) -> str:
    """Make one of the calls in a process of its own, in an empty folder, and return its lines."""
    environment = os.environ | {"CALDIST_PURE_PYTHON": "1", "CALDIST_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--trace", name]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(  # noqa: S603 -- our own code
            command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd=folder, env=environment,
        )  # fmt: skip
    if done.returncode:
        sys.exit(done.stdout)
    return done.stdout.partition(BEGIN)[2]


def walks() -> str:
    """Return all walks as Markdown."""
    with ThreadPoolExecutor() as pool:
        found = zip(WALKS, pool.map(traced, WALKS), strict=True)
        return "\n".join(f"`{name}`\n\n```text\n{lines}```\n" for name, lines in found)


def main(arguments: list[str]) -> int:
    """Print the walks, write them into the page, or return 1 if the page has others."""
    if arguments[:1] == ["--trace"]:
        lines = trace(arguments[1])
        print(f"{BEGIN}{lines}", end="")  # below what the call prints
        return 0
    if arguments not in ([], ["--write"], ["--check"]):
        print("usage: python scripts/walks.py [--write | --check]", file=sys.stderr)
        return 2
    if not arguments:
        print(walks(), end="")
        return 0
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    current = f"{before}{BEGIN}{walks()}{END}{after}"
    if arguments == ["--write"]:
        PAGE.write_text(current, encoding="utf-8")
    elif page != current:
        print(f"{PAGE.name} has old walks; run: python scripts/walks.py --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
