"""Rows that count one each, for the measures that have no weighted form."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.types import Integers
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import InvalidInput


def counted_joint(
    y_true: ArrayLike | Joint,
    y_prob: ArrayLike | None,
    sample_weight: object,
    why: str,
    pos_label: object,
) -> Joint:
    """Return the distribution of rows that count one each, at their own predictions.

    Others are refused, and ``why`` says what for: weights, and joints that have them, that do not
    say how many rows they are of, or whose predictions were rounded.
    """
    if sample_weight is not None and not isinstance(y_true, Joint):
        remedy = "Leave sample_weight out."
        raise InvalidInput(argument="sample_weight", reason=f"was given, but {why}", remedy=remedy)
    joint = Rows.of(
        y_true,
        y_prob,
        sample_weight=cast("ArrayLike | None", sample_weight),
        pos_label=pos_label,
    ).joint
    if joint.radius > 0:
        found = "holds rounded predictions"
        remedy = "Pass labels and predictions, or a joint of them that is not on a grid."
    elif joint.weight_square0 is not None:
        found = "holds rows with weights"
        remedy = "Make it without sample_weight."
    elif not joint.counts_rows:
        found = "has masses that are not known to be numbers of rows"
        remedy = "Make it of labels and predictions, or of whole masses with n_rows, their sum."
    else:
        return joint
    raise InvalidInput(argument="joint", reason=f"{found}, but {why}", remedy=remedy)


def row_counts(joint: Joint) -> tuple[Integers, Integers]:
    """Return the rows of label 0 and of label 1 at each prediction, as integers."""
    return joint.mass0.astype(np.int64), joint.mass1.astype(np.int64)
