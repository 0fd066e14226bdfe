"""The paper, reproduced: figures, statements, errata, table of properties.

Its table of properties is :func:`properties`, its random estimators are
:func:`estimate_kernel_ce` and :func:`estimate_surrogate_interval_ce`. ``python -m caldist.paper``
reproduces the rest. Every part computes tables without drawing anything; figures are drawn
from the tables that are saved next to them.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from caldist._util.atomic_files import write_atomically
from caldist._util.optional import how_to_install
from caldist.errors import InvalidInput
from caldist.paper import errata, figure1, figure2, lemmas, sample_complexity
from caldist.paper.common import Part
from caldist.paper.estimators import (
    KernelDraws,
    estimate_kernel_ce,
    estimate_surrogate_interval_ce,
    kernel_ce_draws,
)
from caldist.paper.properties import (
    Evidence,
    Property,
    PropertyError,
    PropertyTable,
    properties,
)

__all__ = [
    "PARTS",
    "Evidence",
    "KernelDraws",
    "Property",
    "PropertyError",
    "PropertyTable",
    "estimate_kernel_ce",
    "estimate_surrogate_interval_ce",
    "kernel_ce_draws",
    "properties",
    "run",
]

PARTS: dict[str, Part] = {
    name: Part(name, title, part.compute, part.draw, part.FULL, part.QUICK)
    for name, title, part in (
        ("figure1", "Figure 1: the temperature family", figure1),
        ("figure2", "Figure 2: the measures compared", figure2),
        ("lemmas", "Statements with an instance", lemmas),
        ("sample_complexity", "Sample complexity", sample_complexity),
        ("errata", "Errata", errata),
    )
}


def run(out: str | Path, *, only: str | None = None, quick: bool = False) -> list[Path]:
    """Reproduce the paper, or one part of it, into a folder.

    All is computed and drawn before the first file is written; each file appears whole, and the
    page ``index.html``, which shows what this run made, comes last.

    Parameters
    ----------
    out : path
        The folder; made if missing.
    only : str, optional
        The name of one part: figure1, figure2, lemmas, sample_complexity or errata.
    quick : bool
        Coarser and with fewer repetitions: seconds instead of minutes.

    Returns
    -------
    list of Path
        The files written: SVG and PNG for each figure, CSV for each table, and the page.
    """
    if only is not None and only not in PARTS:
        reason = f"the parts are {', '.join(PARTS)}"
        raise InvalidInput(argument="only", value=only, reason=reason)
    folder = Path(out)
    _check_folder(folder)
    if find_spec("matplotlib") is None:
        message = f"the figures need matplotlib: {how_to_install('report')}."
        raise ImportError(message)
    files = _make([PARTS[only]] if only else list(PARTS.values()), quick=quick)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, content in files.items():
        path = folder / name
        write_atomically(path, lambda file, content=content: file.write(content))  # type: ignore[misc]
        written.append(path)
    return written


def _check_folder(folder: Path) -> None:
    """Refuse before minutes of computing what could not be written after them."""
    present = next(path for path in (folder, *folder.parents) if path.exists())
    if not present.is_dir():
        reason, remedy = f"{str(present)!r} is a file", "Name a folder."
        raise InvalidInput(argument="out", value=str(folder), reason=reason, remedy=remedy)
    if not os.access(present, os.W_OK):
        reason = f"{str(present)!r} may not be written to"
        raise InvalidInput(argument="out", value=str(folder), reason=reason)


def _make(parts: list[Part], *, quick: bool) -> dict[str, bytes]:
    """Return the content of every file, the page last."""
    from caldist.paper import page, style  # not needed to compute

    files: dict[str, bytes] = {}
    shown = []
    for part in parts:
        section = part.compute(part.quick if quick else part.full)
        pictures = []
        for drawing in part.draw(section):
            svg, png = style.render(drawing.figure)
            files[f"{drawing.name}.svg"], files[f"{drawing.name}.png"] = svg, png
            pictures.append(page.Picture(drawing.name, drawing.caption, svg))
        for table in section.tables:
            files[f"{table.name}.csv"] = table.csv()
        shown.append(page.Shown(part.name, part.title, section, tuple(pictures)))
    files["index.html"] = page.render_page(shown, quick=quick).encode()
    return files
