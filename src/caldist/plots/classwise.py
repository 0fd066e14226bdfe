"""What each class has to do with the classwise distance: a bar for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.brief import Brief
from caldist._util.numbers import number
from caldist._util.types import Integers, Vector
from caldist.data import validate
from caldist.data.class_rows import Classes
from caldist.data.joint import Joint
from caldist.errors import InvalidInput, answering
from caldist.multiclass.classwise import ClassTable, classwise_table
from caldist.plots import _style
from caldist.plots.display import Columns, MatrixDisplay, one_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 12  # bars that are read at a glance
_THICK = 11  # points, of a bar


@dataclass(frozen=True, eq=False)
class ClassShares(Brief):
    """The shares of one model's classes in its classwise distance.

    Attributes
    ----------
    name
        The model's name.
    classes
        The classes as text, in the order of the columns.
    share
        Half the lower distance of each class against the rest; they add up to ``value``.
    noise
        What calibrated predictions would show on average; not a number where that is not known.
    lower
        The lower limits of the population's shares; not a number where there are none.
    value
        The classwise distance.
    confidence_level
        That of the lower limits, or None.
    """

    name: str
    classes: tuple[str, ...]
    share: Vector
    noise: Vector
    lower: Vector
    value: float
    confidence_level: float | None = None

    def worst_first(self) -> Integers:
        """Return the numbers of the classes: first by what is proved, then by their shares."""
        return np.lexsort((-self.share, -np.nan_to_num(self.lower))).astype(np.int64)


class ClasswiseDisplay(MatrixDisplay[ClassShares]):
    r"""The classwise distance to calibration, class by class.

    A bar for each class, half its lower distance against the rest: the bars add up to
    :func:`caldist.multiclass.classwise_distance`. The open diamond is what calibrated
    predictions of the class would show on average, so a bar that ends near it says nothing
    against the class. The line across a bar is the lower limit of the population's share, where
    it is above 0. The worst classes come first: by their lower limits, then by their shares.
    Beyond ``most`` classes the others are one line of text.

    **Cost.** That of :func:`caldist.multiclass.classwise_table`.

    Parameters
    ----------
    models : list of ClassShares
        One model.

    Examples
    --------
    >>> from caldist.plots import ClasswiseDisplay
    >>> y_prob = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]
    >>> display = ClasswiseDisplay.from_predictions([0, 2, 2, 1], y_prob, confidence_level=None)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['2', '0', '1']
    >>> import matplotlib.pyplot as plt; plt.close(display.figure_)
    """

    @classmethod
    @answering
    def from_predictions(
        cls,
        y_true: ArrayLike | dict[Any, Joint] | list[Joint],
        y_prob: ArrayLike | None = None,
        *,
        classes: Classes | None = None,
        normalize: bool = False,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        confidence_level: float | None = 0.95,
        rng: validate.Rng = 0,
        ax: Axes | None = None,
        most: int = MOST,
    ) -> Self:
        """Compute the shares of the classes, and draw them.

        Parameters
        ----------
        y_true : array-like of classes, or a Joint for each class
            As in :func:`caldist.multiclass.classwise_table`.
        y_prob : matrix
            A row per example and a column per class, rows summing to 1.
        classes : sequence, optional
            The labels in the order of the columns, where they are not 0, 1, … or the names of a
            frame's columns.
        normalize : bool
            Divide each row by its sum, where rounding keeps rows from summing to 1.
        sample_weight : array-like, optional
        name : str, optional
            The model's name in the figure.
        confidence_level : float or None
            That of each lower limit by itself; None leaves them out.
        rng : int, Generator or None
            For the lower limits. The same rows give the same answer; None draws a fresh seed.
        ax, most
            As for :meth:`plot`.
        """
        table = classwise_table(
            y_true,
            y_prob,
            classes=classes,
            normalize=normalize,
            sample_weight=sample_weight,
            confidence_level=confidence_level,
            rng=rng,
        )
        shown = class_shares(one_name(name), table)
        return cls([shown]).plot(ax=ax, most=most)

    @answering
    def plot(self, *, ax: Axes | None = None, most: int = MOST) -> Self:
        """Draw the bars, the worst class on top.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Without bars of another model.
        most : int
            How many classes are shown.
        """
        from matplotlib.ticker import MaxNLocator  # only drawing needs it

        most = validate.check_count("most", most)
        [model] = self._one()
        worst = model.worst_first()[:most]
        left = len(model.classes) - worst.size
        ax, before, _ = self._begin(ax, 5.6, figure_height(worst.size, left))
        if before:
            _style.refuse_second(ax)
        others = self._draw(ax, model, worst)
        _style.plain_axes(ax)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0, labelsize="medium")
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.grid(axis="x", color="0.88", linewidth=0.6)
        ax.set_axisbelow(True)
        ends = np.concatenate((model.share[worst], model.noise[worst]))
        ax.set_xlim(0, max(1.04 * float(np.nanmax(ends)), 1e-6))
        names = [_style.shown(model.classes[at]) for at in worst]
        ax.set_yticks(range(worst.size), names)
        ax.set_ylim(worst.size - 0.4, -0.6)
        rest = ""
        if left:
            total = float(model.share.sum() - model.share[worst].sum())
            word = "class has" if left == 1 else f"{left:,} classes have"
            rest = f"\nthe other {word} {total:.3g} in all"
        ax.set_xlabel(f"share of the classwise distance, {number(model.value)}{rest}")
        _style.legend(ax, others.values())
        return self

    def _one(self) -> tuple[ClassShares, ...]:
        if len(self.models) > 1:
            raise InvalidInput(
                argument="models",
                reason=f"has {len(self.models)} models, but the classes of one fill the axes",
                remedy="Make a display for each.",
            )
        return self.models

    def _draw(self, ax: Axes, model: ClassShares, worst: Integers) -> dict[str, Any]:
        """Draw the bars; return what the legend says beside the model's name."""
        row = np.arange(worst.size)
        share, noise, lower = model.share[worst], model.noise[worst], model.lower[worst]
        blank = np.full(row.size, np.nan)
        self.lines_ += ax.plot(
            np.column_stack((np.zeros(row.size), share, blank)).ravel(), np.repeat(row, 3),
            color=_style.tint(ax, _style.DARK, 0.85), linewidth=_THICK, solid_capstyle="butt",
            zorder=2, label=_style.mark(model.name),
        )  # fmt: skip
        others: dict[str, Any] = {}
        proved = np.nan_to_num(lower) > 0
        if proved.any():
            look: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": _THICK + 3}
            ax.plot(
                lower[proved], row[proved], color="white", markeredgewidth=4.2, zorder=3, **look
            )
            (others["lower"],) = ax.plot(
                lower[proved], row[proved], color=_style.RUST, markeredgewidth=1.8, zorder=4,
                **look,
                label=f"the population's is at least ({100 * (model.confidence_level or 0):.4g}%)",
            )  # fmt: skip
        if not np.isnan(noise).all():
            (others["noise"],) = ax.plot(
                noise, row, color=_style.GREY, linestyle="none", marker="D", markersize=5,
                markerfacecolor="white", markeredgewidth=1.1, zorder=5, clip_on=False,
                label="if calibrated, on average",
            )  # fmt: skip
        return others

    def _columns(self, model: ClassShares) -> Columns:
        return {
            "class": np.array(model.classes, str),
            "share": model.share,
            "noise": model.noise,
            "lower": model.lower,
        }


def figure_height(bars: int, left: int) -> float:
    """Return the inches that so many bars need, and a line for those that are left out."""
    return 1.5 + 0.27 * bars + (0.17 if left else 0)


def class_shares(name: str, table: ClassTable) -> ClassShares:
    """Return what is shown of a table."""
    lines = table.lines

    def numbers(key: str) -> Vector:
        return np.array([getattr(line, key) for line in lines], dtype=np.float64)

    return ClassShares(
        name=name,
        classes=tuple(str(line.name) for line in lines),
        share=numbers("share"),
        noise=numbers("noise"),
        lower=numbers("lower"),
        value=table.value,
        confidence_level=table.confidence_level,
    )
