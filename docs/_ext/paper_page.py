"""Reproduce the paper when a build begins: the site has it as ``paper/index.html``.

It is the quick reproduction, of seconds; ``python -m caldist.paper`` makes the whole one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from caldist import paper

FOLDER = Path(__file__).resolve().parents[1] / "copied"  # to the root of the site


def write_pages(_: Sphinx) -> None:
    """Write the page, its figures and its tables."""
    paper.run(FOLDER / "paper", quick=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the page before Sphinx reads the sources."""
    FOLDER.mkdir(parents=True, exist_ok=True)  # Sphinx looks for it before the build begins
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
