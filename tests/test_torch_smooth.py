"""The smooth loss: its value, and its gradient against differences."""

import math
from dataclasses import replace

import numpy as np
import pytest

import caldist
from oracles import distribution, residuals, smooth_ce_lp
from torch_support import DEVICES, FAMILIES, gradient, instance, torch

from caldist.torch import smooth_ce_loss  # isort: skip -- after the check that torch is there
from caldist.torch import _smooth, _smooth_cells  # isort: skip

on_devices = pytest.mark.parametrize("device", DEVICES)


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
    for tol in (0.0, 0.1):
        arguments = (p.detach()[None].requires_grad_(), y[None], None, tol, True)
        torch.library.opcheck(_smooth.smooth_ce, arguments, test_utils=checks)


def test_second_derivatives_are_refused():
    p, y = instance("distinct", 5)
    first = gradient(smooth_ce_loss(p, y), p, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        first.sum().backward()


# -- within a tolerance --------------------------------------------------------------------------


def large(kind, n=20_000, dtype=torch.float64, device="cpu"):
    """Return rows enough for cells to pay."""
    rng = torch.Generator().manual_seed(5)
    p = torch.rand(n, generator=rng, dtype=torch.float64)
    z = torch.randn(n, generator=rng, dtype=torch.float64)
    p = {
        "uniform": p,
        "polarised": torch.sigmoid(9 * z),
        "ends": torch.where(p < 0.5, 0.0, 1.0),
        "constant": torch.full_like(p, 0.3),
        "two decimals": (100 * p).round() / 100,
        "narrow": 0.7 + 1e-5 * p,
    }[kind]
    y = torch.rand(n, generator=rng, dtype=torch.float64) < (0.8 * p + 0.05)
    return p.to(device, dtype).requires_grad_(), y.to(device)


KINDS = ("uniform", "polarised", "ends", "constant", "two decimals", "narrow")


@on_devices
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_tolerance_holds(kind, weighted, device):
    """The value is within it, and so is, twice, that of the function behind the gradient."""
    p, y = large(kind, device=device)
    weight = torch.arange(len(p), device=device) % 5 if weighted else None
    exact = smooth_ce_loss(p, y, sample_weight=weight).item()
    mass = torch.full_like(p, 1 / len(p)) if weight is None else weight / weight.double().sum()
    residual = mass * (y.double() - p)
    for tol in (1e-2, 1e-3, 1e-4):
        found = smooth_ce_loss(p, y, sample_weight=weight, tol=tol)
        assert found.item() == pytest.approx(exact, abs=tol)
        cells = _smooth_cells.in_cells(p.detach(), residual.detach(), tol)
        assert cells is not None
        assert cells.cost <= tol
        value, slope = _smooth_cells.solve(cells, mass, with_gradient=True)
        assert value == pytest.approx(exact, abs=cells.cost + 1e-12)
        # A GPU adds in an order of its own.
        assert value == pytest.approx(found.item(), abs=1e-14)
        assert torch.allclose(slope, gradient(found, p), rtol=0, atol=1e-12)
        # The gradient is c w' - m w: without masses it is c w', without residuals -m w.
        still = replace(cells, residual=torch.zeros_like(residual.detach()))
        minus_w = _smooth_cells.solve(still, torch.ones_like(mass), with_gradient=True)[1]
        order = p.detach().argsort()
        v, w = p.detach()[order], -minus_w[order]
        assert w.abs().max() <= 1 + 1e-12
        assert bool((w.diff().abs() <= v.diff() + 1e-12).all())
        assert float(w @ residual.detach()[order]) >= exact - 2 * cells.cost - 1e-12


def test_a_tolerance_is_used_where_it_pays():
    """Cells are fewer than the rows, or the result is the exact one to the bit."""
    p, y = large("uniform")
    residual = (y.double() - p.detach()) / len(p)
    assert len(_smooth_cells.in_cells(p.detach(), residual, 1e-3).sums) == 32  # of 512 fine ones
    cells = _smooth_cells.in_cells(p.detach(), residual, 1e-4)
    assert len(cells.sums) <= 1024
    assert cells.sums.sum().item() == pytest.approx(residual.sum().item(), abs=1e-15)
    assert _smooth_cells.in_cells(p.detach(), residual, 1e-6) is None
    rough, exact = (smooth_ce_loss(p, y, tol=tol) for tol in (1e-6, 0.0))
    assert rough.item() == exact.item()
    assert torch.equal(gradient(rough, p), gradient(exact, p))


def test_rows_at_the_far_sides_of_their_cells_cost_half_the_tolerance(monkeypatch):
    """No row is further from the centre than these."""
    v = torch.zeros(4000, dtype=torch.float64)
    residual = torch.full_like(v, 1 / 4000)
    tol = 0.002
    assert _smooth_cells._round_up(1.02 / tol) == 512
    cells = _smooth_cells.in_cells(v, residual, tol)
    assert len(cells.sums) == 256
    assert cells.cost == pytest.approx(1 / 512)
    monkeypatch.setattr(_smooth_cells, "MERGED", (256,))  # which here would cost too much
    cells = _smooth_cells.in_cells(v, residual, tol)
    assert len(cells.sums) == 512
    assert cells.cost == pytest.approx(1 / 1024)
    assert cells.cost <= tol / 2


def test_the_cost_of_wide_cells_is_that_of_transport():
    """What is carried from fine cells to the centre of a wide one, against a linear program."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(3)
    for merged in (2, 4, 8):
        sums = rng.normal(size=(5, merged))
        fine = (np.arange(5 * merged) + 0.5) / (5 * merged)
        expected = 0.0
        for row, at in zip(sums, fine.reshape(5, merged), strict=True):
            # The best 1-Lipschitz function that is 0 at the centre.
            places = np.append(at, at.mean())
            pairs = [(i, j) for i in range(merged + 1) for j in range(merged + 1) if i != j]
            slopes = np.zeros((len(pairs), merged + 1))
            for k, (i, j) in enumerate(pairs):
                slopes[k, [i, j]] = 1, -1
            apart = [abs(places[i] - places[j]) for i, j in pairs]
            bounds = [(None, None)] * merged + [(0, 0)]
            expected -= linprog(np.append(-row, 0), slopes, apart, bounds=bounds).fun
        upto = torch.from_numpy(sums).flatten().cumsum(0)
        assert _smooth_cells._carried(upto, merged).item() == pytest.approx(expected, rel=1e-9)


@on_devices
def test_a_step_along_the_gradient_within_a_tolerance_lowers_the_error(device):
    p, y = large("uniform", device=device)
    slope = gradient(smooth_ce_loss(p, y, tol=1e-4), p)
    moved = (p - 100 * slope).detach().clamp(0, 1)
    assert smooth_ce_loss(moved, y) < smooth_ce_loss(p, y) - 50 * (slope**2).sum()


@on_devices
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_types_within_a_tolerance(dtype, device):
    p, y = large("polarised", dtype=dtype, device=device)
    loss = smooth_ce_loss(p, y, tol=1e-4)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(smooth_ce_loss(p, y).item(), abs=1e-4)
    slope = gradient(loss, p)
    assert slope.dtype == dtype
    assert slope.abs().max() <= 2.01 / len(p)


def test_predictions_that_are_right_cost_nothing_within_a_tolerance():
    p = torch.tensor([0.0, 1.0]).repeat(100).requires_grad_()
    loss = smooth_ce_loss(p, p.detach(), tol=1e-3)
    assert loss.item() == 0
    assert torch.equal(gradient(loss, p), torch.zeros_like(p))


@pytest.mark.parametrize("tol", [-1e-9, math.nan, math.inf])
def test_tolerances_are_checked(tol):
    p, y = instance("distinct", 5)
    with pytest.raises(ValueError, match=r"tol is .*; it must be finite and not negative"):
        smooth_ce_loss(p, y, tol=tol)
