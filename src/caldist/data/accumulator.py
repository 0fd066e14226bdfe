"""``Accumulator``: rows that come in batches, added up on a grid."""

from __future__ import annotations

import threading
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows, refuse_beside_joint
from caldist.errors import answering


class Accumulator:
    """Adds up batches of rows to a :class:`caldist.Joint` of fixed size.

    Any division of the rows into batches, in any order, gives the same joint to the bit, except
    that sums of weights are rounded. A batch that is refused leaves no trace. Several threads may
    update one accumulator; for several processes give each its own and add up their joints.

    **Cost.** O(rows + cells) a batch, and memory for at most 2^bits + 1 cells.

    Parameters
    ----------
    bits : int
        The grid has 2^bits cells between 0 and 1.

    Examples
    --------
    >>> import caldist
    >>> accumulator = caldist.Accumulator()
    >>> accumulator.update([0, 1], [0.2, 0.9]).update([1], [0.9])
    Accumulator(bits=16, n_rows=3)
    >>> round(caldist.smooth_ce(accumulator.joint), 4)
    0.0467
    """

    @answering
    def __init__(self, bits: int = 16) -> None:
        self._joint = Joint.empty(bits)
        self._bits = int(bits)
        self._lock = threading.Lock()

    @answering
    def update(
        self,
        y_true: ArrayLike | Joint,
        y_prob: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
    ) -> Self:
        """Add rows, or a joint of them, and return the accumulator itself.

        Parameters
        ----------
        y_true : array-like of 0 and 1, or Joint
        y_prob : array-like in [0, 1]
            The predicted probability of label 1; left out where a joint is given.
        sample_weight : array-like, optional
        pos_label : optional
            The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
        """
        if isinstance(y_true, Joint):  # also one without rows
            refuse_beside_joint(y_prob=y_prob, sample_weight=sample_weight, pos_label=pos_label)
            batch = y_true.coarsen(self._bits)
        else:
            batch = Rows.of(
                y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label
            ).round_to_grid(self._bits)
            if sample_weight is not None:
                validate.check_largest("sample_weight", np.asarray(sample_weight))
        with self._lock:
            self._joint = self._joint + batch
        return self

    @property
    def joint(self) -> Joint:
        """What has been added up so far, as a value that later batches do not change."""
        return self._joint

    def __repr__(self) -> str:
        return f"Accumulator(bits={self._bits}, n_rows={self._joint.n_rows})"

    def __getstate__(self) -> dict[str, Any]:
        return {"bits": self._bits, "joint": self._joint}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._bits, self._joint = state["bits"], state["joint"]
        self._lock = threading.Lock()
