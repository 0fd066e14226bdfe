"""The Lipschitz witness of smCE over the residuals: where predictions are too high or too low."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.brief import Brief
from caldist._util.types import Vector
from caldist.data import validate
from caldist.data.rows import Rows
from caldist.data.validate import Rng
from caldist.errors import answering
from caldist.inference.recipes import moved_outwards
from caldist.inference.regions import Region, miscalibrated_regions
from caldist.measures import reflected_gaussian
from caldist.measures.smooth_ce import certify_smooth, smooth_ce
from caldist.plots import _style, inputs
from caldist.plots.display import Columns, Labels, PredictionDisplay, Scores
from caldist.plots.inputs import GRID, Cells
from caldist.plots.scale import SCALES, Scale, ScaleName, axis_of, scale_of, scale_on, together

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# The lower part of the axes, in shares of their height, has the witness, from -1 to 1.
_MIDDLE, _HALF = 0.14, 0.12
_NARROWEST = 0.02  # of a region as it is drawn
_BELOW, _ABOVE = -2.1, 1.15  # limits of the upper part's scale, in units of the largest residual


@dataclass(frozen=True, eq=False)
class WitnessCurve(Brief):
    """The witness of one model.

    Attributes
    ----------
    name
        The model's name.
    prediction, height
        The witness w, linear between the predictions.
    residual
        The density E[(y - v) K(v, t)] of the smoothed residuals, at even steps of the axis.
    value
        The smCE, E[(y - v) w(v)].
    regions
        Where the predictions are too high or too low, with one error rate for all of it.
    confidence_level
        That of the regions.
    rounding
        By how much rounded predictions may have changed the value; 0 for exact ones.
    scale, smallest, largest
        The axis, as of a :class:`ReliabilityCurve`.
    """

    name: str
    prediction: Vector
    height: Vector
    residual: Vector
    value: float
    regions: tuple[Region, ...]
    confidence_level: float
    rounding: float = 0.0
    scale: ScaleName = "linear"
    smallest: float = 0.0
    largest: float = 1.0


class WitnessDisplay(PredictionDisplay[WitnessCurve]):
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

    Curves of more than 1,000 points are thinned to what can be seen; ``to_frame`` has all of them.
    With several models on the axes the residuals are lines, with a broad shade in their regions.

    **From rounded predictions**, in the cells of a joint, the residuals of a cell, which add up
    exactly, stand in the place of its mean. Regions end where cells do, and the smCE is shown with
    what rounding may have changed, if that can be seen.

    **Cost.** That of :func:`caldist.smooth_ce` and of the regions, which draw in at most 4,096
    cells whatever n is, unless there are ``clusters``.

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
    @answering
    def from_predictions(
        cls,
        y_true: Labels,
        y_prob: Scores = None,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
        clusters: ArrayLike | None = None,
        name: str | None = None,
        confidence_level: float = 0.95,
        n_resamples: int = 999,
        rng: Rng = 0,
        scale: ScaleName = "linear",
        ax: Axes | None = None,
    ) -> Self:
        """Compute the witness of one or several models, and draw it.

        Parameters
        ----------
        y_true : array-like of 0 and 1, Joint, or dict from names to joints
            A joint stands for labels, predictions and weights at once.
        y_prob : array-like in [0, 1], or dict from names to such
            The predicted probability of label 1.
        sample_weight : array-like, optional
        pos_label : optional
            The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
        clusters : array-like, optional
            The cluster of each row, for the regions.
        name : str, optional
            The model's name in the figure.
        confidence_level : float
            That of the regions.
        n_resamples : int
            Draws for the regions: at least 1/(1 - confidence_level) - 1.
        rng : int, Generator or None
            For the regions. The same rows give the same answer; None draws a fresh seed.
        scale : "linear" or "logit"
            The axis of predictions, on which residuals are smoothed; "logit" for rare events.
        ax : matplotlib axes, optional
        """
        validate.check_choice("scale", scale, SCALES)
        level = validate.check_fraction("confidence_level", confidence_level)
        generator = validate.generator(rng)

        def shown(key: str, rows: Any) -> WitnessCurve:
            regions = miscalibrated_regions(
                rows, confidence_level=level, n_resamples=n_resamples, rng=generator
            )
            return witness_curve(key, rows, regions, level, scale)

        found = cls._of(
            shown,
            y_true,
            y_prob,
            name,
            sample_weight=sample_weight,
            clusters=clusters,
            pos_label=pos_label,
        )
        return found.plot(ax=ax)

    @answering
    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the residuals and the witness.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        ax, before, alone = self._begin(ax, 5.2, 3.9 + 0.17 * (len(self.models) - 1))
        largest = max(float(np.abs(model.residual).max()) for model in self.models)
        largest = max(largest, 1e-12, ax.get_ylim()[1] / _ABOVE if before else 0.0)
        if before == 0:
            _prepare(ax, together([axis_of(model) for model in self.models]))
        scale_on(ax, self.models[0].scale)
        others: dict[str, Any] = {}
        for at, model in enumerate(self.models, start=before):
            look = _style.model_style(at)
            others |= _fill(ax, model) if alone else _shade(ax, at, model)
            every = np.searchsorted(GRID, np.arange(0.05, 1, 0.1)).tolist()
            self.lines_ += ax.plot(
                _across(model), model.residual, markevery=every, zorder=3,
                label=f"{_style.mark(model.name)}: smCE {_amount(model)}",
                **look,
            )  # fmt: skip
            keep = inputs.thin(model.prediction, model.height)
            x, y = model.prediction[keep], _MIDDLE + _HALF * model.height[keep]
            ax.plot(
                x, y, transform=ax.get_xaxis_transform(), color=look["color"],
                linestyle=look["linestyle"], marker=look["marker"] if x.size < 3 else "",
                linewidth=1.3, markersize=3, clip_on=not axis_of(model).is_whole,
            )  # fmt: skip
        ax.set_ylim(_BELOW * largest, _ABOVE * largest)
        ax.set_yticks([tick for tick in ax.get_yticks() if -1.05 * largest <= tick <= largest])
        ax.set_ylim(_BELOW * largest, _ABOVE * largest)
        _style.legend(ax, others.values())
        return self

    def _columns(self, model: WitnessCurve) -> Columns:
        return {
            "part": np.repeat(["witness", "residual"], (model.prediction.size, GRID.size)),
            "prediction": np.concatenate((model.prediction, _across(model))),
            "value": np.concatenate((model.height, model.residual)),
        }


def witness_curve(
    name: str,
    rows: Rows,
    regions: Sequence[Region],
    confidence_level: float,
    scale: ScaleName = "linear",
) -> WitnessCurve:
    """Return the witness of one model, with regions that were found at that level."""
    joint = rows.joint
    proof = certify_smooth(joint)
    value, lower, upper = moved_outwards(smooth_ce, joint, *[proof.value] * 3)
    axis = scale_of(scale, joint.prediction, joint.mass0 + joint.mass1)
    place, width = axis.place(joint.prediction), Cells.of(rows, scale=axis).chance_width()
    return WitnessCurve(
        name=name,
        prediction=proof.knot,
        height=proof.height,
        residual=reflected_gaussian.density(place, joint.residual(), width, GRID),
        value=value,
        regions=tuple(regions),
        confidence_level=confidence_level,
        rounding=max(value - lower, upper - value),
        scale=scale,
        smallest=axis.lower,
        largest=axis.upper,
    )


def _across(model: WitnessCurve) -> Vector:
    """Return the predictions at which the residuals are known."""
    return axis_of(model).prediction(GRID)


def _amount(model: WitnessCurve) -> str:
    """Return the value, and what rounding may have changed where that would be seen."""
    shown = f"{model.value:.3g}"
    ends = (model.value - model.rounding, model.value + model.rounding)
    if all(f"{end:.3g}" == shown for end in ends):
        return shown
    most = max(abs(end - float(shown)) for end in ends)
    digit = 10.0 ** math.floor(math.log10(most))
    return f"{shown} ± {math.ceil(most / digit) * digit:.1g}"


def _prepare(ax: Axes, axis: Scale) -> None:
    """Set up the two parts of the axes."""
    _style.plain_axes(ax)
    ax.set(xlabel="prediction")
    axis.along(ax)
    ax.set_ylabel("residual y − v, smoothed", y=(1 + _MIDDLE + _HALF) / 2 + 0.03)
    ax.axhline(0, color=_style.GREY, linewidth=0.8, zorder=1)
    across = ax.get_xaxis_transform()
    ends = [axis.lower, axis.upper]
    ax.plot(ends, [_MIDDLE, _MIDDLE], transform=across, color=_style.GREY, linewidth=0.6)
    for height, words in ((1, "1"), (0, "witness w"), (-1, "−1")):
        ax.annotate(
            words, (1, _MIDDLE + height * _HALF), xycoords="axes fraction", xytext=(5, 0),
            textcoords="offset points", va="center", fontsize="small", color=_style.GREY,
            annotation_clip=False,
        )  # fmt: skip


def _fill(ax: Axes, model: WitnessCurve) -> dict[str, Any]:
    """Fill the residuals, in colour within the regions; return what the legend says."""
    keep = inputs.thin(GRID, model.residual)
    grid, residual = _across(model)[keep], model.residual[keep]
    ax.fill_between(grid, 0, residual, color="0.82", linewidth=0, zorder=1)
    others: dict[str, Any] = {}
    sure = f"here ({100 * model.confidence_level:.4g}% sure)"
    for too_high, words, colour, hatch in (
        (False, f"predicted too low {sure}", _style.DARK, ""),
        (True, f"predicted too high {sure}", _style.RUST, "////"),
    ):
        for region in model.regions:
            if region.too_high == too_high:
                low, high = _visible(region, axis_of(model))
                ax.axvspan(
                    low, high, facecolor=_style.tint(ax, colour, 0.10), linewidth=0,
                    ymin=_MIDDLE + _HALF + 0.06, zorder=0,
                )  # fmt: skip
                x = np.union1d(grid[(low < grid) & (high > grid)], (low, high))
                others[words] = ax.fill_between(
                    x, 0, np.interp(x, grid, residual), hatch=hatch, edgecolor="white",
                    facecolor=_style.tint(ax, colour, 0.75), linewidth=0, label=words, zorder=2,
                )  # fmt: skip
    if not model.regions:
        (empty,) = ax.plot([], [], linestyle="none", label="no region stands out from chance")
        others["none"] = empty
    return others


def _shade(ax: Axes, at: int, model: WitnessCurve) -> dict[str, Any]:
    """Shade the curve within the regions; return what the legend says."""
    for region in model.regions:
        low, high = _visible(region, axis_of(model))
        grid = _across(model)
        _style.halo(ax, grid, model.residual, (low <= grid) & (high >= grid), at)
    sure = f"{100 * model.confidence_level:.4g}% sure"
    return {"sure": _style.halo_sample(ax, f"not by chance ({sure})")} if model.regions else {}


def _visible(region: Region, axis: Scale) -> tuple[float, float]:
    """Return the ends of a region, apart by at least what can be seen."""
    first, last = axis.place(np.array([region.lower, region.upper])).tolist()
    more = max(0.0, _NARROWEST - (last - first)) / 2
    low = min(max(0.0, first - more), 1 - _NARROWEST)
    ends = np.array([low, max(min(1.0, last + more), low + _NARROWEST)])
    first, last = axis.prediction(ends).tolist()
    return first, last
