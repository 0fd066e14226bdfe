"""The losses of several classes are those of ``top_label`` and ``one_vs_rest``."""

import math

import numpy as np
import pytest

import caldist
from torch_support import DEVICES, KERNELS, gradient, torch

from caldist.torch import kernel_ce_loss, smooth_ce_loss  # isort: skip -- after the check for torch
from caldist.torch import multiclass_kernel_ce_loss  # isort: skip
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
        return [caldist.multiclass.top_label(target, prob)]
    return caldist.multiclass.one_vs_rest(target, prob)


def total(values):
    """Half the sum over classes, and the one problem of the top label in full."""
    return values[0] if len(values) == 1 else 0.5 * math.fsum(values)


@pytest.mark.slow
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
                squares = [
                    caldist.kernel_ce(
                        *pair, kernel=kernel, squared=True, sample_weight=numpy_weight
                    )
                    for pair in pairs
                ]
                expected = total(squares) if squared else math.sqrt(total(squares))
                more = {**options, "kernel": kernel, "squared": squared}
                for preds, from_logits in ((logits, True), (prob, False)):
                    loss = multiclass_kernel_ce_loss(preds, target, from_logits=from_logits, **more)
                    assert loss.item() == pytest.approx(expected, rel=1e-9, abs=1e-13)
        expected = total([caldist.smooth_ce(*pair, sample_weight=numpy_weight) for pair in pairs])
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


@pytest.mark.slow
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
    with pytest.raises(ValueError, match=r"look swapped.* The order is \(preds, target\)"):
        loss(target, prob, from_logits=False)
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


# -- what the factor is ----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("squared", "unbiased"), [(True, False), (False, False), (True, True)])
def test_two_classes_are_the_binary_loss(kernel, squared, unbiased):
    """To the bit, but for the Gaussian kernel, whose exponentials are PyTorch's in one of them."""
    logits, target = predictions(300, 2)
    options = {"kernel": kernel, "bandwidth": 0.3, "squared": squared, "unbiased": unbiased}
    loss = multiclass_kernel_ce_loss(logits, target, from_logits=True, **options)
    binary = kernel_ce_loss(logits.softmax(dim=1)[:, 1], target, **options)
    within = {"rtol": 1e-12, "atol": 1e-16} if kernel == "gaussian" else {"rtol": 0, "atol": 0}
    torch.testing.assert_close(loss, binary, **within)
    torch.testing.assert_close(gradient(loss, logits), gradient(binary, logits), **within)
    swapped = multiclass_kernel_ce_loss(logits.flip(1), 1 - target, from_logits=True, **options)
    assert swapped.item() == pytest.approx(loss.item(), rel=1e-9, abs=1e-15)


def test_two_classes_are_the_binary_smooth_loss_to_the_bit():
    logits, target = predictions(300, 2)
    loss = multiclass_smooth_ce_loss(logits, target, from_logits=True)
    assert loss.item() == smooth_ce_loss(logits.softmax(dim=1)[:, 1], target).item()


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("unbiased", [False, True])
def test_the_classwise_loss_is_the_measure_of_several_classes(k, unbiased):
    logits, target = predictions(200, k)
    prob = logits.softmax(dim=1)
    loss = multiclass_kernel_ce_loss(
        prob, target, from_logits=False, bandwidth=0.5, unbiased=unbiased
    )
    expected = caldist.multiclass.kernel_ce(
        target.numpy(),
        prob.detach().numpy(),
        structure="classwise",
        bandwidth=0.5,
        squared=True,
        unbiased=unbiased,
    )
    assert loss.item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("loss", [multiclass_kernel_ce_loss, multiclass_smooth_ce_loss])
def test_the_order_of_the_classes_does_not_matter(loss):
    logits, target = predictions(100, 5)
    order = torch.tensor([3, 0, 4, 1, 2])
    other = loss(logits[:, order], order.argsort()[target], from_logits=True)
    value = loss(logits, target, from_logits=True)
    assert other.item() == pytest.approx(value.item(), rel=1e-12)
    assert torch.allclose(gradient(other, logits), gradient(value, logits), atol=1e-12)


def test_classes_that_never_occur_and_are_never_predicted_change_nothing():
    """A mean over classes would vanish as they are added."""
    logits, target = predictions(100, 3)
    prob = logits.softmax(dim=1)
    more = torch.cat((prob, torch.zeros(100, 50, dtype=prob.dtype)), dim=1)
    for loss in (multiclass_kernel_ce_loss, multiclass_smooth_ce_loss):
        value = loss(prob, target, from_logits=False).item()
        assert loss(more, target, from_logits=False).item() == pytest.approx(value, rel=1e-12)
