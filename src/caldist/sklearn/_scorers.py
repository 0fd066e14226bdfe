"""Measures as scorers of scikit-learn, by name."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caldist.measures.base import Measure
from caldist.measures.registry import all_measures, find


@dataclass(frozen=True)
class CalibrationScorer:
    """A measure of calibration as a scorer: the larger, the better, so the measure with a minus.

    Called with a fitted classifier of two classes, features and labels, as scikit-learn calls its
    scorers. The second of the classifier's ``classes_`` is what the probabilities are of, so labels
    may be any two values.

    Attributes
    ----------
    measure
        The name of the measure.
    """

    measure: str

    def __call__(
        self,
        estimator: Any,
        X: Any,  # noqa: N803 -- the name scikit-learn passes
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return minus the measure of the classifier's predictions."""
        from caldist.plots.inputs import estimator_predictions

        label, prediction = estimator_predictions(estimator, X, y)
        options = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)}
        return -float(find(self.measure)(label, prediction, **options))


def _complete(measure: Measure[Any]) -> bool:
    """Return whether it can be called without options."""
    options = inspect.signature(measure).parameters.values()
    return all(item.default is not item.empty for item in options if item.name != "y_true")


#: From ``neg_`` and the name of each measure that needs no options to its scorer, for
#: ``cross_validate(..., scoring=SCORERS)`` or, one of them, ``scoring=SCORERS["neg_smooth_ce"]``.
SCORERS: dict[str, CalibrationScorer] = {
    f"neg_{name}": CalibrationScorer(name)
    for name, measure in all_measures().items()
    if _complete(measure)
}
