"""The Lipschitz witness of smCE over the residuals: where predictions are too high or too low."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist._validate import Rng
from caldist.inference.regions import Region, miscalibrated_regions
from caldist.measures.certification import certify_smooth
from caldist.plots import _data, _style
from caldist.plots._data import GRID
from caldist.plots._display import Columns, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["WitnessCurve", "WitnessDisplay"]

Vector = NDArray[np.float64]

# The lower part of the axes, in shares of their height, has the witness, from -1 to 1.
_MIDDLE, _HALF = 0.14, 0.12
_NARROWEST = 0.02  # of a region as it is drawn
_BELOW, _ABOVE = -2.1, 1.15  # limits of the upper part's scale, in units of the largest residual


@dataclass(frozen=True, eq=False)
class WitnessCurve:
    """The witness of one model.

    Attributes
    ----------
    name
        The model's name.
    prediction, height
        The witness w, linear between the predictions.
    residual
        The density E[(y - v) K(v, t)] of the smoothed residuals, at even steps from 0 to 1.
    value
        The smCE, E[(y - v) w(v)].
    regions
        Where the predictions are too high or too low, with one error rate for all of it.
    confidence_level
        That of the regions.
    """

    name: str
    prediction: Vector
    height: Vector
    residual: Vector
    value: float
    regions: tuple[Region, ...]
    confidence_level: float


class WitnessDisplay(Display[WitnessCurve]):
    r"""Where predictions are too high and where they are too low.

    Above, the residuals y - v, smoothed as in :class:`ReliabilityDisplay`: above 0 where the
    predictions are too low, below where too high, in proportion to the rows.
    Coloured is what is certain: the regions of :func:`caldist.inference.miscalibrated_regions`, in
    every one of which, with probability ``confidence_level`` for all of them together, the
    predictions are not calibrated; the colour says which way they are off on average. The rest is
    grey and may be chance.

    Beneath, the witness: the 1-Lipschitz function :math:`w : [0, 1] \to [-1, 1]` with the largest
    :math:`E[(y - v)\,w(v)]`, which is :func:`caldist.smooth_ce`. It is high where the predictions
    are too low, compared with where it is low. Its level follows the mean residual alone, and where
    there are few predictions it only connects its neighbours.

    Curves of more than 1,000 points are thinned to what can be seen; ``frame`` has all of them.
    With several models on the axes the residuals are lines, with a broad shade in their regions.

    **Cost.** That of :func:`caldist.smooth_ce` and of the regions, which draw in at most 4,096
    cells whatever n is, unless there are ``groups``.

    Parameters
    ----------
    models : list of WitnessCurve

    Examples
    --------
    >>> from caldist.plots import WitnessDisplay
    >>> display = WitnessDisplay.from_predictions([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    >>> display.models[0].value
    0.03125
    >>> import matplotlib.pyplot as plt; plt.close(display.figure_)
    """

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike | Mapping[str, ArrayLike],
        *,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        confidence_level: float = 0.95,
        groups: ArrayLike | None = None,
        rng: Rng = 0,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the witness of one or several models, and draw it.

        Parameters
        ----------
        y_true : array-like of 0 and 1
        y_prob : array-like in [0, 1], or dict from names to such
            The predicted probability of label 1.
        sample_weight : array-like, optional
        name : str, optional
            The model's name in the figure.
        confidence_level : float
            That of the regions.
        groups : array-like, optional
            The cluster of each row, for the regions.
        rng : int, Generator or None
            For the regions. The default gives the same figure each time.
        ax : matplotlib axes, optional
        """
        level = _validate.check_fraction("confidence_level", confidence_level)
        generator = _validate.generator(rng)
        models = []
        for model in _data.named(y_true, y_prob, sample_weight, name):
            joint, proof = model.joint, certify_smooth(model.joint)
            width = model.cells().chance_width()
            residual = _data.smoothed(joint.prediction, joint.residual(), width, GRID)
            regions = miscalibrated_regions(
                y_true, model.score, confidence_level=level, sample_weight=sample_weight,
                groups=groups, rng=generator,
            )  # fmt: skip
            curve = (proof.knot, proof.height, residual, proof.value)
            models.append(WitnessCurve(model.name, *curve, tuple(regions), level))
        return cls(models).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the residuals and the witness.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        ax = _style.axes_or_new(ax, 5.2, 3.9 + 0.17 * (len(self.models) - 1))
        before = len(_style.drawn(ax))
        alone = before + len(self.models) == 1
        self.ax_, self.figure_, self.lines_ = ax, ax.figure, []  # type: ignore[assignment]
        largest = max(float(np.abs(model.residual).max()) for model in self.models)
        largest = max(largest, 1e-12, ax.get_ylim()[1] / _ABOVE if before else 0.0)
        if before == 0:
            _prepare(ax)
        others: dict[str, Any] = {}
        for at, model in enumerate(self.models, start=before):
            look = _style.model_style(at)
            others |= _fill(ax, model) if alone else _shade(ax, at, model)
            every = np.searchsorted(GRID, np.arange(0.05, 1, 0.1)).tolist()
            self.lines_ += ax.plot(
                GRID, model.residual, markevery=every, zorder=3,
                label=f"{_style.mark(model.name)}: smCE {model.value:.3g}",
                **look,
            )  # fmt: skip
            keep = _data.thin(model.prediction, model.height)
            x, y = model.prediction[keep], _MIDDLE + _HALF * model.height[keep]
            ax.plot(
                x, y, transform=ax.get_xaxis_transform(), color=look["color"],
                linestyle=look["linestyle"], marker=look["marker"] if x.size < 3 else "",
                linewidth=1.3, markersize=3, clip_on=False,
            )  # fmt: skip
        ax.set_ylim(_BELOW * largest, _ABOVE * largest)
        ax.set_yticks([tick for tick in ax.get_yticks() if -1.05 * largest <= tick <= largest])
        ax.set_ylim(_BELOW * largest, _ABOVE * largest)
        _style.legend(ax, others.values())
        return self

    def _columns(self, model: WitnessCurve) -> Columns:
        size = model.prediction.size
        return {
            "part": ["witness"] * size + ["residual"] * GRID.size,
            "prediction": np.concatenate((model.prediction, GRID)),
            "value": np.concatenate((model.height, model.residual)),
        }


def _prepare(ax: Axes) -> None:
    """Set up the two parts of the axes."""
    _style.plain_axes(ax)
    ax.set(xlabel="prediction", xlim=(0, 1))
    ax.set_ylabel("residual y − v, smoothed", y=(1 + _MIDDLE + _HALF) / 2 + 0.03)
    _style.unit_ticks(ax.xaxis)
    ax.axhline(0, color=_style.GREY, linewidth=0.8, zorder=1)
    across = ax.get_xaxis_transform()
    ax.plot([0, 1], [_MIDDLE, _MIDDLE], transform=across, color=_style.GREY, linewidth=0.6)
    for height, words in ((1, "1"), (0, "witness w"), (-1, "−1")):
        ax.annotate(
            words, (1, _MIDDLE + height * _HALF), xycoords="axes fraction", xytext=(5, 0),
            textcoords="offset points", va="center", fontsize="small", color=_style.GREY,
            annotation_clip=False,
        )  # fmt: skip


def _fill(ax: Axes, model: WitnessCurve) -> dict[str, Any]:
    """Fill the residuals, in colour within the regions; return what the legend says."""
    keep = _data.thin(GRID, model.residual)
    grid, residual = GRID[keep], model.residual[keep]
    ax.fill_between(grid, 0, residual, color="0.82", linewidth=0, zorder=1)
    others: dict[str, Any] = {}
    sure = f"here ({100 * model.confidence_level:.4g}% sure)"
    for too_high, words, colour, hatch in (
        (False, f"predicted too low {sure}", _style.DARK, ""),
        (True, f"predicted too high {sure}", _style.RUST, "////"),
    ):
        for region in model.regions:
            if region.too_high == too_high:
                low, high = _visible(region)
                ax.axvspan(
                    low, high, facecolor=colour, alpha=0.10, linewidth=0,
                    ymin=_MIDDLE + _HALF + 0.06, zorder=0,
                )  # fmt: skip
                x = np.union1d(grid[(low < grid) & (high > grid)], (low, high))
                others[words] = ax.fill_between(
                    x, 0, np.interp(x, grid, residual), facecolor=colour, hatch=hatch,
                    edgecolor="white", linewidth=0, alpha=0.75, label=words, zorder=2,
                )  # fmt: skip
    if not model.regions:
        (empty,) = ax.plot([], [], linestyle="none", label="no region stands out from chance")
        others["none"] = empty
    return others


def _shade(ax: Axes, at: int, model: WitnessCurve) -> dict[str, Any]:
    """Shade the curve within the regions; return what the legend says."""
    for region in model.regions:
        low, high = _visible(region)
        _style.halo(ax, GRID, model.residual, (low <= GRID) & (high >= GRID), at)
    sure = f"{100 * model.confidence_level:.4g}% sure"
    return {"sure": _style.halo_sample(f"not by chance ({sure})")} if model.regions else {}


def _visible(region: Region) -> tuple[float, float]:
    """Return the ends of a region, apart by at least what can be seen."""
    more = max(0.0, _NARROWEST - (region.high - region.low)) / 2
    low = min(max(0.0, region.low - more), 1 - _NARROWEST)
    return low, max(min(1.0, region.high + more), low + _NARROWEST)
