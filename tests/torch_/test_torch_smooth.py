"""The smooth loss: its value, and its gradient against differences."""

import math

import numpy as np
import pytest

import caldist
from oracles import distribution, residuals, smooth_ce_lp
from torch_support import DEVICES, FAMILIES, gradient, instance, torch

from caldist.torch import smooth_ce_loss  # isort: skip -- after the check that torch is there
from caldist.torch import _smooth  # isort: skip

on_devices = pytest.mark.parametrize("device", DEVICES)


@pytest.mark.slow
@on_devices
@pytest.mark.parametrize("family", FAMILIES)
def test_value(family, device):
    for n in (1, 2, 3, 30, 200):
        p, y = instance(family, n, seed=n, device=device)
        y_prob, y_true = p.detach().cpu().numpy(), y.cpu().numpy()
        weight = torch.rand(n, dtype=torch.float64, device=device)
        for w in (None, weight):
            v, g0, g1 = distribution(y_true, y_prob, None if w is None else w.cpu().numpy())
            loss = smooth_ce_loss(p, y, sample_weight=w).item()
            assert loss == pytest.approx(smooth_ce_lp(v, residuals(v, g0, g1)), abs=1e-9)
        assert smooth_ce_loss(p, y).item() == pytest.approx(
            caldist.smooth_ce(y_true, y_prob), abs=1e-14
        )


def differences(loss, p, directions, step=1e-7):
    """Return the two one-sided slopes along each direction."""
    middle = loss(p)
    return [
        ((loss(p + step * d) - middle) / step, (middle - loss(p - step * d)) / step)
        for d in directions
    ]


@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_where_there_is_one(weighted):
    """Where both one-sided differences agree, the gradient agrees with them."""
    checked = 0
    for seed in range(60):
        rng = torch.Generator().manual_seed(seed)
        n = 2 + seed % 12
        p = (torch.rand(n, dtype=torch.float64, generator=rng) * 0.98 + 0.01).requires_grad_()
        y = (torch.rand(n, generator=rng) < 0.5).double()
        weight = torch.rand(n, generator=rng).double() if weighted else None

        def loss(p, y=y, weight=weight):
            return smooth_ce_loss(p, y, sample_weight=weight)

        slope = gradient(loss(p), p)
        with torch.no_grad():
            pairs = differences(loss, p, torch.eye(n, dtype=torch.float64))
        for ours, (right, left) in zip(slope, pairs, strict=True):
            low, high = sorted((right.item(), left.item()))
            assert low - 1e-6 <= ours.item() <= high + 1e-6
            checked += high - low < 1e-6
    assert checked > 200


def test_equal_predictions_moved_together():
    """Along a move of a whole group of equal predictions the gradient is exact too."""
    checked = 0
    for seed in range(60):
        rng = torch.Generator().manual_seed(seed)
        n = 20
        p = torch.randint(1, 8, (n,), generator=rng).double() / 8 + 0.01
        p.requires_grad_()
        y = (torch.rand(n, generator=rng) < p).double()
        slope = gradient(smooth_ce_loss(p, y), p)
        groups = [(p == v).double() for v in p.unique()]
        with torch.no_grad():
            pairs = differences(lambda p, y=y: smooth_ce_loss(p, y), p, groups)
        for group, (right, left) in zip(groups, pairs, strict=True):
            low, high = sorted((right.item(), left.item()))
            assert low - 1e-6 <= (slope @ group).item() <= high + 1e-6
            checked += high - low < 1e-6
    assert checked > 200


@on_devices
@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_finite_and_bounded(family, device):
    """|w| ≤ 1 and |w'| ≤ 1 leave at most 2/n for each row."""
    for dtype in (torch.float32, torch.float64):
        p, y = instance(family, 500, dtype=dtype, device=device)
        slope = gradient(smooth_ce_loss(p, y), p)
        assert slope.dtype == dtype
        assert slope.abs().max() <= 2 / 500 + 1e-7


@on_devices
def test_weights_are_repetitions(device):
    p, y = instance("half tied", 50, device=device)
    times = torch.arange(50, device=device) % 4
    repeated = p.detach().repeat_interleave(times).requires_grad_()
    ours = smooth_ce_loss(p, y, sample_weight=times)
    theirs = smooth_ce_loss(repeated, y.repeat_interleave(times))
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-12)


@on_devices
def test_devices_and_types_agree(device):
    p, y = instance("half tied", 3000, dtype=torch.float32, device=device)
    loss = smooth_ce_loss(p, y)
    wide = p.detach().cpu().double().requires_grad_()
    reference = smooth_ce_loss(wide, y.cpu())
    assert loss.device == p.device
    assert loss.item() == pytest.approx(reference.item(), rel=1e-6)
    slope = gradient(loss, p)
    assert slope.device == p.device
    np.testing.assert_allclose(slope.cpu(), gradient(reference, wide), rtol=1e-6, atol=1e-12)


@on_devices
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast(dtype, device):
    p, y = instance("distinct", 300, dtype=dtype, device=device)
    wide = p.detach().float().requires_grad_()
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = smooth_ce_loss(p, y)
    assert loss.dtype == torch.float32
    reference = smooth_ce_loss(wide, y)
    assert loss.item() == reference.item()
    assert torch.equal(gradient(loss, p), gradient(reference, wide).to(dtype))


@pytest.mark.slow
@on_devices
@pytest.mark.filterwarnings("ignore")  # of the compiler, about itself
def test_compile(device):
    p, y = instance("half tied", 300, dtype=torch.float32, device=device)

    def loss(p, y):
        return 3 * smooth_ce_loss(p.sigmoid(), y)

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    ours, plain = compiled(p, y), loss(p, y)
    assert ours.item() == pytest.approx(plain.item(), rel=1e-6)
    assert torch.allclose(gradient(ours, p), gradient(plain, p))
    with pytest.raises(ValueError, match=r"y_prob\[1\] is nan"):
        compiled(p.detach().index_fill(0, torch.tensor(1, device=device), math.nan), y)


def test_without_gradient():
    p, y = instance("half tied", 300)
    with torch.no_grad():
        assert smooth_ce_loss(p, y).item() == smooth_ce_loss(p.detach(), y).item()
    assert smooth_ce_loss(p, y).requires_grad


def test_the_operator_keeps_torch_s_rules():
    p, y = instance("half tied", 20)
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    arguments = (p.detach()[None].requires_grad_(), y[None], None, True)
    torch.library.opcheck(_smooth.smooth_ce, arguments, test_utils=checks)


def test_second_derivatives_are_refused():
    p, y = instance("distinct", 5)
    first = gradient(smooth_ce_loss(p, y), p, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        first.sum().backward()
