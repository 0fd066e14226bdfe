"""All measures of one joint distribution at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from caldist._util.brief import brief
from caldist._util.numbers import least, most
from caldist._util.results import Result
from caldist._util.text_tables import aligned
from caldist.data.doubts import warn_about
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import answering
from caldist.measures.base import Measure
from caldist.measures.registry import find_all, shown_in


@dataclass(frozen=True)
class Evaluation(Result):
    """A measure's value on the rows, and what is certain about it.

    ``lower`` and ``upper`` contain the exact value on the unrounded predictions, up to the rounding
    of the computation itself. They equal ``value`` where nothing was rounded (the lower distance is
    known to its tolerance, the upper distance from above), and are None where no bound exists.
    """

    value: float
    lower: float | None
    upper: float | None

    def __str__(self) -> str:
        if self.lower is None or self.upper is None:
            return f"{self.value:.6g}, what rounding did to it is not bounded"
        if self.lower == self.upper:
            return f"{self.value:.6g}"
        return (
            f"{self.value:.6g}, certainly between {least(self.lower, 6)} and {most(self.upper, 6)}"
        )


class Evaluations(Result, dict[str, Evaluation]):
    """The result of :func:`caldist.evaluate`: a dict from names of measures to evaluations.

    It prints as a table, shows as one in a notebook, and has ``to_dict``, ``to_frame`` and
    ``to_latex``, with a line for each measure.
    """

    def __repr__(self) -> str:
        return brief("Evaluations", {name: found.value for name, found in self.items()})

    def __str__(self) -> str:
        return "\n".join(aligned([[name, str(found)] for name, found in self.items()], {0, 1}))

    def to_dict(self) -> dict[str, Any]:
        """Return value, lower and upper of each measure, ready for JSON."""
        return {name: found.to_dict() for name, found in self.items()}

    def _lines(self) -> list[dict[str, Any]]:
        return [{"measure": name} | found.to_dict() for name, found in self.items()]


@answering
def evaluate(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None = None,
    *,
    measures: Iterable[str | Measure[Any]] | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> Evaluations:
    """Compute measures of rows or of their joint, with the certified effect of rounding.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or Joint
        A joint stands for labels, predictions and weights at once.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    measures : list of measures or names, optional
        Which ones, ``caldist.kernel_ce.using(bandwidth=0.1)`` among them; by default all that are
        finite for every sample.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.

    Returns
    -------
    Evaluations
        A dict from the name of each measure, with its options if it has any, to its
        :class:`Evaluation`; it prints as a table.

    Warns
    -----
    UserWarning
        If the scores of fifty rows or more are the labels themselves, are only 0 and 1, or surely
        rank backwards.

    Examples
    --------
    >>> import caldist
    >>> joint = caldist.Joint.from_arrays([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    >>> caldist.evaluate(joint, measures=["smooth_ce"])
    Evaluations(smooth_ce=0.03125)
    >>> print(caldist.evaluate(joint, measures=["smooth_ce", "brier_score"]))
    smooth_ce    0.03125
    brier_score  0.15625
    >>> rounded = joint.coarsen(bits=16)
    >>> caldist.evaluate(rounded, measures=[caldist.ece])["ece"].upper is None
    True
    """
    chosen = find_all(measures, shown_in("evaluate"))
    rows = Rows.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    found = Evaluations(
        {str(measure): Evaluation(*measure.enclosed(rows.joint)) for measure in chosen}
    )
    warn_about(rows)  # now, as they may be sorted
    return found
