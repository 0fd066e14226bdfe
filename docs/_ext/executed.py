"""Run the examples of some pages when the site is built, and show what they print and draw.

The blocks marked ``python`` of a page run one after the other, in an empty folder. Below each comes
what it printed, and the figures that it left open; those are written below ``executed/``, which
git ignores. The page itself holds no output, so none can be out of date.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

_FOLDER = Path(__file__).parent.parent / "executed"
_OPTIONAL = {"duckdb", "pandas"}  # a block that needs one of them is shown without its output
_BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n", re.MULTILINE | re.DOTALL)


@contextlib.contextmanager
def _in_an_empty_folder() -> Iterator[None]:
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)


def _words(figure: Any) -> str:
    """Return a figure in words, for people who do not see it: what its axes show."""
    axes = [
        f"{ax.get_ylabel() or 'rows'} over {ax.get_xlabel()}"
        for ax in figure.axes
        if ax.get_xlabel()
    ]
    return "Figure: " + "; ".join(dict.fromkeys(axes))


def _blocks(output: str) -> Iterator[str]:
    """Give the Markdown for each paragraph of an output.

    Sentences are broken where the page ends; columns stay below each other.
    """
    for part in re.split(r"\n\s*\n", output.strip("\n")):
        if part:
            kind = "output columns" if re.search(r"\S {2,}\S", part) else "output"
            yield f"```{{code-block}} text\n:class: {kind}\n\n{part}\n```\n"


def _drawn(page: str, number: int) -> Iterator[str]:
    """Save the open figures, and give the Markdown that shows them."""
    import matplotlib.pyplot as plt

    for at in plt.get_fignums():
        figure = plt.figure(at)
        name = f"{page.replace('/', '-')}-{number}-{at}.svg"
        figure.savefig(_FOLDER / name, metadata={"Date": None}, bbox_inches="tight")
        yield f"![{_words(figure)}](/executed/{name})"
    plt.close("all")


def run(page: str, text: str) -> str:
    """Return the text of a page with the output of each block below it."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = page  # the same figure is the same file
    names: dict[str, Any] = {"__name__": "__main__"}
    number = 0

    def with_output(found: re.Match[str]) -> str:
        nonlocal number
        number += 1
        code = compile(found["code"], f"{page}.md, block {number}", "exec")
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), warnings.catch_warnings():
                warnings.simplefilter("error")
                exec(code, names)  # noqa: S102 -- the page's own example
        except Exception as error:
            if isinstance(error, ModuleNotFoundError) and error.name in _OPTIONAL:
                return found[0]
            message = f"block {number} of {page}.md does not run: {error!r}"
            raise ExtensionError(message, error) from error
        shown = [f"{picture}\n" for picture in _drawn(page, number)]
        return "\n".join([found[0], *_blocks(printed.getvalue()), *shown])

    _FOLDER.mkdir(exist_ok=True)
    with _in_an_empty_folder():
        return _BLOCK.sub(with_output, text)


def _read(app: Sphinx, page: str, content: list[str]) -> None:
    if page in app.config.executed_pages:
        content[0] = run(page, content[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Run examples when their page is read."""
    app.add_config_value("executed_pages", [], "env", list)
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
