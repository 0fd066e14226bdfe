"""What the losses accept, and the errors for everything else.

Shapes and types are checked where a loss is called, and cost nothing. Values are checked inside the
operators: there ``torch.compile`` sees no branch that depends on data, and a GPU is asked once.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from caldist.data import validate
from caldist.data.class_rows import ROW_SUM_TOLERANCE, fail_if_swapped, probability_matrix
from caldist.errors import InvalidInput, InvalidType

_INTEGERS = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


def real_tensor(value: object, name: str) -> Tensor:
    """Return a tensor of real numbers as it is, or raise."""
    if not isinstance(value, Tensor):
        reason = f"is of type {type(value).__name__}, but it must be a torch.Tensor"
        raise InvalidType(argument=name, reason=reason)
    if value.is_complex():
        reason = f"has dtype {value.dtype}, but it must hold real numbers"
        raise InvalidType(argument=name, reason=reason)
    return value


def _constant(value: object, name: str, like: Tensor, other: str) -> Tensor:
    """Return a tensor of one value per row that no gradient is wanted of."""
    tensor = real_tensor(value, name)
    if tensor.dim() != 1:
        reason = f"has shape {tuple(tensor.shape)}, but it must be one-dimensional"
        raise InvalidInput(argument=name, reason=reason)
    validate.check_size(name, tensor.shape[0], other, like.shape[0])
    if tensor.device != like.device:
        reason = f"is on {tensor.device} and {other} on {like.device}"
        raise InvalidInput(argument=name, reason=reason, remedy="Move one of them.")
    if tensor.requires_grad:
        raise InvalidInput(
            argument=name,
            reason="requires a gradient, and the loss has none for it",
            remedy=f"Pass {name}.detach().",
        )
    return tensor


def _weights(value: object, like: Tensor, other: str) -> Tensor | None:
    if value is None:
        return None
    weight = _constant(value, "sample_weight", like, other)
    return weight if weight.is_floating_point() else weight.double()


def _predictions(
    value: object, name: str, dimensions: int, wanted: str, remedy: str = ""
) -> Tensor:
    tensor = real_tensor(value, name)
    if not tensor.is_floating_point():
        reason = f"has dtype {tensor.dtype}, but it must be a floating-point tensor"
        raise InvalidType(argument=name, reason=reason)
    if tensor.dim() != dimensions:
        reason = f"has shape {tuple(tensor.shape)}, but {wanted}"
        raise InvalidInput(argument=name, reason=reason, remedy=remedy)
    if tensor.shape[0] == 0:
        raise InvalidInput(argument=name, reason="is empty", remedy="Pass at least one row.")
    return tensor


def working_precision(tensor: Tensor) -> Tensor:
    """Return float32 for the formats below it, which are too coarse to tell predictions apart."""
    return tensor if tensor.dtype in {torch.float32, torch.float64} else tensor.float()


def vectors(
    y_prob: object, y_true: object, sample_weight: object
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Check shapes and types; return predictions, labels and weights as they are."""
    wanted = "it must be one-dimensional, the probability of label 1 of each row"
    remedy = "For several classes use the multiclass losses."
    prob = _predictions(y_prob, "y_prob", 1, wanted, remedy)
    label = _constant(y_true, "y_true", prob, "y_prob")
    return prob, label, _weights(sample_weight, prob, "y_prob")


def binary(
    y_prob: object, y_true: object, sample_weight: object
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Check shapes and types; return predictions and labels as one row of a matrix, and weights."""
    prob, label, weight = vectors(y_prob, y_true, sample_weight)
    return working_precision(prob)[None], label[None], weight


def classes(
    preds: object, target: object, sample_weight: object
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Check shapes and types of a matrix of predictions, class numbers and weights."""
    if isinstance(preds, Tensor) and isinstance(target, Tensor):
        fail_if_swapped(target, preds, ("target", "preds"), "(preds, target)")
    wanted = "a matrix is needed, with a row per example and a column per class"
    matrix = _predictions(preds, "preds", 2, wanted)
    if matrix.shape[1] < 2:
        reason = f"has {matrix.shape[1]} columns, but a column per class needs at least two"
        raise InvalidInput(argument="preds", reason=reason)
    chosen = _constant(target, "target", matrix, "preds")
    weight = _weights(sample_weight, matrix, "preds")
    return working_precision(matrix), chosen, weight


def _array(tensor: Tensor) -> NDArray[Any]:
    """Return the numbers as NumPy has them, which knows no bfloat16."""
    tensor = tensor.detach().cpu()
    return tensor.to(torch.float64).numpy() if tensor.is_floating_point() else tensor.numpy()


def check_binary_values(prob: Tensor, label: Tensor, weight: Tensor | None) -> None:
    """Raise unless predictions lie in [0, 1], labels are 0 or 1 and weights are weights."""
    good = good_rows(prob, label)
    if weight is not None:
        good &= good_weights(weight)
    if not good:
        fail_binary(prob, label, weight)


def good_rows(prob: Tensor, label: Tensor) -> bool:
    """Return whether predictions and labels are such; the device is asked once, in few launches."""
    if prob.numel() == 0:
        return True
    ends, most = list(torch.aminmax(prob)), 1  # both ends are NaN where a value is
    if label.dtype in _INTEGERS:
        ends += torch.aminmax(label)
    elif label.dtype != torch.bool:
        most = 0
        ends += torch.aminmax(torch.addcmul(label, label, label, value=-1))  # 0 for 0 and 1 alone
    low, high, *of_labels = torch.stack(ends).tolist()
    return low >= 0 and high <= 1 and all(0 <= end <= most for end in of_labels)


def good_weights(weight: Tensor) -> bool:
    """Return whether the weights are such as arrays may have."""
    largest = weight.amax().double()  # in single precision both limits would be out of range
    small = (weight > 0) & (weight < validate.LEAST_RATIO * largest)
    usual = (largest >= validate.LEAST_LARGEST) & (largest <= validate.MOST_LARGEST)
    return bool((weight.amin() >= 0) & usual & ~small.any())


def fail_binary(prob: Tensor, label: Tensor, weight: Tensor | None) -> NoReturn:
    """Raise the error that names what is wrong with the values."""
    problems = (np.atleast_2d(_array(part)) for part in (prob, label))
    for prediction, outcome in zip(*problems, strict=True):
        validate.binary_inputs(
            outcome, prediction, remedy="The order is (y_prob, y_true).", takes_pos_label=False
        )
    if weight is not None:
        validate.weights(_array(weight), weight.shape[0])
        validate.check_largest("sample_weight", _array(weight))
    # Only if they have changed since they were checked.
    raise InvalidInput(argument="y_prob", reason="has changed during the call")


def check_class_values(prob: Tensor, target: Tensor, *, from_logits: bool) -> None:
    """Raise unless rows are probabilities that sum to 1 and targets are numbers of columns."""
    low, high = torch.aminmax(prob)
    off = (prob.sum(dim=1, dtype=torch.float64) - 1).abs().amax()
    good = (low >= 0) & (high <= 1) & (off <= ROW_SUM_TOLERANCE)
    columns = prob.shape[1]
    if target.is_floating_point():
        known = (target >= 0) & (target < columns) & (target.floor() == target)
    else:
        number = target.to(torch.int64)  # a narrower type would wrap the number of columns
        known = (number >= 0) & (number < columns)
    if bool(good & known.all()):
        return
    matrix = _array(prob)
    if from_logits:
        undefined = np.isnan(matrix).any(axis=1)
        if undefined.any():
            raise InvalidInput(
                argument="preds",
                index=validate.first(undefined),
                reason="has no softmax, because logits must not be NaN, and not +inf",
            )
    divided = "divide them by their sums, preds / preds.sum(dim=1, keepdim=True)"
    probability_matrix(matrix, "preds", remedy=divided)  # for its messages
    validate.fail(
        "target",
        _array(target),
        ~_array(known),
        f"with {columns} columns a class is an integer from 0 to {columns - 1}",
    )
