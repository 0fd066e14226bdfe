"""Calibration as metrics of a training loop, with a state of fixed size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from caldist.data import grid as _grid
from caldist.data import validate
from caldist.data.class_rows import EXACT_SUM, ClassJoints
from caldist.data.joint import Joint
from caldist.errors import InvalidInput, refuse_option
from caldist.measures.base import Measure
from caldist.measures.evaluation import evaluate
from caldist.measures.registry import find_all, shown_in
from caldist.multiclass.classwise import enclosed
from caldist.torch import _checks
from caldist.torch._multiclass import _problems, class_numbers
from caldist.torch._sums import cell_sums

_PLACES = 2.0**_grid.PLACE_BITS
_ONE = 2.0**52  # what probabilities are multiplied by to be added up as integers


class CalibrationDistance(Metric):
    """Measures of calibration, accumulated over batches and processes.

    A subclass of ``torchmetrics.Metric``. Rows are counted on a grid of integers, so the result
    does not depend on batches, their order or the number of processes, to the bit, and the state
    does not grow.

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
        :func:`caldist.multiclass.top_label`.
    from_logits : bool, optional
        With ``reduction``, whether predictions are logits or probabilities. No guess is made: it
        must be said.
    **options
        For ``torchmetrics.Metric``.

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
        with _answering(CalibrationDistance.__init__, options):
            super().__init__(**options)
        self.measures = tuple(find_all(measures, shown_in("evaluate")))
        self.bits = validate.check_count("bits", bits, maximum=24)
        if reduction is not None:
            validate.check_choice("reduction", reduction, ("top_label",))
        if (from_logits is None) != (reduction is None):
            raise InvalidInput(
                argument="reduction",
                value=reduction,
                reason=f"from_logits is {from_logits!r}",
                remedy="Pass both for several classes, and neither for the probability of label 1. "
                "Apply torch.sigmoid to binary logits first.",
            )
        self.reduction = reduction
        self.from_logits = from_logits
        self.add_state("cells", default=_empty(self.bits), dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add rows: probabilities, or a matrix of them, and labels.

        Bad values raise and leave the state as it was.
        """
        probability, label = self._rows(preds, target)
        _count(self.cells, probability, label, 0, bits=self.bits)

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
        return _joint(self.cells, self.bits)

    def compute(self) -> dict[str, Tensor]:
        """Return the measures of all rows so far, with what rounding leaves certain of them."""
        found = evaluate(_not_empty(self.joint()), measures=self.measures)
        values = {}
        for name, evaluation in found.items():
            values[name] = evaluation.value
            if evaluation.lower is not None and evaluation.upper is not None:
                values[f"{name}_lower"], values[f"{name}_upper"] = (
                    evaluation.lower,
                    evaluation.upper,
                )
        return _tensors(values, self.device)


class MulticlassCalibrationDistance(Metric):
    r"""The classwise distance to calibration, accumulated over batches and processes.

    .. math:: \mathrm{CW} = \tfrac12 \sum_j \mathrm{ldCE}(v_j, 1[y = j])

    A subclass of ``torchmetrics.Metric``, as :class:`caldist.torch.CalibrationDistance`. The rows
    of each class against the rest are counted on a grid of integers, so the result does not depend
    on batches, their order or the number of processes, to the bit, and the state does not grow.

    **What it means.** ``compute()`` returns ``classwise_distance``: at least this share of each
    prediction's probability mass has to move, on average, before the predictions can be
    calibrated; see :func:`caldist.multiclass.classwise_distance`. With two classes it is the lower
    distance of the second, to the bit. ``joints()`` gives a joint for each class against the rest,
    for :func:`caldist.multiclass.classwise_table`, which says which class accounts for how much.

    **Rounding.** Of the probabilities in a cell of width :math:`2^{-\mathrm{bits}}` the sums are
    kept. Between ``classwise_distance_lower`` and ``classwise_distance_upper`` the value on the
    rows themselves lies for certain.

    **Cost.** O(rows × classes) for an update, on the device of the predictions; 0.2 MB of state for
    each class with 12 bits, twice as much with each bit more.

    Parameters
    ----------
    n_classes : int
        How many columns the predictions have.
    from_logits : bool
        Whether predictions are logits, which get a softmax, or probabilities, whose rows sum to 1
        within 0.0075 and are divided by their sum where that is not 1. No guess is made.
    bits : int
        2^bits cells between 0 and 1.
    **options
        For ``torchmetrics.Metric``.

    Examples
    --------
    >>> import torch
    >>> from caldist.torch import MulticlassCalibrationDistance
    >>> metric = MulticlassCalibrationDistance(3, from_logits=False)
    >>> metric.update(torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]), torch.tensor([0, 2]))
    >>> metric.update(torch.tensor([[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]), torch.tensor([2, 1]))
    >>> round(metric.compute()["classwise_distance"].item(), 4)
    0.1875
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    cells: Tensor

    def __init__(
        self, n_classes: int, *, from_logits: bool, bits: int = 12, **options: Any
    ) -> None:
        with _answering(MulticlassCalibrationDistance.__init__, options):
            super().__init__(**options)
        self.n_classes = validate.check_count("n_classes", n_classes, minimum=2)
        self.from_logits = validate.check_flag("from_logits", from_logits)
        self.bits = validate.check_count("bits", bits, maximum=24)
        empty = _empty(self.bits).repeat(self.n_classes, 1, 1)
        self.add_state("cells", default=empty, dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add rows: a matrix of logits or probabilities, and the number of each row's class.

        Bad values raise and leave the state as it was.
        """
        probability, number = self._rows(preds, target)
        column = torch.arange(self.n_classes, device=probability.device)
        label = number[:, None] == column
        start = (column * self.cells.shape[1]).expand_as(label)
        parts = (part.flatten() for part in (probability, label, start))
        _count(self.cells.view(-1, 3), *parts, bits=self.bits)

    def forward(self, preds: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Add rows and return the values of these rows alone."""
        self._rows(preds, target)  # before torchmetrics sets the other rows aside, to lose them
        values: dict[str, Tensor] = super().forward(preds, target)
        return values

    def _rows(self, preds: object, target: object) -> tuple[Tensor, Tensor]:
        """Return probabilities that sum to 1 in double precision and class numbers, or raise."""
        tensor, chosen = (
            _checks.real_tensor(value, name).detach()
            for name, value in (("preds", preds), ("target", target))
        )
        matrix, chosen, _ = _checks.classes(tensor, chosen, None)
        if matrix.shape[1] != self.n_classes:
            raise InvalidInput(
                argument="preds",
                reason=f"has {matrix.shape[1]} columns, but n_classes is {self.n_classes}",
                remedy="Pass a column per class.",
            )
        matrix = matrix.to(torch.float64)
        probability = matrix.softmax(dim=1) if self.from_logits else matrix
        number = class_numbers(probability, chosen, self.from_logits)
        # Integers add up to the same in any order, so that batches and devices do not matter.
        total = (probability * _ONE).round().to(torch.int64).sum(dim=1).to(torch.float64) / _ONE
        total = torch.where((total - 1).abs() > EXACT_SUM, total, 1.0)
        return (probability / total[:, None]).clamp(max=1.0), number

    def joints(self) -> list[Joint]:
        """Return the joint distribution of each class against the rest, of this process so far.

        Of all processes inside ``with metric.sync_context():``, as ``compute`` has it.
        """
        return [_joint(cells, self.bits) for cells in self.cells]

    def compute(self) -> dict[str, Tensor]:
        """Return the classwise distance of all rows so far, and what it lies between."""
        joints = self.joints()
        _not_empty(joints[0])
        value, lower, upper = enclosed(ClassJoints.of(joints, None))
        name = "classwise_distance"
        return _tensors({name: value, f"{name}_lower": lower, f"{name}_upper": upper}, self.device)


@contextmanager
def _answering(function: Callable[..., Any], options: Mapping[str, Any]) -> Iterator[None]:
    """Answer options that torchmetrics does not have with those that were meant."""
    try:
        yield
    except (TypeError, ValueError) as error:
        for name, value in options.items():
            if re.search(f"nexpected keyword argument.*[`']{re.escape(name)}[`']", str(error)):
                refuse_option(function, name, value)
        raise


def _empty(bits: int) -> Tensor:
    """Return counts, and sums of places and of their squares, of each cell and label: 0."""
    return torch.zeros(2 * (2**bits + 1), 3, dtype=torch.int64)


def _count(
    cells: Tensor, probability: Tensor, label: Tensor, start: Tensor | int, *, bits: int
) -> None:
    """Add rows to the cells, which begin at ``start`` for each."""
    # Products with powers of two, and what is left of them without their whole part, are exact.
    v = probability.to(torch.float64)
    place = (v * 2.0 ** (bits + _grid.PLACE_BITS)).to(torch.int64)
    code = (place >> _grid.PLACE_BITS).mul_(2).add_(label.to(torch.int64)).add_(start)
    place &= 2**_grid.PLACE_BITS - 1
    fraction = (v * 2.0**bits).frac_()
    square = (fraction * fraction).mul_(_PLACES).to(torch.int64)
    columns = torch.ones_like(place), place, square
    if len(code) < len(cells) and code.device == cells.device:
        cells.index_add_(0, code, torch.stack(columns, dim=1))
        return
    # Column by column is faster, but goes over all cells; and what is moved are sums, not rows.
    sums = cell_sums(code, *columns, count=len(cells))
    cells += torch.stack(sums, dim=1).to(cells.device)


def _joint(cells: Tensor, bits: int) -> Joint:
    """Return the joint distribution of the rows in the cells."""
    sums = cells.cpu().numpy().reshape(-1, 2, 3)
    cell = np.flatnonzero(sums[:, :, 0].any(axis=1))
    if cell.size == 0:
        return Joint.empty(bits=bits)
    (count0, place0, square0), (count1, place1, square1) = (sums[cell, label].T for label in (0, 1))
    return Joint.from_cells(cell, count0, count1, place0, place1, square0, square1, bits=bits)


def _not_empty(joint: Joint) -> Joint:
    if joint.n_rows == 0:
        remedy = "Add some with update(preds, target)."
        raise InvalidInput(argument="the metric", reason="has no rows", remedy=remedy)
    return joint


def _tensors(values: dict[str, float], device: torch.device) -> dict[str, Tensor]:
    return {
        name: torch.tensor(value, dtype=torch.float64, device=device)
        for name, value in values.items()
    }


def _binary(preds: object, target: object) -> tuple[Tensor, Tensor]:
    """Return predictions and labels as vectors, or raise."""
    probability = _checks.real_tensor(preds, "preds").detach()
    label = _checks.real_tensor(target, "target").detach()
    if probability.shape != label.shape:
        raise InvalidInput(
            argument="preds",
            reason=f"has shape {tuple(probability.shape)} and target {tuple(label.shape)}, but the "
            "two must be the same",
            remedy="For a matrix with a column per class use MulticlassCalibrationDistance, or "
            "reduction='top_label'.",
        )
    if probability.device != label.device:
        reason = f"is on {probability.device} and target on {label.device}"
        raise InvalidInput(argument="preds", reason=reason, remedy="Move one of them.")
    probability, label = probability.flatten(), label.flatten()
    if probability.numel() == 0:
        raise InvalidInput(argument="preds", reason="is empty", remedy="Pass at least one row.")
    if probability.is_floating_point():
        probability = _checks.working_precision(probability)
    # One question to the device; what is wrong is found on the CPU.
    if not _checks.good_rows(probability, label):
        validate.named_inputs(
            label.double().cpu().numpy(),
            {"preds": probability.double().cpu().numpy()},
            true_name="target",
            remedy="The order is (preds, target).",
            takes_pos_label=False,
        )
    return probability, label
