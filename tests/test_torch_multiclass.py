"""The losses of several classes are those of ``top_label`` and ``one_vs_rest``."""

import math

import numpy as np
import pytest

import caldist
from torch_support import DEVICES, KERNELS, gradient, torch

from caldist.torch import multiclass_kernel_ce_loss  # isort: skip -- after the check for torch
from caldist.torch import multiclass_smooth_ce_loss  # isort: skip

on_devices = pytest.mark.parametrize("device", DEVICES)
for_reductions = pytest.mark.parametrize("reduction", ["top_label", "classwise"])


def predictions(n, classes, *, seed=0, tied=False, device="cpu"):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, classes))
    if tied:
        logits = np.round(logits)
    target = rng.integers(0, classes, n)
    return torch.tensor(logits, device=device).requires_grad_(), torch.tensor(target, device=device)


def problems(prob, target, reduction):
    prob, target = prob.detach().cpu().numpy(), target.cpu().numpy()
    if reduction == "top_label":
        return [caldist.top_label(target, prob)]
    return caldist.one_vs_rest(target, prob)


@on_devices
@for_reductions
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("shape", [(1, 2), (50, 2), (200, 5), (30, 40)])
def test_value(shape, tied, reduction, device):
    logits, target = predictions(*shape, tied=tied, device=device)
    prob = logits.softmax(dim=1)
    weight = torch.rand(shape[0], dtype=torch.float64, device=device)
    for w in (None, weight):
        pairs = problems(prob, target, reduction)
        numpy_weight = None if w is None else w.cpu().numpy()
        options = {"reduction": reduction, "sample_weight": w}
        for kernel in KERNELS:
            for squared in (True, False):
                expected = np.mean(
                    [
                        caldist.kernel_ce(
                            *pair, kernel=kernel, squared=squared, sample_weight=numpy_weight
                        )
                        for pair in pairs
                    ]
                )
                more = {**options, "kernel": kernel, "squared": squared}
                for preds, from_logits in ((logits, True), (prob, False)):
                    loss = multiclass_kernel_ce_loss(preds, target, from_logits=from_logits, **more)
                    assert loss.item() == pytest.approx(expected, rel=1e-9, abs=1e-13)
        expected = np.mean([caldist.smooth_ce(*pair, sample_weight=numpy_weight) for pair in pairs])
        for preds, from_logits in ((logits, True), (prob, False)):
            loss = multiclass_smooth_ce_loss(preds, target, from_logits=from_logits, **options)
            assert loss.item() == pytest.approx(expected, abs=1e-13)


@on_devices
@for_reductions
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradcheck(kernel, reduction, device):
    logits, target = predictions(8, 3, device=device)

    def loss(logits):
        return multiclass_kernel_ce_loss(
            logits, target, from_logits=True, reduction=reduction, kernel=kernel, unbiased=True
        )

    assert torch.autograd.gradcheck(loss, (logits,), atol=1e-7)
    assert torch.autograd.gradgradcheck(loss, (logits,), atol=1e-6)


@for_reductions
def test_smooth_gradcheck(reduction):
    logits, target = predictions(9, 3, seed=2)

    def loss(logits):
        return multiclass_smooth_ce_loss(logits, target, from_logits=True, reduction=reduction)

    assert torch.autograd.gradcheck(loss, (logits,), atol=1e-7)


@on_devices
@for_reductions
def test_float32_and_half(reduction, device):
    logits, target = predictions(500, 4, device=device)
    exact = multiclass_kernel_ce_loss(logits, target, from_logits=True, reduction=reduction)
    single = logits.detach().float().requires_grad_()
    loss = multiclass_kernel_ce_loss(single, target, from_logits=True, reduction=reduction)
    assert loss.item() == pytest.approx(exact.item(), rel=1e-5)
    assert torch.allclose(gradient(loss, single).double(), gradient(exact, logits), atol=1e-7)
    half = logits.detach().bfloat16()
    expected = multiclass_kernel_ce_loss(
        half.float(), target, from_logits=True, reduction=reduction
    )
    loss = multiclass_kernel_ce_loss(half, target, from_logits=True, reduction=reduction)
    assert loss.item() == expected.item()


@on_devices
@for_reductions
@pytest.mark.filterwarnings("ignore")  # of the compiler, about itself
def test_compile(reduction, device):
    logits, target = predictions(100, 3, device=device)

    def loss(logits, target):
        options = {"from_logits": True, "reduction": reduction}
        first = multiclass_kernel_ce_loss(logits, target, **options)
        return first + multiclass_smooth_ce_loss(logits, target, **options)

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    ours, plain = compiled(logits, target), loss(logits, target)
    assert ours.item() == pytest.approx(plain.item(), rel=1e-12)
    assert torch.allclose(gradient(ours, logits), gradient(plain, logits))
    with pytest.raises(ValueError, match=r"target\[0\] is 3"):
        compiled(logits, torch.full_like(target, 3))


@pytest.mark.parametrize("loss", [multiclass_kernel_ce_loss, multiclass_smooth_ce_loss])
def test_bad_input(loss):
    prob = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    target = torch.tensor([0, 2])
    with pytest.raises(TypeError, match="from_logits"):
        loss(prob, target)
    with pytest.raises(TypeError, match="from_logits is 1"):
        loss(prob, target, from_logits=1)
    with pytest.raises(ValueError, match="reduction is 'mean'"):
        loss(prob, target, from_logits=False, reduction="mean")
    with pytest.raises(ValueError, match=r"preds\[0\] sums to 2"):
        loss(prob.new_tensor([[1.0, 0.5, 0.5], [0.2, 0.3, 0.5]]), target, from_logits=False)
    with pytest.raises(ValueError, match=r"preds\[1, 0\] is 3.*softmax"):
        loss(prob.new_tensor([[0.5, 0.5, 0.0], [3.0, -1, -1]]), target, from_logits=False)
    with pytest.raises(ValueError, match=r"preds\[0, 1\] is nan"):
        loss(prob.new_tensor([[0.5, math.nan, 0.5], [0.2, 0.3, 0.5]]), target, from_logits=False)
    with pytest.raises(ValueError, match=r"preds\[1\] has no softmax"):
        loss(prob.new_tensor([[0.5, 1, 2], [math.inf, 0.0, 1.0]]), target, from_logits=True)
    with pytest.raises(ValueError, match=r"target\[1\] is 3"):
        loss(prob, torch.tensor([0, 3]), from_logits=False)
    with pytest.raises(ValueError, match=r"target\[0\] is 0.5"):
        loss(prob, torch.tensor([0.5, 1.0]), from_logits=False)
    with pytest.raises(ValueError, match="target has 3 values and preds has 2"):
        loss(prob, torch.tensor([0, 1, 2]), from_logits=False)
    with pytest.raises(ValueError, match="target has shape"):
        loss(prob, torch.tensor([[0], [1]]), from_logits=False)
    with pytest.raises(ValueError, match="preds has shape"):
        loss(prob[0], target, from_logits=False)
    with pytest.raises(ValueError, match="preds has 1 columns"):
        loss(prob[:, :1], target, from_logits=False)
    with pytest.raises(ValueError, match="preds is empty"):
        loss(prob[:0], target[:0], from_logits=False)
    with pytest.raises(TypeError, match="preds has dtype"):
        loss(torch.tensor([[1, 0], [0, 1]]), target, from_logits=False)
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is -1"):
        loss(prob, target, from_logits=False, sample_weight=torch.tensor([1.0, -1.0]))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.float16])
def test_targets_of_a_type_too_narrow_for_the_number_of_classes(dtype):
    prob = torch.full((2, 300), 1 / 300)
    target = torch.tensor([0, 127])
    expected = multiclass_kernel_ce_loss(prob, target, from_logits=False, reduction="classwise")
    loss = multiclass_kernel_ce_loss(
        prob, target.to(dtype), from_logits=False, reduction="classwise"
    )
    assert loss.item() == expected.item()


def test_a_class_ruled_out_by_its_logit():
    logits = torch.tensor([[0.0, 1.0, -math.inf], [1.0, 0.0, -math.inf]])
    loss = multiclass_kernel_ce_loss(logits, torch.tensor([0, 0]), from_logits=True)
    assert math.isfinite(loss.item())
