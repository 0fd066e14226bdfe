"""Lines of printed results that are left out, or shortened, at their limits."""

import re

import numpy as np
import pytest

import caldist
from caldist._util.brief import _FEW, _VALUE, shown_value
from caldist._util.numbers import outwards_to
from caldist.clinical.net_benefit import _SHOWN
from caldist.recalibration import evaluate_map


@pytest.mark.parametrize(
    ("count", "last"), [(_SHOWN - 1, ""), (_SHOWN, ""), (_SHOWN + 3, "… and 3 more thresholds")]
)
def test_thresholds_of_net_benefit(count, last):
    y, p = [0, 1] * 10, [0.25, 0.75] * 10
    lines = str(
        caldist.clinical.net_benefit(y, p, thresholds=np.linspace(0.1, 0.9, count))
    ).splitlines()
    assert len(lines) == 1 + min(count, _SHOWN) + bool(last)
    assert lines[-1] == last or (not last and lines[-1].split()[0] == "0.9")


def test_a_loss_that_was_infinite_has_no_change():
    rng = np.random.default_rng(0)
    p = np.r_[0.0, rng.uniform(0.1, 0.9, 99)]
    y = np.r_[1, rng.random(99) < p[1:]].astype(int)  # said to be impossible, and seen
    found = evaluate_map(y, p, map=([0, 1], [0.1, 0.9]), n_resamples=59, rng=0)
    after = caldist.log_loss(y, 0.1 + 0.8 * p)
    [line] = [line for line in str(found).splitlines() if line.startswith("Log loss")]
    assert line == f"Log loss inf -> {after:.4g} (if the map was made from other rows)."


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("exponent", range(3, 16))
def test_ends_of_three_digits_are_not_moved_and_others_are_moved_outwards(exponent, side):
    for digits in range(101, 999, 7):
        value = digits * 10.0**-exponent
        assert float(outwards_to(value, 3, side)) == pytest.approx(value, rel=1e-12)
        found = float(outwards_to(value * (1 + side * 1e-6), 3, side))
        assert found == pytest.approx(value + side * 10.0**-exponent, rel=1e-12)


def test_short_sequences_are_shown_and_long_ones_counted():
    assert shown_value([0] * _FEW) == repr([0] * _FEW)
    assert shown_value([0] * (_FEW + 1)) == f"<list of {_FEW + 1}>"
    text = "x" * (_VALUE - 2)  # and two quotes
    assert shown_value(text) == repr(text)
    assert shown_value(text + "x") == repr(text[:-1] + "…")


@pytest.mark.parametrize("top", [0.31, 0.37, 0.43])
def test_what_rounding_did_at_most_is_rounded_up(top):
    rng = np.random.default_rng(0)
    p = top * rng.random(2_000)
    joint = caldist.Joint.from_arrays(rng.random(2_000) < p, p).coarsen(7)
    found = caldist.report(joint, n_resamples=99, rng=0)
    (model,) = found.models
    text = " ".join([*found.data.notes, str(caldist.distance_bracket(joint))])
    shown = re.findall(r"by ([-\d.e]+) on average at most", text)
    assert len(shown) == 2
    assert all(joint.radius <= float(bound) < 1.1 * joint.radius for bound in shown)
    moved = {"smooth_ce": caldist.smooth_ce, "brier_score": caldist.brier_score}
    for measure in model.measures:
        if measure.name in moved:
            exact = caldist.confidence_interval(
                joint, measure=moved[measure.name], n_resamples=99, rng=0
            ).rounding
            (bound,) = re.findall(r"by ([-\d.e]+) at most", measure.note)
            assert exact <= float(bound) < 1.1 * exact
