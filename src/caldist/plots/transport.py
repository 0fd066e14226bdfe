"""Where the predictions go: to the nearest calibrated ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist._near_misses import answering
from caldist._util.brief import Brief
from caldist._util.numbers import most, short
from caldist._util.products import dot
from caldist._util.types import Vector
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.measures.lower_distance import TOLERANCE, certify_lower
from caldist.measures.upper_distance import best_map
from caldist.plots import _data, _histograms, _style
from caldist.plots._display import Columns, Labels, PredictionDisplay, Scores
from caldist.plots._scale import SCALES, Scale, ScaleName, scale_of, scale_on, together

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["map", "coupling"]

_JUMP = 0.05  # beyond which two targets are not joined by a line
_MOST_JUMPS = 200
_DOT = 0.003  # half the length of a line for a single prediction


@dataclass(frozen=True, eq=False)
class TransportPlan(Brief):
    """How one model's predictions move.

    Attributes
    ----------
    name
        The model's name.
    kind
        "map" or "coupling".
    label
        The label of the rows that move; -1 in a map, which moves both alike.
    source, target, mass
        From where, to where, and which share of all rows.
    distance
        The mean distance moved; of rounded predictions, the most it can be.
    exact
        Whether no plan of this kind moves less, up to the solver's tolerance.
    scale
        "linear" or "logit": the axis it is drawn on.
    """

    name: str
    kind: Kind
    label: NDArray[np.int64]
    source: Vector
    target: Vector
    mass: Vector
    distance: float
    exact: bool
    scale: ScaleName = "linear"


class TransportDisplay(PredictionDisplay[TransportPlan]):
    r"""The calibrated predictions nearest to the given ones.

    Across, the prediction; upwards, where it goes. On the diagonal nothing moves, and the mean
    vertical distance from it is the distance to calibration.

    With ``kind="map"`` each prediction v goes to κ(v), the frequency of label 1 in its group, as
    in :func:`caldist.nearest_calibrated`; the mean distance is :func:`caldist.upper_distance`.
    With ``kind="coupling"`` rows with the same prediction may part by their label, and by chance
    within a label: the coupling behind :func:`caldist.lower_distance`. Within a label mass moves in
    order, so there are two increasing curves. No calibration can be had for less, and it is no
    recipe, since it looks at the labels.

    Beneath, histograms of the predictions before (upwards) and after (downwards), in 40
    bins. Both plans are fitted to the labels of these rows and describe them alone, so clusters
    have no part in them. Of a joint with rounded predictions whole cells move, from the place of
    their mean; the rows behind it are calibrated there too.

    **Cost.** That of :func:`caldist.upper_distance` or :func:`caldist.lower_distance`.

    Curves of more than 1,000 points are thinned to what can be seen; ``to_frame`` has all of them.

    Parameters
    ----------
    models : list of TransportPlan

    Examples
    --------
    >>> from caldist.plots import TransportDisplay
    >>> display = TransportDisplay.from_predictions([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    >>> display.models[0].target
    array([0.5, 0.5, 0.5])
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
        name: str | None = None,
        kind: Kind = "map",
        scale: ScaleName = "linear",
        ax: Axes | None = None,
    ) -> Self:
        """Compute the plan of one or several models, and draw it.

        Parameters
        ----------
        y_true : array-like of 0 and 1, Joint, or dict from names to joints
            A joint stands for labels, predictions and weights at once.
        y_prob : array-like in [0, 1], or dict from names to such
            The predicted probability of label 1.
        sample_weight : array-like, optional
        pos_label : optional
            The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
        name : str, optional
            The model's name in the figure.
        kind : "map" or "coupling"
        scale : "linear" or "logit"
            The axis of predictions before and after; "logit" for rare events.
        ax : matplotlib axes, optional
        """
        _validate.check_choice("kind", kind, ("map", "coupling"))
        _validate.check_choice("scale", scale, SCALES)
        plan = map_plan if kind == "map" else coupling_plan
        return cls._of(
            lambda key, rows: plan(key, rows, scale),
            y_true,
            y_prob,
            name,
            sample_weight=sample_weight,
            pos_label=pos_label,
        ).plot(ax=ax)

    @answering
    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the plan.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        ax, before, alone = self._begin(ax, 4.6, _histograms.figure_height(len(self.models)))
        if before == 0:
            axis = together([_seen(model) for model in self.models])
            axis.square(ax, "prediction", "nearest calibrated prediction")
        axis = scale_on(ax, self.models[0].scale)
        others: dict[str, Any] = {}
        for at, model in enumerate(self.models, start=before):
            others |= self._draw(ax, at, model, axis, alone=alone)
            _histograms.draw(
                ax, at, _histograms.histogram(axis.place(model.source), model.mass),
                _histograms.histogram(axis.place(model.target), model.mass), ("before", "after"),
                bins=axis, axis=axis,
            )  # fmt: skip
        _style.legend(ax, others.values())
        return self

    def _draw(
        self, ax: Axes, at: int, model: TransportPlan, axis: Scale, *, alone: bool
    ) -> dict[str, Any]:
        """Draw one model; return what the legend says beside its name."""
        distance = short(model.distance) if model.exact else most(model.distance, 3)
        symbol = ("udCE" if model.kind == "map" else "ldCE") + (" =" if model.exact else " ≤")
        label = _style.mark(model.name) + f": {symbol} {distance}"
        others: dict[str, Any] = {}
        for part in np.unique(model.label).tolist()[::-1]:  # label 1 first, which has the name
            rows = model.label == part
            places = axis.place(model.source[rows]), axis.place(model.target[rows])
            x, y, every = _segments(*places, model.mass[rows])
            x, y = axis.prediction(x), axis.prediction(y)
            look = _style.model_style(at) | {"linestyle": "-"}  # dashes would break short pieces
            named = not others
            if part == 0:
                look |= {
                    "linestyle": (0, (1.2, 1.2)),
                    "color": _style.RUST if alone else look["color"],
                }
                look |= {"markerfacecolor": look["color"]}
            (line,) = ax.plot(
                x, y, markevery=every, clip_on=not axis.is_whole, zorder=3,
                label=label if named else "_", **look,
            )  # fmt: skip
            if alone:
                shade = _style.tint(ax, look["color"], 0.14)
                ax.fill_between(x, x, y, color=shade, linewidth=0, zorder=0.5)
            if named:
                self.lines_.append(line)
            if part >= 0:
                colour = look["color"] if alone else _style.GREY
                others[f"{part}"] = _style.sample_of(line, f"rows with y = {part}", colour)
        return others

    def _columns(self, model: TransportPlan) -> Columns:
        return {
            "label": model.label,
            "source": model.source,
            "target": model.target,
            "mass": model.mass,
        }


def _segments(x: Vector, y: Vector, mass: Vector) -> tuple[Vector, Vector, list[int]]:
    """Return the places of a plan as a line with gaps, thinned, and which of them get markers.

    The line is interrupted where targets jump, unless that happens too often to be seen. A marker
    is in the middle of each tenth of the mass.
    """
    deciles = _data.quantile_places(mass)
    jump = np.flatnonzero(np.abs(np.diff(y)) > _JUMP)
    if jump.size > _MOST_JUMPS:
        jump = jump[:0]
    # The ends of level stretches, so that few points are left of the map.
    level = np.diff(y) == 0
    ends = np.flatnonzero(~(np.append(level, False) & np.insert(level, 0, False)))
    ends = ends[_data.thin(x[ends], y[ends])]
    kept = np.unique(np.concatenate((ends, jump, jump + 1, deciles)))
    marked, gap = np.searchsorted(kept, deciles), np.searchsorted(kept, jump + 1)
    x, y = x[kept], y[kept]
    # A piece of one point becomes as long as a line is thick.
    first, last = np.insert(gap, 0, 0), np.append(gap, x.size) - 1
    single = first[first == last]
    x = np.insert(x, single, x[single] - _DOT)
    y = np.insert(y, single, y[single])
    x[single + np.arange(1, single.size + 1)] += _DOT
    gap += np.searchsorted(single, gap)
    marked += np.searchsorted(single, marked)
    marked += np.searchsorted(gap, marked, side="right")
    return np.insert(x, gap, np.nan), np.insert(y, gap, np.nan), marked.tolist()


def _seen(model: TransportPlan) -> Scale:
    """Return the axis that has room for predictions before and after."""
    source, mass = model.source, model.mass
    if (source[1:] < source[:-1]).any():  # parts of a coupling are in the order of their targets
        order = np.argsort(source, kind="stable")
        source, mass = source[order], mass[order]
    return scale_of(model.scale, source, mass, [model.target])


def map_plan(name: str, rows: Rows, scale: ScaleName = "linear") -> TransportPlan:
    """Return the map of one model."""
    joint = rows.joint
    group, frequency, exact = best_map(joint)
    mass, target = np.add(*joint.normalized()), frequency[group]
    label = np.full(target.size, -1, dtype=np.int64)
    return TransportPlan(
        name, "map", label, joint.prediction, target, mass,
        _distance(joint, joint.prediction, target, mass), exact and joint.radius == 0, scale,
    )  # fmt: skip


def coupling_plan(name: str, rows: Rows, scale: ScaleName = "linear") -> TransportPlan:
    """Return the coupling of one model."""
    proof = certify_lower(rows.joint, tol=TOLERANCE)
    moves = proof.coupling()
    return TransportPlan(
        name, "coupling", moves.label, moves.source, moves.target, moves.mass,
        _distance(rows.joint, moves.source, moves.target, moves.mass),
        proof.gap <= TOLERANCE and rows.joint.radius == 0, scale,
    )  # fmt: skip


def _distance(joint: Joint, source: Vector, target: Vector, mass: Vector) -> float:
    """Return the mean distance moved, or a bound where rows start near the source and not at it."""
    return dot(mass, np.abs(source - target)) + joint.radius
