"""Several classes: measures, intervals, tests and proofs for matrices.

Every function takes ``(y_true, y_prob)`` with a matrix that has a row per example and a column per
class, and labels 0, 1, … or those listed in ``classes``. Distances are in total variation: the
share of probability mass that has to move. With two classes they are the binary ones.
"""

from caldist.multiclass.bracket import certify, distance_bracket
from caldist.multiclass.classwise import (
    ClassLine,
    ClassTable,
    classwise_distance,
    classwise_table,
)
from caldist.multiclass.comparison import compare
from caldist.multiclass.intervals import confidence_interval
from caldist.multiclass.kernel import kernel_ce
from caldist.multiclass.reductions import one_vs_rest, top_label
from caldist.multiclass.smooth import smooth_ce
from caldist.multiclass.subsets import Subset, worst_subset
from caldist.multiclass.testing import calibration_test

__all__ = [
    "ClassLine",
    "ClassTable",
    "Subset",
    "calibration_test",
    "certify",
    "classwise_distance",
    "classwise_table",
    "compare",
    "confidence_interval",
    "distance_bracket",
    "kernel_ce",
    "one_vs_rest",
    "smooth_ce",
    "top_label",
    "worst_subset",
]
