"""Values with another BLAS and without vector instructions: to the bit, or to 1e-13."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import caldist
from caldist.measures.registry import all_measures
from measure_cases import complete, counts_rows

TESTS = Path(__file__).parents[1]
# They need exponentials, logarithms or cosines, which are those of NumPy and of the C library.
WITHIN_ROUNDING = {
    "kernel_ce",
    "kernel_smoothed_ece",
    "log_loss",
    "mmce",
    "normalized_cross_entropy",
    "soft_binned_ece",
}
SIZE = 200


def values():
    """Return the value of every measure, and what certificates prove."""
    rng = np.random.default_rng(0)
    y_prob = rng.random(SIZE)
    y_prob *= y_prob  # nothing here depends on the processor
    y_true = rng.random(SIZE) < 0.25 + 0.5 * y_prob
    weight = rng.random(SIZE)
    found = {}
    for name, measure in ((name, complete(one)) for name, one in all_measures().items()):
        found[name] = [float(measure(y_true, y_prob))]
        if not counts_rows(measure):
            found[name] += [float(measure(y_true, y_prob, sample_weight=weight))]
    for name in ("smooth_ce", "lower_distance", "upper_distance", "post_processing_gap"):
        for given in (None, weight):
            proof = caldist.certify(y_true, y_prob, measure=name, tol=1e-3, sample_weight=given)
            proof.verify()
            found[name] += [proof.lower, proof.upper]
    return found


def vector_instructions():
    """Return those that NumPy uses here if it may: the environment can forbid them."""
    return np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [
        {"OPENBLAS_CORETYPE": "Nehalem"},  # of other libraries than OpenBLAS nothing is asked
        {"NPY_DISABLE_CPU_FEATURES": " ".join(vector_instructions())},
        {"OPENBLAS_NUM_THREADS": "1", "CALDIST_NUM_THREADS": "1"},
    ],
)
def test_values_do_not_depend_on_the_processor(variables):
    done = subprocess.run(
        [sys.executable, __file__],
        env=os.environ | variables | {"PYTHONPATH": str(TESTS / "support")},
        check=True,
        capture_output=True,
        text=True,
    )
    others = json.loads(done.stdout)
    here = values()
    assert here.keys() == others.keys()
    assert here.keys() > WITHIN_ROUNDING
    for name, mine in here.items():
        if name in WITHIN_ROUNDING:
            assert others[name] == pytest.approx(mine, rel=1e-13), name
        else:
            assert others[name] == mine, name


def test_the_page_says_which_values_agree_within_rounding():
    page = (TESTS.parent / "docs" / "release.md").read_text("utf-8")
    [said] = [item for item in page.split("\n- **") if item.startswith("Processors.")]
    assert "to 1e-13" in said
    assert {name for name in all_measures() if f"`{name}`" in said} == WITHIN_ROUNDING


if __name__ == "__main__":
    print(json.dumps(values()))  # noqa: T201
