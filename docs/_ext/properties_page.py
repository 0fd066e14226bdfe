"""Write ``properties.md``, the table of properties, when a build begins; git ignores the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from caldist.paper.properties import Property, PropertyTable, properties

TARGET = Path(__file__).resolve().parents[1] / "properties.md"

_HEAD = """\
# Properties of the measures

What `caldist.paper.properties()` knows: Table 1 of Błasiok, Gopalan, Hu and Nakkiran, "A Unifying
Theory of Distance from Calibration" (2023), for the measures of this package and with exponents.
`caldist.paper.properties().check()` runs the evidence of every cell.

{table}

- **continuous**: the value converges when the predictor does, in E|f - g|.
- **complete**: 0 on perfectly calibrated predictors. **sound**: only on those.
- **robustly complete**: at most a constant times dCE^c, with the exponent c shown; dCE is the true
  distance to calibration. **robustly sound**: at least a constant times dCE^s, with the exponent s
  shown. **consistent**: both, shown as (c, s). From predictions alone s ≥ 2c for every measure.
- **predictions only**: a function of the distribution of prediction and label, without the domain.
- **cost**: of n predictions, as implemented here.

A "no" comes with an instance, evaluated below; μ is the measure. A "yes" or an exponent is a
theorem, which `check()` tries with its constant on seeded predictors, random ones and the paper's.
Exponents are those proved: a smaller s or a larger c may hold. "Section" refers to the paper;
"From" marks what follows from its statements but is not among them.

## Where Table 1 differs

{differences}
- `mmce` is not the MMCE of Table 1: that is the kernel error of the prediction, here
  `kernel_ce (Laplace)`. The original's, and this package's, is the one of the confidence.
"""


def render() -> str:
    """Return the page."""
    table = properties()
    parts = [_HEAD.format(table=table.to_markdown(), differences=_differences(table))]
    for measure in table.measures:
        cells = [row for row in table.rows if row.measure == measure]
        lines = [_line(cell) for cell in cells if cell.property != "consistent"]
        parts.append(f"## `{measure}`\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _line(cell: Property) -> str:
    line = f"- **{cell.property}: {cell.text()}.** {cell.reason}"
    if cell.kind == "counter-example":
        line += f" *Instance:* {cell.evidence()}."
    return line


def _differences(table: PropertyTable) -> str:
    return "\n".join(
        f"- `{row.measure}`, {row.property}: {row.text()}; Table 1 says "
        f"{'yes' if row.paper else 'no'}. {row.reason}"
        for row in table.rows
        if row.paper is not None and row.paper != row.holds
    )


def write_page(_: Sphinx) -> None:
    """Write the page."""
    TARGET.write_text(render(), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the page before Sphinx reads the sources."""
    app.connect("builder-inited", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
