"""How the figures look: line styles that are told apart in grey, and labels at the lines."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["LINES", "figure", "label_ends", "render", "style"]

_RC: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.3,
    "svg.fonttype": "path",
    "svg.hashsalt": "caldist",  # the same file from the same numbers
}

# Each measure's colour (also apart in lightness) and dash, the same in all figures.
LINES: dict[str, dict[str, Any]] = {
    "binnedECE": {"color": "#8a8a8a", "linestyle": "-"},
    "binnedECEw": {"color": "#8a8a8a", "linestyle": (0, (4, 1.5))},
    "SintCE": {"color": "#b5490b", "linestyle": "-"},
    "intCE": {"color": "#b5490b", "linestyle": (0, (4, 1.5))},
    "kCE": {"color": "#3f93c8", "linestyle": "-"},
    "smCE": {"color": "#14375e", "linestyle": "-"},
    "ldCE": {"color": "black", "linestyle": (0, (1, 1))},
}


def figure(width: float, height: float) -> Figure:
    """Return an empty figure of that many inches."""
    from matplotlib.figure import Figure  # only drawing needs it

    return Figure(figsize=(width, height), layout="constrained")


def style() -> Any:
    """Return a context in which all figures are drawn and saved."""
    import matplotlib as mpl  # only drawing needs it

    return mpl.rc_context(_RC)


def label_ends(axes: Axes, x: float, heights: Mapping[str, float], gap: float = 0.065) -> None:
    """Write the name of each line at its right end, ``gap`` of the axes' height apart.

    The limits of the axes must have been set.
    """
    to_axes = axes.transAxes.inverted()
    share = {
        name: float(to_axes.transform(axes.transData.transform((x, height)))[1])
        for name, height in heights.items()
    }
    floor = -1.0
    for name in sorted(share, key=share.__getitem__):
        floor = max(share[name], floor + gap)
        axes.annotate(
            name, (x, floor), xycoords=axes.get_xaxis_transform(), xytext=(4, 0),
            textcoords="offset points", va="center", color=LINES[name]["color"],
            annotation_clip=False,
        )  # fmt: skip


def render(drawn: Figure) -> tuple[bytes, bytes]:
    """Return the figure as SVG and as PNG."""
    svg, png = io.BytesIO(), io.BytesIO()
    with style():
        drawn.savefig(svg, format="svg", metadata={"Date": None})
        drawn.savefig(png, format="png", dpi=160, metadata={"Software": None})
    return svg.getvalue(), png.getvalue()
