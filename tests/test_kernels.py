"""The compiled kernels and the same files as plain Python give the same numbers."""

import warnings

import numpy as np
import pytest

from caldist import Joint, _kernels
from strategies import FAMILIES, family

compiled_only = pytest.mark.skipif(not _kernels.COMPILED, reason="kernels are not compiled")
EMPTY = np.empty(0)


def cases():
    for kind in FAMILIES:
        y, p = family(kind, 150, np.random.default_rng(4))
        joint = Joint.from_arrays(y, p)
        yield joint, joint.residual()


@compiled_only
def test_smooth():
    plain = _kernels.plain("smooth")
    for joint, c in cases():
        curves = np.empty(c.size), np.empty(c.size)
        values = [
            kernel.smooth_ce(joint.prediction, c, curve)
            for kernel, curve in zip((_kernels.smooth, plain), curves, strict=True)
        ]
        assert values[0] == values[1]
        assert np.array_equal(*curves)
        assert values[0] == _kernels.smooth.smooth_ce(joint.prediction, c, EMPTY)


@compiled_only
@pytest.mark.parametrize("h", [1.0, 0.05, 1e-5])
def test_rkhs(h):
    plain = _kernels.plain("rkhs")
    for joint, c in cases():
        for name in ("laplace_squared", "gaussian_squared"):
            fast = getattr(_kernels.rkhs, name)(joint.prediction, c, h)
            slow = getattr(plain, name)(joint.prediction, c, h)
            assert fast == pytest.approx(slow, abs=1e-16, rel=1e-12)


@compiled_only
@pytest.mark.parametrize("width", [1.0, 0.1, 1e-9])
def test_shifts(width):
    plain = _kernels.plain("shifts")
    for joint, _ in cases():
        sums = joint.prefix_sums()
        values = [
            kernel.random_interval_ce(joint.prediction, sums, width)
            for kernel in (_kernels.shifts, plain)
        ]
        assert values[0] == values[1]


@compiled_only
def test_support():
    plain = _kernels.plain("support")
    for kind in FAMILIES:
        rng = np.random.default_rng(9)
        y, p = family(kind, 100, rng)
        label, p = y.astype(np.uint8), np.ascontiguousarray(p)
        weight = rng.integers(0, 3, 100).astype(float)
        order = np.argsort(p, kind="stable")
        results = []
        for kernel in (_kernels.support, plain):
            rows = np.empty(100)
            ones = kernel.split_by_label(label, p, rows)
            rows[:ones].sort()
            rows[ones:].sort()
            out = [np.zeros(100) for _ in range(6)]
            n = kernel.merge_labels(rows[:ones], rows[ones:], *out[:3])
            m = kernel.merge_weighted(order, p, weight * (1 - y), weight * y, *out[3:])
            results.append(
                (
                    ones,
                    n,
                    m,
                    *(part[:n].tolist() for part in out[:3]),
                    *(part[:m].tolist() for part in out[3:]),
                )
            )
        assert results[0] == results[1]


def test_unknown_kernels_are_attribute_errors():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = _kernels.nonsense


def test_missing_extensions_warn_once_and_fall_back(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.delenv("CALDIST_PURE_PYTHON", raising=False)
    monkeypatch.setattr(_kernels, "import_module", missing)
    with pytest.warns(RuntimeWarning, match="plain Python.*compiler") as caught:
        assert not _kernels._is_compiled()
    assert len(caught) == 1


def test_the_environment_variable_is_silent(monkeypatch):
    monkeypatch.setenv("CALDIST_PURE_PYTHON", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not _kernels._is_compiled()
