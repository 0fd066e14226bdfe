"""Write what the README's example prints below it: python scripts/make_readme_output.py.

A test compares the two, so that nobody reads an output that the code does not give.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
EXAMPLE = re.compile(
    r"(?P<head>^```python\n(?P<code>.*?)^```\n\n```text\n)(?P<output>.*?)(?=^```$)",
    re.MULTILINE | re.DOTALL,
)


def printed(code: str) -> str:
    """Return what the code prints, run in an empty folder."""
    out, here = io.StringIO(), Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out):
        os.chdir(folder)
        try:
            exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})  # noqa: S102 -- our own
        finally:
            os.chdir(here)
    return out.getvalue()


def refreshed(text: str) -> str:
    """Return the README's text with the output of each example that shows one."""
    return EXAMPLE.sub(lambda found: found["head"] + printed(found["code"]), text)


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text(encoding="utf-8")), encoding="utf-8")
