"""Prefix sums of the residuals, with the band that calibrated predictions stay in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist.plots import _data, _style
from caldist.plots._data import Predictions
from caldist.plots._display import Columns, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CumulativeCurve", "CumulativeDisplay", "brownian_quantile"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CumulativeCurve:
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
    """

    name: str
    prediction: Vector
    share: Vector
    sums: Vector
    band: float
    confidence_level: float


class CumulativeDisplay(Display[CumulativeCurve]):
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

    **Cost.** A sort.

    Curves of more than 1,000 points are thinned to what can be seen; ``frame`` has all of them.

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
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike | Mapping[str, ArrayLike],
        *,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        confidence_level: float = 0.95,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the sums of one or several models, and draw them.

        Parameters
        ----------
        y_true : array-like of 0 and 1
        y_prob : array-like in [0, 1], or dict from names to such
            The predicted probability of label 1.
        sample_weight : array-like, optional
        name : str, optional
            The model's name in the figure.
        confidence_level : float
            That of the band.
        ax : matplotlib axes, optional
        """
        level = _validate.check_fraction("confidence_level", confidence_level)
        quantile = brownian_quantile(level)
        models = [
            _curve(model, quantile, level)
            for model in _data.named(y_true, y_prob, sample_weight, name)
        ]
        return cls(models).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the sums.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        ax = _style.axes_or_new(ax, 5.2, 3.6 + 0.17 * (len(self.models) - 1))
        before = len(_style.drawn(ax))
        alone = before + len(self.models) == 1
        self.ax_, self.figure_, self.lines_ = ax, ax.figure, []  # type: ignore[assignment]
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
                    -model.band, model.band, color=look["color"], alpha=0.16, linewidth=0,
                    label=words, zorder=0,
                )  # fmt: skip
                _quantiles(ax, model)
            else:
                for edge in (-model.band, model.band):
                    ax.axhline(
                        edge, color=look["color"], linestyle=look["linestyle"], linewidth=0.7,
                        alpha=0.7, zorder=0,
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
    r"""Return the quantile of the largest absolute value of a Brownian motion on [0, 1].

    .. math:: P(\max |B| \le x) = \frac4\pi \sum_{k \ge 0} \frac{(-1)^k}{2k + 1}
              \exp\left(-\frac{(2k + 1)^2 \pi^2}{8 x^2}\right)

    Examples
    --------
    >>> from caldist.plots.cumulative import brownian_quantile
    >>> round(brownian_quantile(0.95), 4)
    2.2414
    """
    odd = 2 * np.arange(200) + 1
    sign = np.where(odd % 4 == 1, 1.0, -1.0)
    low, high = 0.1, 40.0
    for _ in range(60):
        x = (low + high) / 2
        below = 4 / math.pi * float((sign / odd) @ np.exp(-((odd * math.pi / x) ** 2) / 8))
        low, high = (x, high) if below < level else (low, x)
    return low


def _quantiles(ax: Axes, model: CumulativeCurve) -> None:
    """Write the predictions at the quarters of the rows below them."""
    shares = np.arange(5) / 4
    at = np.searchsorted(model.share[1:], shares - 1e-12).clip(max=model.prediction.size - 1)
    predictions = (f"{model.prediction[k]:.3f}".rstrip("0").rstrip(".") for k in at)
    ax.set_xticks(shares, [f"{x:g}\nv = {v}" for x, v in zip(shares, predictions, strict=True)])


def _curve(model: Predictions, quantile: float, level: float) -> CumulativeCurve:
    joint = model.joint
    mass = np.add(*joint.normalized())
    share = np.concatenate(([0.0], np.cumsum(mass)))
    v = joint.prediction
    scale = math.sqrt(float(model.square @ (v * (1 - v))))
    return CumulativeCurve(
        model.name, v, share / share[-1], joint.prefix_sums(), quantile * scale, level
    )
