"""Write what the README's examples print below them: python scripts/make_readme_output.py.

A test compares the two, so that nobody reads an output that the code does not give. Commands of the
shell find the random forest of the demo in ``rows.csv``.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import shlex
import tempfile
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
EXAMPLE = re.compile(
    r"(?P<head>^```(?P<language>python|sh)\n(?P<code>(?:(?!```).*\n)*)```\n\n```text\n)"
    r"(?P<output>(?:(?!```).*\n)*)(?=```$)",
    re.MULTILINE,
)


def printed(language: str, code: str) -> str:
    """Return what Python code, or a command of the shell, prints in a folder with ``rows.csv``."""
    from caldist.cli import main
    from caldist.datasets import load_demo

    demo = load_demo()
    rows = zip(demo.y_true.tolist(), demo.y_prob["random_forest"].tolist(), strict=True)
    out, here = io.StringIO(), Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out):
        os.chdir(folder)
        try:
            with Path("rows.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([("label", "score"), *rows])
            if language == "python":
                exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})  # noqa: S102 -- our own
            else:
                with contextlib.suppress(SystemExit):  # how a command ends
                    main(shlex.split(code)[1:])
        finally:
            os.chdir(here)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().rstrip().splitlines())


def refreshed(text: str) -> str:
    """Return the README's text with the output of each example that shows one."""
    return EXAMPLE.sub(lambda f: f["head"] + printed(f["language"], f["code"]), text)


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text(encoding="utf-8")), encoding="utf-8")
