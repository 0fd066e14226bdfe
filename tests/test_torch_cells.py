"""The kernel loss within a tolerance: what the cells promise, against the exact gradient."""

import math

import numpy as np
import pytest

from torch_support import DEVICES, gradient, torch

from caldist.torch import kernel_ce_loss  # isort: skip -- after the check that torch is there
from caldist.torch import _cells_layout as layout  # isort: skip
from caldist.torch import _kernel_cells  # isort: skip

ROWS = 70_001
on_devices = pytest.mark.parametrize("device", DEVICES)
KINDS = (
    "uniform", "polarised", "constant", "two decimals", "half tied", "ends", "narrow", "tiny",
    "half precision", "periodic", "sorted",
)  # fmt: skip


def rows(kind, chance="off", device="cpu"):
    """Return float32 predictions of a named kind and labels."""
    rng = np.random.default_rng(3)
    p = rng.random(ROWS)
    if kind == "polarised":
        p = 1 / (1 + np.exp(-8 * np.log(p / (1 - p))))
    elif kind == "constant":
        p = np.full(ROWS, 0.3)
    elif kind == "two decimals":
        p = np.round(p, 2)
    elif kind == "half tied":
        p = np.where(rng.random(ROWS) < 0.5, np.round(p, 1), p)
    elif kind == "ends":
        p = np.where(p < 0.3, -0.0, 1.0)
    elif kind == "narrow":
        p = 0.7 + 1e-5 * p
    elif kind == "tiny":
        p = rng.choice([0.0, 1e-45, 1e-39, 1e-30, 2.0**-126, 1 - 2.0**-24, 1.0], ROWS)
    elif kind == "half precision":
        p = p.astype(np.float16)
    elif kind == "periodic":  # the sample sees 0.3 alone
        p[np.arange(layout.SAMPLE) * ROWS // layout.SAMPLE] = 0.3
    elif kind == "sorted":
        p = np.sort(p)
    p = torch.tensor(p.astype(np.float32))
    likely = {"off": 0.8 * p + 0.15, "right": p, "low": 0.1 * p, "one class": torch.ones_like(p)}
    y = torch.tensor(rng.random(ROWS)) < likely[chance]
    return p.to(device), y.long().to(device)


def exact(p, y, **options):
    """Return kCE² and its gradient in float64."""
    wide = p.double().requires_grad_()
    loss = kernel_ce_loss(wide, y, **options)
    return loss.item(), gradient(loss, wide)


def in_cells(p, y, bandwidth=1.0, *, unbiased=False, tol=math.inf):
    """Return what the cells find, whatever they prove."""
    return _kernel_cells.squared_in_cells(
        p, y, bandwidth, tol, unbiased=unbiased, with_gradient=True
    )


def proved(p, y, bandwidth=1.0, *, unbiased=False):
    """Return the errors that the cells are sure of."""
    assert p.device.type == "cpu"
    plan = _kernel_cells.planned(p)
    table = _kernel_cells.counted(p, y, plan)
    sums, _ = _kernel_cells.solved(table, plan, len(p), bandwidth, unbiased=unbiased)
    return sums.errors()


def off(found, p, y, **options):
    """Return the errors of gradient and value, in proportion to the exact ones."""
    value, slope = exact(p, y, **options)
    error = (found[1].double() - slope).norm() / slope.norm()
    return error.item(), abs(found[0].item() - value) / abs(value)


@pytest.mark.parametrize("chance", ["off", "right", "one class"])
@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_below_what_is_proved(kind, chance):
    p, y = rows(kind, chance)
    for options in ({"bandwidth": 1.0}, {"bandwidth": 0.05, "unbiased": True}):
        gradient_bound, value_bound = proved(p, y, **options)
        if gradient_bound == math.inf:
            assert in_cells(p, y, tol=1.0, **options) is None
            continue
        gradient_error, value_error = off(in_cells(p, y, **options), p, y, **options)
        assert gradient_error <= gradient_bound
        assert value_error <= value_bound + 1e-7  # it is float32


@on_devices
@pytest.mark.parametrize("chance", ["off", "right", "low"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_tolerance_holds_or_the_rows_are_sorted(kind, chance, device):
    p, y = rows(kind, chance, device)
    for tol in (1e-2, 1e-4):
        found = in_cells(p, y, tol=tol)
        if found is not None:
            assert max(off(found, p, y)) <= tol + 1e-7


@on_devices
@pytest.mark.parametrize(
    "kind", ["uniform", "polarised", "constant", "two decimals", "ends", "narrow", "sorted"]
)
def test_cells_prove_it_of_predictions_that_are_off(kind, device):
    p, y = rows(kind, device=device)
    for unbiased in (False, True):
        found = in_cells(p, y, tol=1e-4, unbiased=unbiased)
        assert max(off(found, p, y, unbiased=unbiased)) <= 1e-4 + 1e-7


@on_devices
def test_cells_do_not_prove_it_of_calibrated_predictions(device):
    """Nor a tolerance below what float32 has, or a kernel narrower than cells."""
    p, y = rows("uniform", "right", device)
    assert in_cells(p, y, tol=1e-4) is None
    p, y = rows("uniform", device=device)
    assert in_cells(p, y, tol=1e-9) is None
    for bandwidth in (1e-7, 1e-200):
        assert in_cells(p, y, bandwidth, tol=1e-4) is None


@on_devices
@pytest.mark.parametrize("kind", ["constant", "two decimals", "tiny", "narrow"])
def test_few_distinct_predictions_are_exact(kind, device):
    """Up to float32; calibrated ones too."""
    p, y = rows(kind, "right", device)
    assert max(off(in_cells(p, y, tol=1e-5), p, y)) <= 1e-6


@on_devices
def test_perfect_predictions_have_no_gradient_to_be_close_to(device):
    p, _ = rows("ends", device=device)
    assert in_cells(p, p.long(), tol=1e-4) is None
    with pytest.raises(ValueError, match=r"y_prob\[7\] is nan"):
        in_cells(p.index_fill(0, torch.tensor(7, device=device), math.nan), p.long())


def test_a_row_between_its_neighbours_is_counted_between_them():
    """Cells are ordered like predictions, and a mark is alone in its cell."""
    p, y = rows("half tied")
    plan = _kernel_cells.planned(p)
    cell, _ = _kernel_cells._located(p, plan)
    order = p.argsort()
    assert bool((cell[order].diff() >= 0).all())
    x, r, *_ = _kernel_cells._places(cell, plan)
    assert bool(((p.double() - x).abs() <= r).all())
    bits = p.view(torch.int32)
    marked = bits == _kernel_cells._unpacked(plan.stretch[bits >> layout.STRETCH])[2]
    assert marked.double().mean() > 0.4
    assert r[marked].max() == 0
    assert set(cell[marked].tolist()).isdisjoint(cell[~marked].tolist())
    table = _kernel_cells.counted(p, y, plan)
    assert (table >> layout.PLACES).sum() == ROWS


@pytest.mark.parametrize("kind", ["all apart", "all thrice"])
def test_cells_are_never_more_than_there_is_room_for(kind):
    step = 1 if kind == "all apart" else 3
    bits = torch.arange(layout.SAMPLE, dtype=torch.int64) // step * 2**layout.STRETCH
    bits = (bits * step).clamp(max=layout.ONE).int()
    plan = _kernel_cells.planned(bits.view(torch.float32))
    first, width, _ = (int(part) for part in _kernel_cells._unpacked(plan.stretch[-1]))
    assert first + 2 ** (layout.STRETCH - width) + 2 <= layout.CELLS


def test_copies_are_never_more_than_there_is_room_for():
    for values in (1, 2, 7, 200):
        p = torch.arange(layout.SAMPLE) % values / (values + 1)
        copies = _kernel_cells.planned(p.float()).copies
        copies = copies[copies >= 0]
        assert len(copies) == values
        ends = (copies >> 4) + 2 ** (copies & 15)
        assert torch.equal(ends[:-1], copies[1:] >> 4)
        assert ends[-1] <= layout.COPIES


def test_what_cells_are_for():
    """Many rows of float32 on a GPU, without weights: anything else is sorted."""
    p = torch.rand(1, 10)
    assert not _kernel_cells.pay(p, None)


@pytest.mark.parametrize("tol", [-1e-9, math.nan, math.inf])
def test_tolerances_are_checked(tol):
    p, y = rows("uniform")
    with pytest.raises(ValueError, match=r"tol is .*; it must be finite and not negative"):
        kernel_ce_loss(p, y, tol=tol)


def test_on_the_cpu_a_tolerance_changes_nothing():
    p, y = rows("uniform")
    p.requires_grad_()
    rough, exact = (kernel_ce_loss(p, y, tol=tol) for tol in (1e-2, 0.0))
    assert rough.item() == exact.item()
    assert torch.equal(gradient(rough, p), gradient(exact, p))


@pytest.mark.skipif("cuda" not in DEVICES, reason="needs a GPU")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chance", ["off", "right"])
def test_the_loss_of_tensors_on_a_gpu(kind, chance, monkeypatch):
    monkeypatch.setattr(_kernel_cells, "FEWEST", ROWS)
    p, y = rows(kind, chance, "cuda")
    p.requires_grad_()
    weight = torch.ones_like(p.detach())
    for options in ({}, {"unbiased": True}, {"bandwidth": 0.1}, {"sample_weight": weight}):
        loss = kernel_ce_loss(p, y, tol=1e-4, **options)
        value, slope = exact(p.detach(), y, **options)
        assert loss.item() == pytest.approx(value, rel=1e-4 + 1e-6)
        first = gradient(loss, p, create_graph=not options)
        assert (first.detach().double() - slope).norm() <= (1e-4 + 1e-6) * slope.norm()
        if not options:
            assert gradient(first.sum(), p).isfinite().all()
    with pytest.raises(ValueError, match=r"y_true\[5\] is 2"):
        kernel_ce_loss(p, y.index_fill(0, torch.tensor(5, device="cuda"), 2), tol=1e-4)
