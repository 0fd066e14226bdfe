"""Bad input to the binary losses is an error that names argument, value and place."""

import inspect
import math
from functools import partial

import pytest

from torch_support import DEVICES, torch

pytest.importorskip("torchmetrics")

import caldist.torch  # isort: skip
from caldist.torch import (  # isort: skip
    CalibrationDistance,
    MulticlassCalibrationDistance,
    kernel_ce_loss,
    multiclass_kernel_ce_loss,
    multiclass_smooth_ce_loss,
    smooth_ce_loss,
)

LOSSES = {
    "laplace": kernel_ce_loss,
    "gaussian": partial(kernel_ce_loss, kernel="gaussian"),
    "smooth": smooth_ce_loss,
}
everywhere = pytest.mark.parametrize(
    ("loss", "device"), [(loss, device) for loss in LOSSES.values() for device in DEVICES]
)


@everywhere
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, r"y_prob\[2\] is nan: .*Drop or fill"),
        (math.inf, r"y_prob\[2\] is inf: a probability lies between 0 and 1"),
        (-0.5, r"y_prob\[2\] is -0\.5: .* apply the sigmoid first"),
        (1.0078125, r"y_prob\[2\] is 1\.0078125"),
    ],
)
def test_predictions(value, message, gradients, dtype, loss, device):
    p = torch.tensor([0.5, 0.25, value, 0.75], dtype=dtype, device=device)
    y = torch.tensor([0, 1, 0, 1], device=device)
    with pytest.raises(ValueError, match=message):
        loss(p.requires_grad_(gradients), y)


@everywhere
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, 2, 1], r"y_true\[2\] is 2: .* multiclass\.top_label"),
        ([1, -1, 1, -1], r"y_true\[1\] is -1: .* with \(y_true == 1\)\.$"),  # no pos_label here
        ([0.0, 0.5, 1.0, 1.0], r"y_true\[1\] is 0\.5: .* two rows"),
        ([0.0, 1.0, 1.0, math.nan], r"y_true\[3\] is nan: .*Drop"),
    ],
)
def test_labels(labels, message, loss, device):
    p = torch.tensor([0.5, 0.25, 0.5, 0.75], device=device)
    with pytest.raises(ValueError, match=message):
        loss(p, torch.tensor(labels, device=device))


@everywhere
def test_swapped_arguments(loss, device):
    p = torch.tensor([0.5, 0.25, 0.5, 0.75], device=device)
    with pytest.raises(ValueError, match=r"look swapped.* The order is \(y_prob, y_true\)"):
        loss(torch.tensor([0.0, 1.0, 1.0, 0.0], device=device), p)


@everywhere
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -1.0, 1.0, 1.0], r"sample_weight\[1\] is -1\.0"),
        ([1.0, math.nan, 1.0, 1.0], r"sample_weight\[1\] is nan"),
        ([1.0, math.inf, 1.0, 1.0], r"sample_weight\[1\] is inf"),
        ([0.0, 0.0, 0.0, 0.0], r"sample_weight\[0\] is 0"),
    ],
)
def test_weights(weights, message, loss, device):
    p = torch.tensor([0.5, 0.25, 0.5, 0.75], device=device)
    y = torch.tensor([0, 1, 0, 1], device=device)
    with pytest.raises(ValueError, match=message):
        loss(p, y, sample_weight=torch.tensor(weights, device=device))


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_shapes_and_types(loss):
    p, y = torch.tensor([0.5, 0.25, 0.75]), torch.tensor([0, 1, 1])
    with pytest.raises(TypeError, match=r"y_prob is of type list, but it must be a torch\.Tensor"):
        loss([0.5, 0.25, 0.75], y)
    with pytest.raises(TypeError, match="y_true is of type list"):
        loss(p, [0, 1, 1])
    with pytest.raises(TypeError, match=r"y_prob has dtype torch\.int64"):
        loss(y, y)
    with pytest.raises(TypeError, match=r"y_true has dtype torch\.complex64"):
        loss(p, y.to(torch.complex64))
    with pytest.raises(ValueError, match=r"y_prob has shape \(1, 3\).*multiclass"):
        loss(p[None], y)
    with pytest.raises(ValueError, match=r"y_prob has shape \(\)"):
        loss(p[0], y)
    with pytest.raises(ValueError, match="y_prob is empty"):
        loss(p[:0], y[:0])
    with pytest.raises(ValueError, match="y_true has 2 values and y_prob has 3"):
        loss(p, y[:2])
    with pytest.raises(ValueError, match=r"y_true has shape \(3, 1\)"):
        loss(p, y[:, None])
    with pytest.raises(ValueError, match="sample_weight has 2 values and y_prob has 3"):
        loss(p, y, sample_weight=p[:2])
    with pytest.raises(ValueError, match=r"sample_weight requires a gradient.*detach"):
        loss(p, y, sample_weight=p.clone().requires_grad_())
    with pytest.raises(ValueError, match=r"y_true requires a gradient.*detach"):
        loss(p, p.round().requires_grad_())


def test_options_of_the_kernel_loss():
    p, y = torch.tensor([0.5, 0.25, 0.75]), torch.tensor([0, 1, 1])
    with pytest.raises(ValueError, match="kernel is 'cauchy'"):
        kernel_ce_loss(p, y, kernel="cauchy")
    for bandwidth in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="bandwidth is"):
            kernel_ce_loss(p, y, bandwidth=bandwidth)
    with pytest.raises(TypeError, match="bandwidth is '1'"):
        kernel_ce_loss(p, y, bandwidth="1")
    with pytest.raises(ValueError, match="at least 1e-06"):
        kernel_ce_loss(p, y, kernel="gaussian", bandwidth=1e-7)
    with pytest.raises(TypeError, match="squared is 1"):
        kernel_ce_loss(p, y, squared=1)
    with pytest.raises(TypeError, match="unbiased is None"):
        kernel_ce_loss(p, y, unbiased=None)
    with pytest.raises(ValueError, match="rows of equal weight"):
        kernel_ce_loss(p, y, unbiased=True, sample_weight=p)
    with pytest.raises(ValueError, match="at least two rows"):
        kernel_ce_loss(p[:1], y[:1], unbiased=True)


@pytest.mark.parametrize(
    ("function", "given", "expected"),
    [
        (kernel_ce_loss, {"weights": 1}, r"kernel_ce_loss\(\) has .* called sample_weight\."),
        (kernel_ce_loss, {"sigma": 1}, "it is called bandwidth"),
        (smooth_ce_loss, {"bins": 10}, "its options are sample_weight"),
        (multiclass_smooth_ce_loss, {"logits": True}, "it is called from_logits"),
        (multiclass_kernel_ce_loss, {"weight": 1, "from_logits": True}, "called sample_weight"),
        (CalibrationDistance, {"n_bins": 10}, r"CalibrationDistance\(\) has no argument 'n_bins'"),
        (CalibrationDistance, {"metrics": ["ece"]}, "it is called measures"),
        (MulticlassCalibrationDistance, {"num_classes": 3, "from_logits": True}, "n_classes"),
    ],
)
def test_calls_that_almost_work(function, given, expected):
    """They are answered with the call that does."""
    values = torch.tensor([0.5, 0.25]), torch.tensor([0, 1])
    data = {"CalibrationDistance": (), "MulticlassCalibrationDistance": (3,)}
    with pytest.raises(TypeError, match=expected):
        function(*data.get(function.__name__, values), **given)


def test_every_function_answers():
    p, y = torch.tensor([[0.5, 0.5], [0.25, 0.75]]), torch.tensor([0, 1])
    for name in caldist.torch.__all__:
        function = getattr(caldist.torch, name)
        if inspect.isfunction(function):
            several = {"from_logits": False} if "multiclass" in name else {}
            with pytest.raises(TypeError, match=rf"^{name}\(\) has no argument 'nonsense'"):
                function(p if several else p[:, 1], y, nonsense=1, **several)


def test_data_by_other_names():
    p, y = torch.tensor([0.5, 0.25]), torch.tensor([0, 1])
    with pytest.raises(TypeError, match="it is called y_prob"):
        smooth_ce_loss(preds=p, target=y)
    with pytest.raises(TypeError, match="it is called preds"):
        multiclass_smooth_ce_loss(y_prob=p, y_true=y, from_logits=True)
    with pytest.raises(TypeError, match="it is called target"):
        multiclass_smooth_ce_loss(p, y_true=y, from_logits=True)


def test_options_of_torchmetrics_with_other_values_pass_through():
    pytest.importorskip("torchmetrics")
    with pytest.raises(ValueError, match="sync_on_compute"):
        CalibrationDistance(sync_on_compute="now")
