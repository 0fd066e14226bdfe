"""All measures of one joint distribution at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from caldist import _validate
from caldist.data.joint import Joint
from caldist.measures.registry import MEASURES

__all__ = ["Evaluation", "evaluate", "measure_names"]


@dataclass(frozen=True)
class Evaluation:
    """A measure's value on a joint, and what rounding leaves certain about it.

    ``lower`` and ``upper`` contain the exact value on the unrounded predictions, up to the rounding
    of the computation itself. They equal ``value`` where nothing was rounded (the lower distance is
    known to its tolerance), and are None where no bound exists.
    """

    value: float
    lower: float | None
    upper: float | None


def evaluate(joint: Joint, *, measures: Iterable[str] | None = None) -> dict[str, Evaluation]:
    """Compute measures of a joint distribution, with the certified effect of rounding.

    Parameters
    ----------
    joint : Joint
    measures : list of names, optional
        Which ones; all by default.

    Returns
    -------
    dict
        From the name of each measure to its :class:`Evaluation`.

    Examples
    --------
    >>> import caldist
    >>> joint = caldist.Joint.from_arrays([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    >>> caldist.evaluate(joint, measures=["smooth_ce"])
    {'smooth_ce': Evaluation(value=0.03125, lower=0.03125, upper=0.03125)}
    >>> rounded = joint.coarsen(bits=16)
    >>> caldist.evaluate(rounded, measures=["ece"])["ece"].upper is None
    True
    """
    if not isinstance(joint, Joint):
        message = (
            f"joint is of type {type(joint).__name__}; make a Joint first, for example with "
            "Joint.from_arrays(y_true, y_prob)."
        )
        raise TypeError(message)
    joint.normalized()  # raises for a joint without rows
    return {name: _evaluate(joint, name) for name in measure_names(measures)}


def measure_names(
    measures: object, known: Collection[str] = MEASURES, what: str = "known are"
) -> list[str]:
    """Return the names of measures, all that are known where None is passed."""
    if measures is None:
        return list(known)
    if isinstance(measures, str):
        message = f"measures is the text {measures!r}; pass a list of names, [{measures!r}]."
        raise TypeError(message)
    if not isinstance(measures, Iterable):
        message = f"measures is {_validate.show(measures)}; pass a list of names."
        raise TypeError(message)
    names = list(measures)
    for at, name in enumerate(names):
        if not isinstance(name, str) or name not in known:
            message = f"measures[{at}] is {_validate.show(name)}; {what} {', '.join(known)}."
            raise ValueError(message)
    return names


def _evaluate(joint: Joint, name: str) -> Evaluation:
    measure = MEASURES[name]
    value = measure.of_joint(joint)
    if joint.radius == 0:
        return Evaluation(value, value, value + measure.tolerance)
    if measure.rounding is None:
        return Evaluation(value, None, None)
    lower, upper = measure.rounding(joint, value)
    lower = max(0.0, lower)
    # Bounds of second order may leave the value on the cells' means outside.
    return Evaluation(min(max(value, lower), upper), lower, upper)
