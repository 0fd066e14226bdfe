"""Write the pages and figures of the studies from their tables when a build begins.

The tables, ``studies/*.csv``, take hours to compute and are part of the repository; git ignores
what is made from them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from studies.__main__ import STUDIES, write_stored_page

_TABLES = Path(__file__).resolve().parents[1] / "studies"


def write_pages(_: Sphinx) -> None:
    """Write the page and the figure of each study."""
    for name in STUDIES:
        write_stored_page(name, _TABLES)


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx reads the sources."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
