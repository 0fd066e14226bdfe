"""MulticlassCalibrationDistance: the classwise distance from counts."""

from copy import deepcopy

import pytest

import caldist
import class_oracles as oracles
from caldist import multiclass
from torch_support import torch

import caldist.torch  # isort: skip

NAME = "classwise_distance"


@pytest.fixture
def metric_class():
    pytest.importorskip("torchmetrics")
    from caldist.torch import MulticlassCalibrationDistance

    return MulticlassCalibrationDistance


def sample(n=1500, k=4, *, seed=0, dtype=torch.float64):
    y, V = oracles.softmax(n, k, 1.5, 1.5, seed)
    return torch.tensor(V, dtype=dtype), torch.tensor(y)


def whole(rows, bits=12):
    """The joints of all classes, by the functions for arrays."""
    preds, target = (part.numpy() for part in rows)
    return [
        caldist.Joint.from_arrays(target == j, preds[:, j]).coarsen(bits)
        for j in range(preds.shape[1])
    ]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7, 400, 5000])
def test_batches_do_not_matter(metric_class, size):
    rows = sample(n=60 if size == 1 else 1500)
    metric = metric_class(4, from_logits=False)
    for batch in zip(*(part.split(size) for part in rows), strict=True):
        metric.update(*batch)
    assert metric.joints() == whole(rows)


@pytest.mark.parametrize("size", [1, 7, 400])
def test_batches_do_not_matter_where_rows_are_divided_by_their_sum(metric_class, size):
    preds, target = sample(n=400, k=37, dtype=torch.float32)
    together, apart = (metric_class(37, from_logits=False, bits=6) for _ in range(2))
    together.update(preds, target)
    for batch in zip(preds.split(size), target.split(size), strict=True):
        apart.update(*batch)
    assert torch.equal(together.cells, apart.cells)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("bits", [4, 12])
def test_the_value_on_the_rows_lies_between_the_ends(metric_class, dtype, bits):
    preds, target = sample(dtype=dtype)
    metric = metric_class(4, from_logits=False, bits=bits)
    metric.update(preds, target)
    found = metric.compute()
    exact = multiclass.classwise_distance(target.numpy(), preds.double().numpy(), tol=1e-6)
    lower, upper = found[f"{NAME}_lower"].item(), found[f"{NAME}_upper"].item()
    assert lower - 1e-6 <= exact <= upper + 1e-6
    assert lower <= found[NAME].item() <= upper
    assert upper - lower < (0.1 if bits == 4 else 2e-4)
    again = multiclass.classwise_distance(metric.joints())
    assert found[NAME].item() == pytest.approx(again, abs=2 * 4e-5 + (bits == 4) * 0.1)


@pytest.mark.parametrize("k", [2, 3])
def test_logits_get_a_softmax(metric_class, k):
    preds, target = sample(k=k)
    logits, probabilities = (metric_class(k, from_logits=said) for said in (True, False))
    logits.update(preds.log() + 3, target)
    probabilities.update(preds, target)
    assert logits.compute()[NAME].item() == pytest.approx(
        probabilities.compute()[NAME].item(), abs=1e-6
    )


def test_two_classes_are_the_binary_metric_to_the_bit(metric_class):
    preds, target = sample(k=2)
    metric = metric_class(2, from_logits=False)
    metric.update(preds, target)
    binary = caldist.torch.CalibrationDistance(measures=["lower_distance"], bits=12)
    binary.update(preds[:, 1], target)
    assert metric.joints()[1] == binary.joint()
    found, expected = metric.compute(), binary.compute()
    for end in ("", "_lower", "_upper"):
        assert found[NAME + end].item() == expected["lower_distance" + end].item()


def test_the_order_of_the_classes_does_not_matter(metric_class):
    preds, target = sample()
    order = torch.tensor([2, 0, 3, 1])
    one, other = (metric_class(4, from_logits=False) for _ in range(2))
    one.update(preds, target)
    other.update(preds[:, order], order.argsort()[target])
    for end in ("", "_lower", "_upper"):
        value = one.compute()[NAME + end].item()
        assert other.compute()[NAME + end].item() == pytest.approx(value, abs=1e-12)


def test_the_state_does_not_grow(metric_class):
    metric = metric_class(3, from_logits=False, bits=8)
    shape = metric.cells.shape
    for seed in range(3):
        metric.update(*sample(k=3, seed=seed))
    assert metric.cells.shape == shape == (3, 2 * (2**8 + 1), 3)
    assert metric.joints()[0].n_rows == 4500


def test_the_table_of_the_joints(metric_class):
    rows = sample()
    metric = metric_class(4, from_logits=False)
    metric.update(*rows)
    table = multiclass.classwise_table(metric.joints(), confidence_level=None)
    assert table.value == pytest.approx(metric.compute()[NAME].item(), abs=1e-4)


def test_calling_resetting_copying_and_merging(metric_class):
    rows = sample()
    first, second = (tuple(part[cut] for part in rows) for cut in (slice(500), slice(500, None)))
    metric = metric_class(4, from_logits=False)
    metric.update(*first)
    alone = metric_class(4, from_logits=False)
    alone.update(*second)
    assert metric(*second)[NAME].item() == alone.compute()[NAME].item()
    assert metric.joints() == whole(rows)
    copy = deepcopy(metric)
    copy.reset()
    assert copy.joints()[0].n_rows == 0
    assert metric.joints() == whole(rows)
    copy.update(*first)
    copy.merge_state(alone)
    assert copy.joints() == whole(rows)
    alone.merge_state({"cells": metric_class(4, from_logits=False).cells})
    assert alone.joints() == whole(second)


@pytest.mark.parametrize(
    ("preds", "target", "message"),
    [
        ([[0.5, 0.5, 0.0], [0.5, 0.6, 0.2]], [0, 1], r"preds\[1\] sums to 1.3"),
        ([[0.5, float("nan"), 0.5]], [0], r"preds\[0, 1\] is nan"),
        ([[3.0, -1.0, -1.0]], [0], r"preds\[0, 0\] is 3.*softmax"),
        ([[0.5, 0.25, 0.25]], [3], r"target\[0\] is 3"),
        ([[0.5, 0.5]], [1], "preds has 2 columns, but n_classes is 3"),
        ([0.5, 0.5], [1, 0], r"preds has shape \(2,\), but a matrix is needed"),
        ([[0.5, 0.25, 0.25]], [0, 1], "target has 2 values and preds has 1"),
    ],
)
def test_bad_values_raise_and_change_nothing(metric_class, preds, target, message):
    metric = metric_class(3, from_logits=False)
    rows = sample(k=3)
    metric.update(*rows)
    for call in (metric.update, metric):
        with pytest.raises(ValueError, match=message):
            call(torch.tensor(preds), torch.tensor(target))
    assert metric.joints() == whole(rows)


def test_swapped_arguments_say_so(metric_class):
    preds, target = sample(k=3)
    with pytest.raises(ValueError, match=r"look swapped.* The order is \(preds, target\)"):
        metric_class(3, from_logits=False).update(target, preds)


@pytest.mark.filterwarnings("ignore:The ``compute`` method")  # of torchmetrics, in its own words
def test_without_rows(metric_class):
    with pytest.raises(ValueError, match=r"no rows\. Add some with update\(preds, target\)"):
        metric_class(3, from_logits=True).compute()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_classes": 1, "from_logits": True}, "n_classes is 1"),
        ({"n_classes": 3, "from_logits": True, "bits": 0}, "bits is 0"),
    ],
)
def test_bad_options(metric_class, options, message):
    with pytest.raises(ValueError, match=message):
        metric_class(**options)


def test_logits_are_never_guessed(metric_class):
    with pytest.raises(TypeError, match="from_logits"):
        metric_class(3)
