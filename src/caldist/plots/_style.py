"""How the displays look: one palette, told apart in grey too, set on the given axes alone."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from caldist._util.optional import require
from caldist._util.types import Vector
from caldist.errors import InvalidInput, InvalidType

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


Colour = tuple[float, float, float]
DARK, RUST, GREY = "#14375e", "#b5490b", "0.4"

# Colour, dash and marker of the first, second, … model: any one of the three tells them apart.
_STYLES: tuple[tuple[str, Any, str], ...] = (
    (DARK, "-", "o"),
    (RUST, (0, (5, 1.6)), "s"),
    ("#3f93c8", (0, (1.2, 1.2)), "^"),
    ("#6d4c8d", (0, (6, 1.5, 1.2, 1.5)), "D"),
    ("#2e7d57", (0, (3, 1, 1, 1, 1, 1)), "v"),
    ("#8a8a8a", (0, (8, 2)), "P"),
)
_MARK = "\u200b"  # of the labels of our lines: an invisible character
_SMALL = 2.2  # inches of axes, labels included, with room for three ticks
_LETTER = 0.07  # inches of a letter there
_LONGEST = 34  # characters of a name that are shown


def model_style(at: int) -> dict[str, Any]:
    """Return how the line of the model number ``at`` looks."""
    colour, dash, marker = _STYLES[at % len(_STYLES)]
    return {
        "color": colour, "linestyle": dash, "linewidth": 1.5, "marker": marker, "markersize": 4.2,
        "markerfacecolor": "white", "markeredgewidth": 1.0,
    }  # fmt: skip


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given axes, or new ones in a figure of that many inches."""
    if ax is not None:
        from matplotlib.axes import Axes  # given axes, so it is loaded

        if not isinstance(ax, Axes):
            reason = f"is of type {type(ax).__name__}, but it must be matplotlib axes or None"
            raise InvalidType(argument="ax", reason=reason)
        return ax
    pyplot = require("matplotlib.pyplot", extra="report")
    made: Axes = pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    return made


def plain_axes(ax: Axes) -> None:
    """Take away the lines above and on the right, and thin the others."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_linewidth(0.7)
    ax.tick_params(width=0.7, labelsize="small")


def unit_ticks(axis: Any, lower: float = 0.0, upper: float = 1.0) -> None:
    """Put ticks at the quarters from 0 to 1, or of another range; on small axes at the halves."""
    parts = 2 if has_few_ticks(axis) else 4
    places = [lower + (upper - lower) * part / parts for part in range(parts + 1)]
    axis.set_ticks(places, [f"{place:.6g}" for place in places])


def has_few_ticks(axis: Any) -> bool:
    """Return whether an axis is too short for more than some ticks."""
    width, height = _inches(axis.axes)
    return (width if axis.axis_name == "x" else min(width, height)) < _SMALL


def _inches(ax: Axes) -> tuple[float, float]:
    """Return how wide and how high the axes are, before the words about them are laid out."""
    box, figure = ax.get_window_extent(), ax.get_figure(root=True)
    assert figure is not None  # noqa: S101 -- axes are of a figure
    return box.width / figure.dpi, box.height / figure.dpi


def is_narrow(ax: Axes) -> bool:
    """Return whether there is room for few ticks and short words only."""
    return _inches(ax)[0] < _SMALL


def fit(ax: Axes, words: Iterable[Any]) -> None:
    """On narrow axes let words be smaller and take more lines."""
    if not is_narrow(ax):
        return
    width, height = _inches(ax)
    places = [(ax.xaxis.label, width), (ax.yaxis.label, height), *((one, width) for one in words)]
    for text, room in places:
        text.set_fontsize("x-small")
        text.set_text(fill(text.get_text(), max(10, int(room / _LETTER))))


def tint(ax: Axes, colour: str, share: float) -> Colour:
    """Return what the axes look like under so much of a colour: opaque, since EPS is."""
    front, back = _seen(ax, colour), _background(ax)
    red, green, blue = (
        share * one + (1 - share) * other for one, other in zip(front, back, strict=True)
    )
    return red, green, blue


def _background(ax: Axes) -> Colour:
    """Return the colour behind everything; that of paper where the axes let it through."""
    from matplotlib.colors import to_rgba  # only drawing needs it

    red, green, blue, opaque = to_rgba(ax.get_facecolor())
    return (red, green, blue) if opaque else (1.0, 1.0, 1.0)


def _lightness(colour: Colour) -> float:
    """Return how light a colour is printed in grey, from 0 to 1."""
    return 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]


def _seen(ax: Axes, colour: Any) -> Colour:
    """Return the colour, or a lighter one where a style sheet makes the axes dark."""
    from matplotlib.colors import to_rgb  # only drawing needs it

    rgb = to_rgb(colour)
    if _lightness(_background(ax)) > 0.5 or _lightness(rgb) > 0.5:
        return rgb
    red, green, blue = (0.45 * part + 0.55 for part in rgb)
    return red, green, blue


def lighten(ax: Axes, others: Iterable[Any] = ()) -> None:
    """Make lines and words lighter where the axes are dark."""
    if _lightness(_background(ax)) > 0.5:
        return
    for artist in [*ax.lines, *ax.texts, *others]:
        for name in ("color", "markeredgecolor"):
            if hasattr(artist, f"get_{name}"):
                getattr(artist, f"set_{name}")(_seen(ax, getattr(artist, f"get_{name}")()))


def halo(ax: Axes, x: Vector, y: Vector, where: NDArray[np.bool_], at: int) -> None:
    """Put a broad shade under the pieces of a model's curve that end or start where it says."""
    some = where.copy()
    some[1:] |= where[:-1]
    ax.plot(
        x, np.where(some, y, np.nan), color=tint(ax, model_style(at)["color"], 0.3), zorder=2,
        linewidth=6, solid_capstyle="butt",
    )  # fmt: skip


def halo_sample(ax: Axes, label: str) -> Line2D:
    """Return what stands in the legend for such shades."""
    from matplotlib.lines import Line2D  # only drawing needs it

    colour = tint(ax, GREY, 0.4)
    return Line2D([], [], color=colour, linewidth=6, solid_capstyle="butt", label=label)


def shown(name: str) -> str:
    r"""Return a name as it stands in a figure: one line, not too long, and no mathematics.

    Examples
    --------
    >>> from caldist.plots._style import shown
    >>> shown("a $b$"), shown("x" * 99)
    ('a \\$b\\$', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…')
    """
    line = " ".join(name.split())
    line = "".join(letter if letter.isprintable() else "\ufffd" for letter in line)
    if len(line) > _LONGEST:
        line = line[: _LONGEST - 1] + "…"
    return line.replace("$", r"\$")


def mark(name: str) -> str:
    """Return a label for a model's line, which :func:`drawn` finds again.

    Matplotlib leaves labels out of legends that start with an underscore; none of these does.
    """
    return _MARK + shown(name)


def drawn(ax: Axes) -> list[Line2D]:
    """Return the lines of models that are on the axes already."""
    return [line for line in ax.lines if str(line.get_label()).startswith(_MARK)]


def unmark(line: Any) -> str:
    """Return the label of a line as people read it."""
    return str(line.get_label()).removeprefix(_MARK)


def refuse_second(ax: Axes) -> NoReturn:
    """Raise for axes that show a model already, where one fills them."""
    reason = f"shows {unmark(drawn(ax)[0])!r} already, which fills it"
    raise InvalidInput(argument="ax", reason=reason, remedy="Pass other axes.")


def sample_of(line: Line2D, label: str, colour: str = GREY) -> Line2D:
    """Return a line that looks the same, to stand in the legend for all of its kind."""
    from matplotlib.lines import Line2D  # only drawing needs it

    sample = Line2D([], [])
    sample.update_from(line)
    sample.set(color=colour, markeredgecolor=colour, label=label)
    return sample


def legend(ax: Axes, others: Iterable[Any] = (), *, models: bool = True) -> None:
    """List all models on the axes, and other artists, above the axes, where nothing is drawn."""
    others = list(others)
    lighten(ax, others)
    handles = [*(drawn(ax) if models else ()), *others]
    box = ax.legend(
        handles, [str(at) for at in range(len(handles))], loc="lower left",
        bbox_to_anchor=(0, 1.01), fontsize="small",
        frameon=False, framealpha=1, handlelength=2.6, borderaxespad=0, borderpad=0.2,
        labelspacing=0.3,
    )  # fmt: skip
    for text, handle in zip(box.get_texts(), handles, strict=True):
        text.set_text(unmark(handle))  # after the fact, as a label may start with an underscore
    fit(ax, box.get_texts())
