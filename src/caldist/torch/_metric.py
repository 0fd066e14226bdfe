"""Calibration as a metric of a training loop, with a state of fixed size."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from caldist import _validate
from caldist.data import grid as _grid
from caldist.data.joint import Joint
from caldist.measures._measure import Measure
from caldist.measures.evaluation import evaluate
from caldist.measures.registry import find_all, shown_in
from caldist.torch import _checks
from caldist.torch._multiclass import _problems

if TYPE_CHECKING:
    from caldist.torch._plain_metric import PlainMetric as Metric
else:
    try:
        from torchmetrics import Metric
    except ImportError:
        from caldist.torch._plain_metric import PlainMetric as Metric

_PLACES = 2.0**_grid.PLACE_BITS


class CalibrationDistance(Metric):
    """Measures of calibration, accumulated over batches and processes.

    A subclass of ``torchmetrics.Metric`` where torchmetrics is installed, and otherwise a module
    with its ``update``, ``compute``, ``forward``, ``reset`` and ``sync_context``. Rows are counted
    on a grid of integers, so the result does not depend on batches, their order or the number of
    processes, to the bit, and the state does not grow.

    **What it means.** ``compute()`` returns for each measure its value, and ``NAME_lower`` and
    ``NAME_upper``, between which the value on the rows themselves lies for certain. Measures that
    rounding can move without bound have no such entries. ``joint()`` gives the distribution, for
    :func:`caldist.evaluate` and :func:`caldist.confidence_interval`.

    **Cost.** O(rows) for an update, on the device of the predictions; 3 MB of state with 16 bits.

    Parameters
    ----------
    measures : list of measures or names, or None
        As in :func:`caldist.evaluate`; None for all that are finite for every sample.
    bits : int
        2^bits cells between 0 and 1.
    reduction : None or "top_label"
        None for the probability of label 1, "top_label" for a matrix with a column per class, as
        :func:`caldist.top_label`.
    from_logits : bool, optional
        With ``reduction``, whether predictions are logits or probabilities. No guess is made: it
        must be said.
    **options
        For ``torchmetrics.Metric``, where that is installed.

    Examples
    --------
    >>> import torch
    >>> from caldist.torch import CalibrationDistance
    >>> metric = CalibrationDistance(measures=["smooth_ce"])
    >>> metric.update(torch.tensor([0.25, 0.5]), torch.tensor([0, 1]))
    >>> metric.update(torch.tensor([0.5, 0.75]), torch.tensor([0, 1]))
    >>> metric.compute()["smooth_ce"].item()
    0.03125
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    cells: Tensor

    def __init__(
        self,
        measures: Iterable[str | Measure[Any]] | None = ("smooth_ce", "lower_distance"),
        *,
        bits: int = 16,
        reduction: Literal["top_label"] | None = None,
        from_logits: bool | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.measures = tuple(find_all(measures, shown_in("evaluate")))
        self.bits = _validate.check_count("bits", bits, maximum=24)
        if reduction is not None:
            _validate.check_choice("reduction", reduction, ("top_label",))
        if (from_logits is None) != (reduction is None):
            message = (
                f"reduction is {reduction!r} and from_logits is {from_logits!r}: say both for "
                "several classes, and neither for the probability of label 1. Binary logits get "
                "torch.sigmoid first."
            )
            raise ValueError(message)
        self.reduction = reduction
        self.from_logits = from_logits
        empty = torch.zeros(2 * (2**self.bits + 1), 3, dtype=torch.int64)
        self.add_state("cells", default=empty, dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add rows: probabilities, or a matrix of them, and labels.

        Bad values raise and leave the state as it was.
        """
        probability, label = self._rows(preds, target)
        # A product with a power of two, and the difference to the floor, are exact.
        scaled = probability.to(torch.float64) * 2.0**self.bits
        cell = scaled.floor()
        fraction = scaled - cell
        sums = torch.stack(
            (
                torch.ones_like(cell),
                (fraction * _PLACES).floor(),
                (fraction * fraction * _PLACES).floor(),
            ),
            dim=1,
        )
        code = 2 * cell.to(torch.int64) + label.to(torch.int64)
        self.cells.index_add_(0, code.to(self.cells.device), sums.to(self.cells))

    def forward(self, preds: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Add rows and return the values of these rows alone."""
        self._rows(preds, target)  # before torchmetrics sets the other rows aside, to lose them
        values: dict[str, Tensor] = super().forward(preds, target)
        return values

    def _rows(self, preds: object, target: object) -> tuple[Tensor, Tensor]:
        """Return predictions and labels as vectors, or raise."""
        if self.reduction is None:
            return _binary(preds, target)
        problems = _problems(preds, target, None, self.reduction, self.from_logits)
        return problems[0][0].detach(), problems[1][0]

    def joint(self) -> Joint:
        """Return the joint distribution of all rows of this process so far.

        Of all processes inside ``with metric.sync_context():``, as ``compute`` has it.
        """
        sums = self.cells.cpu().numpy().reshape(-1, 2, 3)
        cell = np.flatnonzero(sums[:, :, 0].any(axis=1))
        if cell.size == 0:
            return Joint.empty(bits=self.bits)
        (count0, place0, square0), (count1, place1, square1) = (
            sums[cell, label].T for label in (0, 1)
        )
        return Joint.from_cells(
            cell, count0, count1, place0, place1, square0, square1, bits=self.bits
        )

    def compute(self) -> dict[str, Tensor]:
        """Return the measures of all rows so far, with what rounding leaves certain of them."""
        joint = self.joint()
        if joint.n_rows == 0:
            message = "the metric has no rows: add some with update(preds, target)."
            raise ValueError(message)
        found = evaluate(joint, measures=self.measures)
        values = {}
        for name, evaluation in found.items():
            values[name] = evaluation.value
            if evaluation.lower is not None and evaluation.upper is not None:
                values[f"{name}_lower"], values[f"{name}_upper"] = (
                    evaluation.lower,
                    evaluation.upper,
                )
        return {
            name: torch.tensor(value, dtype=torch.float64, device=self.device)
            for name, value in values.items()
        }


def _binary(preds: object, target: object) -> tuple[Tensor, Tensor]:
    """Return predictions and labels as vectors, or raise."""
    probability = _checks.real_tensor(preds, "preds").detach()
    label = _checks.real_tensor(target, "target").detach()
    if probability.shape != label.shape:
        message = (
            f"preds has shape {tuple(probability.shape)} and target {tuple(label.shape)}: they "
            "must be the same. For a matrix with a column per class say reduction='top_label'."
        )
        raise ValueError(message)
    if probability.device != label.device:
        message = f"preds is on {probability.device} and target on {label.device}: move one."
        raise ValueError(message)
    probability, label = probability.flatten(), label.flatten()
    if probability.numel() == 0:
        message = "preds is empty: at least one row is needed."
        raise ValueError(message)
    good = (probability >= 0) & (probability <= 1) & ((label == 0) | (label == 1))
    if not bool(good.all()):  # one question to the device; what is wrong is found on the CPU
        _validate.named_inputs(
            label.double().cpu().numpy(),
            {"preds": probability.double().cpu().numpy()},
            true_name="target",
            remedy="The order is (preds, target).",
        )
    return probability, label
