"""Prefix sums of the residuals, with the band that calibrated predictions stay in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from caldist import _validate
from caldist._near_misses import answering
from caldist._util.brief import Brief
from caldist._util.numbers import short
from caldist._util.products import dot
from caldist._util.types import Vector
from caldist._validate import Rng
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.data.units import LABELS
from caldist.inference._resampling import Resampler, order_statistic
from caldist.kernels._arrays import prefix_sums
from caldist.measures.ecce_mad import largest_tail
from caldist.plots import _data, _style
from caldist.plots._display import Columns, Labels, PredictionDisplay, Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class CumulativeCurve(Brief):
    """The prefix sums of one model.

    Attributes
    ----------
    name
        The model's name.
    prediction
        The distinct predictions.
    share, sums
        The share of the rows with predictions up to each, and E[(y - v) 1(v ≤ t)], the sum over
        them; both start with 0.
    band
        The half width of the band.
    confidence_level
        That of the band.
    cell_width
        The width of the cells that the predictions were rounded to; 0 for exact ones.
    """

    name: str
    prediction: Vector
    share: Vector
    sums: Vector
    band: float
    confidence_level: float
    cell_width: float = 0.0


class CumulativeDisplay(PredictionDisplay[CumulativeCurve]):
    r"""The cumulative residuals, over the share of the rows, in the order of their predictions.

    Where the curve rises, predictions are too low, where it falls too high, and the slope between
    two points is the mean residual of the rows between them: nothing is smoothed or binned. Its
    largest distance from 0 is :func:`caldist.ecce_mad`, its range :func:`caldist.ecce_range`. Rows
    with equal predictions are added together.

    **The band.** If the predictions are calibrated, these are sums of independent terms of mean 0.
    For many rows the largest of them in absolute value is distributed as
    :math:`\sqrt{\sum w^2 v (1 - v)} / \sum w` times the largest absolute value of a Brownian motion
    on [0, 1], whatever the predictions are. The quantile of that law is the half width of the band:
    the whole curve stays inside with probability ``confidence_level``, or more, as a sum has fewer
    chances to leave than the motion. With few uncertain rows (Σ v(1 - v) below about 5) it is a
    rough guide. Weights are taken as fixed weights of independent rows, not as repetitions.

    With ``clusters`` there is no such law. The half width is then the quantile of the largest
    absolute sum over draws of labels from the predictions, in which one random number decides a
    whole cluster: the labels of a cluster depend on each other as much as calibrated labels can.

    **From rounded predictions**, in the cells of a joint, the curve has a point for each cell, at
    its end; the sums there are exact, and in which order rows come within a cell is not known. The
    predictions below the axis are means of cells. The band allows for the rounding.

    **Cost.** A sort; with ``clusters`` also a pass over the rows for each draw.

    Curves of more than 1,000 points are thinned to what can be seen; ``to_frame`` has all of them.

    Parameters
    ----------
    models : list of CumulativeCurve

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu, "Metrics of calibration for probabilistic
    predictions", 2022.

    Examples
    --------
    >>> from caldist.plots import CumulativeDisplay
    >>> display = CumulativeDisplay.from_predictions([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    >>> display.models[0].sums
    array([ 0.    , -0.0625, -0.0625,  0.    ])
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
        ax: Axes | None = None,
    ) -> Self:
        """Compute the sums of one or several models, and draw them.

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
            The cluster of each row, for the band.
        name : str, optional
            The model's name in the figure.
        confidence_level : float
            That of the band.
        n_resamples : int
            The draws behind a band with clusters: at least 1/(1 - confidence_level) - 1.
        rng : int, Generator or None
            For a band with clusters. The default gives the same figure each time.
        ax : matplotlib axes, optional
        """
        level = _validate.check_fraction("confidence_level", confidence_level)
        resampler = Resampler.of(rng, n_resamples=n_resamples)
        found = cls._of(
            lambda key, rows: cumulative_curve(key, rows, level, resampler),
            y_true, y_prob, name,
            sample_weight=sample_weight, clusters=clusters, pos_label=pos_label,
        )  # fmt: skip
        return found.plot(ax=ax)

    @answering
    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the sums.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        ax, before, alone = self._begin(ax, 5.2, 3.6 + 0.17 * (len(self.models) - 1))
        if before == 0:
            _style.plain_axes(ax)
            ax.axhline(0, color=_style.GREY, linewidth=0.8, zorder=1)
            ax.set(xlabel="share of the rows, by increasing prediction v", xlim=(0, 1))
            ax.set_ylabel("cumulative residual\n(rising: predicted too low)")
            _style.unit_ticks(ax.xaxis)
        others: dict[str, Any] = {}
        for at, model in enumerate(self.models, start=before):
            look = _style.model_style(at)
            words = f"{100 * model.confidence_level:.4g}% band if calibrated"
            if alone:
                others["band"] = ax.axhspan(
                    -model.band, model.band, color=_style.tint(ax, look["color"], 0.16),
                    linewidth=0, label=words, zorder=0,
                )  # fmt: skip
                _quantiles(ax, model)
            else:
                for edge in (-model.band, model.band):
                    ax.axhline(
                        edge, color=_style.tint(ax, look["color"], 0.7),
                        linestyle=look["linestyle"], linewidth=0.7, zorder=0,
                    )  # fmt: skip
                others["band"] = _style.sample_of(ax.lines[-1], words)
            keep = _data.thin(model.share, model.sums)
            every = np.searchsorted(model.share[keep], np.arange(1, 10) / 10).tolist()
            self.lines_ += ax.plot(
                model.share[keep], model.sums[keep], label=_style.mark(model.name), zorder=3,
                markevery=every, **(look | {"linewidth": 1.1}),
            )  # fmt: skip
        _style.legend(ax, others.values())
        return self

    def _columns(self, model: CumulativeCurve) -> Columns:
        return {
            "prediction": np.concatenate(([np.nan], model.prediction)),
            "share": model.share,
            "sum": model.sums,
            "band": model.band,
        }


def brownian_quantile(level: float) -> float:
    """Return the quantile of the largest absolute value of a Brownian motion on [0, 1].

    Examples
    --------
    >>> from caldist.plots.cumulative import brownian_quantile
    >>> round(brownian_quantile(0.95), 4)
    2.2414
    """
    low, high = 0.1, 40.0
    for _ in range(60):
        x = (low + high) / 2
        low, high = (x, high) if largest_tail(x) > 1 - level else (low, x)
    return low


def _quantiles(ax: Axes, model: CumulativeCurve) -> None:
    """Write the predictions at the ticks below them; on narrow axes without their letter."""
    shares = ax.get_xticks()
    at = np.searchsorted(model.share[1:], shares - 1e-12).clip(max=model.prediction.size - 1)
    predictions = (_brief(float(model.prediction[k])) for k in at)
    sign = "v = " if model.cell_width < 0.001 else "v ≈ "
    sign = sign if shares.size > 3 else ""
    words = [f"{x:g}\n{sign}{v}" for x, v in zip(shares, predictions, strict=True)]
    ax.set_xticks(shares, words)


def _brief(prediction: float) -> str:
    """Return a prediction in no more letters than there is room for below the axis."""
    apart = min(prediction, 1 - prediction)
    if apart >= 1e-3 or apart < 1e-9:
        return short(round(prediction, 9))
    if prediction > 0.5:
        return f"1−{1 - prediction:.1g}".replace("e-0", "e-")
    return f"{prediction:.1g}".replace("e-0", "e-")


def cumulative_curve(name: str, rows: Rows, level: float, resampler: Resampler) -> CumulativeCurve:
    """Return the prefix sums of one model; the resampler is for clusters."""
    joint = rows.joint
    share = prefix_sums(np.add(*joint.normalized()))
    return CumulativeCurve(
        name,
        joint.prediction,
        share / share[-1],
        joint.prefix_sums(),
        _band(rows, level, resampler),
        level,
        0.0 if joint.grid is None else joint.grid.width,
    )


def _band(rows: Rows, level: float, resampler: Resampler) -> float:
    """Return the largest absolute sum that calibrated predictions show at some level."""
    joint, units = rows.joint, rows.units
    if units.cluster is not None:
        draw = units.drawing_in(np.arange(units.prediction.size))
        largest = resampler.run(
            lambda rng: np.abs(np.cumsum(draw(rng))).max(),
            family=LABELS,
            size=units.n_rows,
        )
        return float(order_statistic(largest, level))
    scale = math.sqrt(dot(units.squares, _variance(joint)))
    # The residuals of a cell add up exactly; other roundings move sums by as much as they can.
    return brownian_quantile(level) * scale + (joint.radius if joint.grid is None else 0.0)


def _variance(joint: Joint) -> Vector:
    """Return v(1 - v), or the most that it can be on average where predictions were rounded."""
    v = joint.prediction
    slack = 0.25 if joint.grid is None else joint.grid.width
    if joint.radius == 0 or (joint.grid is not None and joint.counts_rows):
        slack = 0.0  # it is concave, so that of the mean is not below the mean
    return np.minimum(v * (1 - v) + slack, 0.25)
