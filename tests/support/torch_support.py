"""What the tests of ``caldist.torch`` share: devices, instances, and sums written out in full."""

import os

import numpy as np
import pytest

if os.environ.get("CALDIST_REQUIRE_TORCH") == "1":
    import torch
else:
    torch = pytest.importorskip("torch")

torch.set_num_threads(1)  # the tests themselves run side by side

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
KERNELS = ["laplace", "gaussian"]
FAMILIES = ["distinct", "tied", "half tied", "extreme", "constant", "one class"]


def instance(family, n, *, seed=0, dtype=torch.float64, device="cpu"):
    """Return predictions and labels of a named kind."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    if family == "tied":
        p = np.round(p, 1)
    elif family == "half tied":
        p = np.where(rng.random(n) < 0.5, np.round(p, 1), p)
    elif family == "extreme":
        p = rng.choice([0.0, 1.0, 0.5, 1e-300, 5e-324, 1 - 2**-53, 2**-53, 1e-16, 1e-30], n)
    elif family == "constant":
        p = np.full(n, 0.25)
    y = np.ones(n, int) if family == "one class" else (rng.random(n) < p).astype(int)
    p = torch.tensor(p, dtype=dtype, device=device)
    return p.requires_grad_(), torch.tensor(y, device=device)


def dense(p, y, *, kernel="laplace", bandwidth=1.0, sample_weight=None, unbiased=False):
    """kCE² as a double sum, for torch to differentiate."""
    mass = torch.ones_like(p) if sample_weight is None else sample_weight.to(p)
    residual = mass / mass.sum() * (y.to(p) - p)
    apart = (p[:, None] - p[None, :]) / bandwidth
    values = torch.exp(-apart.abs()) if kernel == "laplace" else torch.exp(-apart.square())
    total = residual @ values @ residual
    if not unbiased:
        return total
    n = p.numel()
    return (total - residual.square().sum()) * n / (n - 1)


def gradient(loss, p, **options):
    """Return the first derivatives of a scalar."""
    return torch.autograd.grad(loss, p, **options)[0]
