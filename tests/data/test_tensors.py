"""Tensors in the place of arrays: of every precision, with a gradient, and not of a GPU."""

import numpy as np
import pytest

import caldist
from torch_support import torch

PRECISIONS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn]
MEASURES = [caldist.binned_ece, caldist.ece, caldist.brier_score, caldist.kernel_ce]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p = torch.tensor(rng.random(300))
    return (torch.tensor(rng.random(300)) < p).long(), p


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
def test_every_precision_with_a_gradient(rows, dtype, measure):
    label, p = rows[0], rows[1].clone().to(dtype)
    expected = measure(label.numpy(), p.double().numpy())
    assert measure(label, p.requires_grad_()) == expected
    assert measure(label.to(torch.bfloat16), p, sample_weight=torch.ones(300).bfloat16()) == (
        pytest.approx(expected, rel=1e-12)
    )
    assert p.requires_grad  # it is still the caller's


def test_other_doors(rows):
    label, p = rows[0], rows[1].bfloat16().requires_grad_()
    plain = p.detach().double().numpy()
    assert caldist.ece(label.bfloat16(), p, pos_label=1.0) == caldist.ece(label.numpy(), plain)
    joint = caldist.Joint.from_arrays(label, p)
    assert joint == caldist.Joint.from_arrays(label.numpy(), plain)
    matrix = torch.stack([1 - p, p], dim=1)
    found = caldist.multiclass.classwise_distance(label, matrix)
    assert found == caldist.multiclass.classwise_distance(
        label.numpy(), matrix.detach().double().numpy()
    )


def test_bad_values_are_named(rows):
    label, p = rows[0], rows[1].bfloat16()
    with pytest.raises(ValueError, match=r"y_prob\[0\] is 2\.0"):
        caldist.ece(label, (p + 2 - p[0]).requires_grad_())
    with pytest.raises(ValueError, match="look swapped"):
        caldist.ece(p.requires_grad_(), label.double().requires_grad_())


@pytest.mark.parametrize("name", ["y_true", "y_prob", "sample_weight"])
def test_rows_are_not_fetched_from_elsewhere(rows, name):
    arguments = {"y_true": rows[0], "y_prob": rows[1], "sample_weight": torch.ones(300)}
    arguments[name] = arguments[name].to("meta")
    for measure in MEASURES:
        with pytest.raises(TypeError, match=rf"{name} is a tensor on meta\. Pass {name}\.cpu\(\)"):
            measure(**arguments)
    if name == "y_true":
        with pytest.raises(TypeError, match="y_true is a tensor on meta"):
            caldist.multiclass.classwise_distance(
                arguments[name], torch.stack([1 - rows[1], rows[1]], dim=1)
            )
