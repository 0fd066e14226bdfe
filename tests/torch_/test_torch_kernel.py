"""The kernel loss against the double sum, differentiated by torch itself."""

import math
import subprocess
import sys

import pytest

import caldist
from caldist.kernels import loader
from torch_support import DEVICES, FAMILIES, KERNELS, dense, gradient, instance, torch

from caldist.torch import kernel_ce_loss  # isort: skip -- after the check that torch is there
from caldist.torch import _kernel_sums, _operators  # isort: skip

LARGE = 10**6 if loader.COMPILED else 10**4
on_devices = pytest.mark.parametrize("device", DEVICES)
for_kernels = pytest.mark.parametrize("kernel", KERNELS)


def close(value, reference, tolerance):
    """Compare with the largest derivative, or with the size 1/n² of the terms if all cancel."""
    scale = max(reference.abs().max().item(), 1 / reference.numel() ** 2)
    return (value - reference).abs().max().item() <= tolerance * scale


@on_devices
@for_kernels
@pytest.mark.parametrize("bandwidth", [1.0, 0.2, 1e-3])
@pytest.mark.parametrize("family", FAMILIES)
def test_value_gradient_and_hessian_are_those_of_the_double_sum(family, bandwidth, kernel, device):
    rng = torch.Generator().manual_seed(1)
    # The Gaussian curvature is a difference of numbers of size 1/h².
    second = 1e-10 if kernel == "laplace" else max(1e-10, 1e-14 / bandwidth**2)
    for n in (1, 2, 3, 40, 150):
        p, y = instance(family, n, seed=n, device=device)
        direction = torch.randn(n, dtype=torch.float64, generator=rng).to(device)
        weight = torch.rand(n, dtype=torch.float64, generator=rng).to(device)
        options = {"kernel": kernel, "bandwidth": bandwidth}
        for more in ({}, {"sample_weight": weight}, {"unbiased": True}):
            if n == 1 and "unbiased" in more:
                continue
            ours = kernel_ce_loss(p, y, **options, **more)
            full = dense(p, y, **options, **more)
            assert ours.item() == pytest.approx(full.item(), rel=1e-10, abs=1e-16)
            ours, full = (gradient(loss, p, create_graph=True) for loss in (ours, full))
            assert close(ours, full, 1e-10)
            ours, full = (gradient(first @ direction, p) for first in (ours, full))
            assert close(ours, full, second)


@on_devices
@pytest.mark.parametrize("bandwidth", [1e-6, 1e-20, 1e-200, 1e9])
@pytest.mark.parametrize("family", FAMILIES)
def test_laplace_at_any_bandwidth(family, bandwidth, device):
    p, y = instance(family, 60, device=device)
    ours, full = kernel_ce_loss(p, y, bandwidth=bandwidth), dense(p, y, bandwidth=bandwidth)
    assert ours.item() == pytest.approx(full.item(), rel=1e-12)
    assert close(gradient(ours, p), gradient(full, p), 1e-12)


@on_devices
@for_kernels
def test_a_kernel_wider_than_anything(kernel, device):
    """It is 1 everywhere: what is left is the square of the mean residual."""
    p, y = instance("half tied", 60, device=device)
    first = gradient(kernel_ce_loss(p, y, kernel=kernel, bandwidth=1e200), p, create_graph=True)
    mean = (y - p).mean().item()
    assert torch.allclose(first, torch.full_like(p, -2 * mean / 60), rtol=1e-12)
    second = gradient(first.sum(), p)
    assert torch.allclose(second, torch.full_like(p, 2 / 60), rtol=1e-12)


def random_rows(family, n=900, problems=3):
    """Return sorted predictions of several problems, and numbers to add up."""
    p, _ = instance(family, n)
    v = p.detach().reshape(problems, -1).sort().values
    return v, torch.randn(v.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def same_sums(found, expected, bandwidth):
    for r, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert torch.allclose(one.cpu(), other, rtol=1e-11, atol=1e-11 / bandwidth**r)


@on_devices
@for_kernels
@pytest.mark.parametrize("bandwidth", [1.0, 0.1, 1e-3])
@pytest.mark.parametrize("family", FAMILIES)
def test_sums_do_not_depend_on_where_they_are_made(family, bandwidth, kernel, device, monkeypatch):
    """The sums in PyTorch's operations, which a GPU makes, and the compiled ones."""
    v, c = random_rows(family)
    expected = _kernel_sums.kernel_sums(kernel, v, c, bandwidth, 2)
    monkeypatch.setattr(_kernel_sums, "_COMPILED_ON", ())
    for most in (0, 8192):
        monkeypatch.setattr(_kernel_sums, "_DENSE", most)
        found = _kernel_sums.kernel_sums(kernel, v.to(device), c.to(device), bandwidth, 2)
        same_sums(found, expected, bandwidth)


@pytest.mark.parametrize("bandwidth", [1e-3, 9.99e-4, 1e-6, 1e-20, 1e-200, 1e9])
@pytest.mark.parametrize("family", FAMILIES)
def test_laplace_sums_in_torch_at_any_bandwidth(family, bandwidth):
    """Cumulative sums and sums by doubling lose no digits of any row, against the double sum."""
    v, c = random_rows(family, 300)
    apart = (v[:, :, None] - v[:, None, :]) / bandwidth
    kernel = torch.exp(-apart.abs())
    value, slope, curvature = _kernel_sums.laplace_sums(v, c, bandwidth, 2)
    size = (kernel * c.abs()[:, None, :]).sum(-1)
    assert ((value - (kernel * c[:, None, :]).sum(-1)).abs() <= 1e-12 * size).all()
    side = (v[:, None, :] - v[:, :, None]).sign()  # 0 between equal predictions
    kernel = kernel / bandwidth
    for found, terms in ((slope, side * kernel), (curvature, side.abs() * kernel / bandwidth)):
        size = (terms.abs() * c.abs()[:, None, :]).sum(-1)
        near = (found - (terms * c[:, None, :]).sum(-1)).abs() <= 1e-12 * size
        assert (near | size.isinf()).all()  # a curvature may exceed the largest float


@pytest.mark.parametrize("bandwidth", [1.0, 0.02, 1e-3, 1e-4])
def test_the_loss_in_torch_s_operations(bandwidth, monkeypatch):
    """What a GPU computes, on the CPU: values, gradients and Hessians."""
    direction = torch.randn(500, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for family in FAMILIES:
        for kernel in KERNELS:
            p, y = instance(family, 500)
            found = []
            for devices in (("cpu",), ()):
                monkeypatch.setattr(_kernel_sums, "_COMPILED_ON", devices)
                loss = kernel_ce_loss(p, y, kernel=kernel, bandwidth=bandwidth)
                first = gradient(loss, p, create_graph=True)
                found.append((loss, first, gradient(first @ direction, p)))
            for one, other in zip(*found, strict=True):
                scale = max(1e-10 * other.abs().max().item(), 1e-17 / bandwidth**2)
                assert torch.allclose(one, other, rtol=1e-9, atol=scale)


@pytest.mark.parametrize("pairs", [1, 100, 2**25])
def test_pairs_are_taken_some_at_a_time(pairs, monkeypatch):
    v, c = random_rows("half tied")
    expected = _kernel_sums.pair_sums(v, c, 0.1, 2)
    monkeypatch.setattr(_kernel_sums, "_PAIRS", pairs)
    same_sums(_kernel_sums.pair_sums(v, c, 0.1, 2), expected, 0.1)


@on_devices
@for_kernels
def test_gradcheck(kernel, device):
    """Differences see a kink between equal predictions, so these are distinct."""
    p, y = instance("distinct", 12, device=device)
    for options in ({}, {"squared": False}, {"unbiased": True}, {"bandwidth": 0.3}):

        def loss(p, options=options):
            return kernel_ce_loss(p, y, kernel=kernel, **options)

        assert torch.autograd.gradcheck(loss, (p,), atol=1e-8)
        assert torch.autograd.gradgradcheck(loss, (p,), atol=1e-6)


@pytest.mark.parametrize("family", ["tied", "extreme"])
def test_gradcheck_of_the_gaussian_at_ties(family):
    """It has no kink. Differences need room on both sides."""
    p, y = instance(family, 12)
    p = (p.detach() * 0.9 + 0.05).requires_grad_()
    assert torch.autograd.gradcheck(lambda p: kernel_ce_loss(p, y, kernel="gaussian"), (p,))


@on_devices
@for_kernels
@pytest.mark.parametrize("family", ["distinct", "half tied"])
def test_a_million_rows(family, kernel, device):
    for dtype, tolerance in ((torch.float64, 1e-11), (torch.float32, 1e-5)):
        p, y = instance(family, LARGE, dtype=dtype, device=device)
        loss = kernel_ce_loss(p, y, kernel=kernel)
        exact = caldist.kernel_ce(
            y.cpu().numpy(), p.detach().cpu().double().numpy(), kernel=kernel, squared=True
        )
        assert loss.dtype == dtype
        assert loss.item() == pytest.approx(exact, rel=tolerance)
        slope = gradient(loss, p)
        wide = p.detach().double().requires_grad_()
        reference = gradient(kernel_ce_loss(wide, y, kernel=kernel), wide)
        assert close(slope.double(), reference, tolerance if dtype == torch.float32 else 1e-9)


@on_devices
@for_kernels
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_finite_everywhere(dtype, kernel, device):
    edges = [0.0, -0.0, 1.0, 5e-324, 1e-300, 1e-45, 1e-30, 1 - 2**-53, 1 - 2**-24, 0.5]
    for size in range(1, 2 * len(edges)):
        p = torch.tensor((2 * edges)[:size], dtype=dtype, device=device).requires_grad_()
        for y in (torch.zeros_like(p), torch.ones_like(p), (p > 0.4).to(dtype)):
            for squared in (True, False):
                loss = kernel_ce_loss(p, y.detach(), kernel=kernel, squared=squared)
                assert math.isfinite(loss.item())
                assert gradient(loss, p).isfinite().all()


@on_devices
def test_the_root_of_zero_has_gradient_zero(device):
    p = torch.tensor([0.0, 1.0, 1.0], device=device).requires_grad_()
    loss = kernel_ce_loss(p, torch.tensor([0, 1, 1], device=device), squared=False)
    assert loss.item() == 0
    assert gradient(loss, p).tolist() == [0, 0, 0]


@on_devices
@for_kernels
def test_a_negative_unbiased_estimate_has_root_zero(kernel, device):
    p = torch.tensor([0.4, 0.6], device=device).requires_grad_()
    y = torch.tensor([1, 0], device=device)
    assert kernel_ce_loss(p, y, kernel=kernel, unbiased=True).item() < 0
    loss = kernel_ce_loss(p, y, kernel=kernel, unbiased=True, squared=False)
    assert loss.item() == 0
    assert gradient(loss, p).tolist() == [0, 0]


@on_devices
@for_kernels
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_as_float32(dtype, kernel, device):
    p, y = instance("distinct", 300, dtype=dtype, device=device)
    wide = p.detach().float().requires_grad_()
    loss, reference = (kernel_ce_loss(q, y, kernel=kernel) for q in (p, wide))
    assert loss.dtype == torch.float32
    assert loss.item() == reference.item()
    slope = gradient(loss, p)
    assert slope.dtype == dtype
    assert torch.equal(slope, gradient(reference, wide).to(dtype))


@on_devices
@for_kernels
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int32, torch.float32])
def test_labels_of_any_type(dtype, kernel, device):
    p, y = instance("half tied", 100, device=device)
    expected = kernel_ce_loss(p, y, kernel=kernel).item()
    assert kernel_ce_loss(p, y.to(dtype), kernel=kernel).item() == expected


@on_devices
@for_kernels
def test_weights_are_repetitions(kernel, device):
    p, y = instance("half tied", 50, device=device)
    times = torch.arange(50, device=device) % 4
    repeated = p.detach().repeat_interleave(times).requires_grad_()
    ours = kernel_ce_loss(p, y, kernel=kernel, sample_weight=times)
    theirs = kernel_ce_loss(repeated, y.repeat_interleave(times), kernel=kernel)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-12)
    summed = torch.zeros_like(p).index_add(
        0, torch.arange(50, device=device).repeat_interleave(times), gradient(theirs, repeated)
    )
    assert close(gradient(ours, p), summed, 1e-12)


@on_devices
@for_kernels
def test_order_and_layout_do_not_matter(kernel, device):
    p, y = instance("distinct", 200, device=device)
    spread = torch.stack((p, 1 - p), dim=1)[:, 0]
    assert not spread.is_contiguous()
    labels = torch.stack((y, y), dim=1)[:, 0]
    weight = torch.rand(200, 2, device=device)[:, 1]
    loss = kernel_ce_loss(p, y, kernel=kernel, sample_weight=weight.contiguous())
    other = kernel_ce_loss(spread, labels, kernel=kernel, sample_weight=weight)
    assert loss.item() == other.item()
    assert torch.equal(gradient(loss, p), gradient(other, p))


@on_devices
@for_kernels
def test_without_gradient(kernel, device):
    p, y = instance("distinct", 5000, device=device)
    expected = kernel_ce_loss(p, y, kernel=kernel)
    with torch.no_grad():
        loss = kernel_ce_loss(p, y, kernel=kernel)
    assert not loss.requires_grad
    assert loss.item() == expected.item()


@on_devices
@for_kernels
def test_autocast(kernel, device):
    p, y = instance("distinct", 500, dtype=torch.float32, device=device)
    expected = kernel_ce_loss(p, y, kernel=kernel)
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = kernel_ce_loss(p, y, kernel=kernel)
    assert loss.item() == expected.item()
    assert torch.equal(gradient(loss, p), gradient(expected, p))


@on_devices
@for_kernels
@pytest.mark.filterwarnings("ignore")  # of the compiler, about itself
def test_compile(kernel, device):
    p, y = instance("half tied", 300, dtype=torch.float32, device=device)

    def loss(p, y):
        return 3 * kernel_ce_loss(p.sigmoid(), y, kernel=kernel, squared=False)

    # "aot_eager" traces forward and backward whole, without the minutes a C++ compiler takes.
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    ours, plain = compiled(p, y), loss(p, y)
    assert ours.item() == pytest.approx(plain.item(), rel=1e-6)
    assert close(gradient(ours, p), gradient(plain, p), 1e-6)
    with pytest.raises(ValueError, match=r"y_true\[0\] is 2"):
        compiled(p, torch.full_like(y, 2))


@pytest.mark.parametrize("with_gradient", [True, False])
def test_the_operator_keeps_torch_s_rules(with_gradient):
    p, y = instance("half tied", 20)
    for matrix, labels in ((p[None], y[None]), (p.reshape(10, 2).T, y.reshape(10, 2).T)):
        leaf = matrix.detach().requires_grad_(with_gradient)
        arguments = (leaf, labels, None, "laplace", 0.5, False, with_gradient)
        torch.library.opcheck(_operators.squared_operator, arguments)


def test_third_derivatives_are_refused():
    p, y = instance("distinct", 5)
    first = gradient(kernel_ce_loss(p, y), p, create_graph=True)
    second = gradient(first.sum(), p, create_graph=True)
    with pytest.raises(RuntimeError):
        second.sum().backward()


def test_descent_calibrates():
    """Predictions twice too certain come to their labels' frequencies by gradient descent."""
    rng = torch.Generator().manual_seed(0)
    truth = torch.rand(2000, generator=rng)
    y = torch.rand(2000, generator=rng) < truth
    scale = torch.tensor(2.0, requires_grad=True)
    optimizer = torch.optim.Adam([scale], lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        kernel_ce_loss(torch.sigmoid(scale * truth.logit()), y).backward()
        optimizer.step()
    assert scale.item() == pytest.approx(1, abs=0.15)


def test_importing_caldist_does_not_import_torch():
    code = "import sys, caldist; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_torch_the_message_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; import caldist.torch"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "caldist[torch]", or in a checkout pip install ".[torch]"' in run.stderr
