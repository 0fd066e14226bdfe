"""Measures of tensors are those of arrays, on the device of the tensors."""

import math
from functools import partial

import pytest

import caldist
from torch_support import DEVICES, FAMILIES, instance, torch

from caldist.torch import _sums, binned_ece, brier_score, ece  # isort: skip

MEASURES = {
    "brier": (brier_score, caldist.brier_score),
    "ece": (ece, caldist.ece),
    "ece, 2": (partial(ece, norm=2), caldist.ece.using(norm=2)),
    "ece, inf": (partial(ece, norm=math.inf), caldist.ece.using(norm=math.inf)),
    "bins": (binned_ece, caldist.binned_ece),
    "one bin": (partial(binned_ece, n_bins=1), caldist.binned_ece.using(n_bins=1)),
    "10 bins, 2": (
        partial(binned_ece, n_bins=10, norm=2),
        caldist.binned_ece.using(n_bins=10, norm=2),
    ),
    "7 bins, max": (
        partial(binned_ece, n_bins=7, norm="max"),
        caldist.binned_ece.using(n_bins=7, norm="max"),
    ),
}
every_measure = pytest.mark.parametrize("name", MEASURES)
copies_for = _sums.copies_for
on_devices = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture(params=[1, 16], autouse=True)
def copies(request, monkeypatch):
    """One set of sums, as on the CPU, or several, as on a GPU."""
    if request.param > 1:
        monkeypatch.setattr(_sums, "copies_for", lambda *_: request.param)


def arrays(*tensors):
    return [part.detach().double().cpu().numpy() for part in tensors]


@on_devices
@every_measure
@pytest.mark.parametrize("family", FAMILIES)
def test_values_are_those_of_arrays(family, name, device):
    ours, reference = MEASURES[name]
    for n in (1, 2, 50, 301):
        p, y = instance(family, n, seed=n, device=device)
        weight = torch.rand(n, device=device) * (torch.rand(n, device=device) < 0.8)
        weight[0] = 0.5
        found = ours(p, y)
        assert found.item() == pytest.approx(reference(*arrays(y, p)), rel=1e-12, abs=1e-15)
        assert found.device == p.device
        assert found.dtype == torch.float64
        assert not found.requires_grad
        found = ours(p, y, sample_weight=weight)
        expected = reference(*arrays(y, p), sample_weight=arrays(weight)[0])
        assert found.item() == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.slow
@on_devices
@every_measure
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("label_type", [torch.bool, torch.uint8, torch.bfloat16], ids=str)
def test_every_precision(dtype, label_type, name, device):
    ours, reference = MEASURES[name]
    p, y = instance("distinct", 200, device=device)
    p = p.to(dtype)
    expected = reference(*arrays(y, p))
    assert ours(p, y.to(label_type)).item() == pytest.approx(expected, rel=1e-12)


@on_devices
@every_measure
def test_edges_and_zeros(name, device):
    """Predictions on the edges of bins, the last one, and zeros of both signs."""
    ours, reference = MEASURES[name]
    p = torch.tensor([0.0, -0.0, 0.05, 0.15, 0.3, 0.7, 1.0, 0.95, 1 / 7, 2 / 7, 3 / 7])
    p = p.double().to(device)
    y = torch.tensor([0, 1, 1, 0, 1, 1, 1, 0, 1, 0, 0], device=device)
    assert ours(p, y).item() == pytest.approx(reference(*arrays(y, p)), rel=1e-12)


@on_devices
@every_measure
@pytest.mark.parametrize(
    ("preds", "target", "error", "message"),
    [
        ([0.5, 1.5], [0, 1], ValueError, r"y_prob\[1\] is 1\.5"),
        ([0.5, math.nan], [0, 1], ValueError, r"y_prob\[1\] is nan"),
        ([0.5, 0.5], [0, 2], ValueError, r"y_true\[1\] is 2"),
        ([0.0, 1.0], [0.25, 0.5], ValueError, r"look swapped.* The order is \(y_prob, y_true\)"),
        ([], [], ValueError, "y_prob is empty"),
        ([[0.5, 0.5]], [1], ValueError, "one-dimensional"),
        ([0, 1], [0, 1], TypeError, "floating-point"),
    ],
)
def test_bad_values(preds, target, error, message, name, device):
    with pytest.raises(error, match=message):
        MEASURES[name][0](torch.tensor(preds, device=device), torch.tensor(target, device=device))


def test_bad_options():
    p, y = instance("distinct", 5)
    with pytest.raises(ValueError, match="n_bins is 0"):
        binned_ece(p, y, n_bins=0)
    with pytest.raises(ValueError, match="norm is 3"):
        binned_ece(p, y, norm=3)
    with pytest.raises(ValueError, match="norm is 'max'"):
        ece(p, y, norm="max")


@pytest.mark.skipif("cuda" not in DEVICES, reason="needs a GPU")
@every_measure
def test_many_rows_on_a_gpu(name):
    """In many blocks; a bad value in the last one is found, however busy the GPU is."""
    p, y = instance("half tied", 3_000_001, dtype=torch.float32, device="cuda")
    ours, reference = MEASURES[name]
    found = ours(p, y)
    assert found.item() == pytest.approx(reference(*arrays(y, p)), rel=1e-11)
    y[-1] = 2
    busy = torch.rand(8192, 8192, device="cuda")
    for _ in range(20):
        busy = (busy @ busy).sigmoid_()
    with pytest.raises(ValueError, match=r"y_true\[3000000\] is 2"):
        ours(p, y)


class Fetched(torch.overrides.TorchFunctionMode):
    """Counts how often the host asks a device for numbers."""

    count = 0
    asking = tuple(
        getattr(torch.Tensor, name) for name in ("tolist", "item", "__bool__", "__float__")
    )

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.count += function in self.asking
        return function(*args, **(kwargs or {}))


@every_measure
def test_the_host_asks_only_whether_values_are_good(name):
    p, y = instance("half tied", 500)
    with Fetched() as fetched:
        MEASURES[name][0](p, y)
    assert fetched.count == 1


def test_copies_are_for_gpus_and_no_more_than_rows_pay_for():
    assert copies_for("cpu", 20, 10**7) == 1
    assert copies_for("cuda", 20, 10**7) == 2**18 // 20
    assert copies_for("cuda", 2**17, 10**7) == _sums.COPIES
    assert copies_for("cuda", 2**17, 1000) == 1
    assert copies_for("cuda", 2**25, 10**7) == 2
