"""Claims about a measure, each with the evidence that goes with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from caldist._properties import evidence, witnesses
from caldist._properties.evidence import Subject
from caldist._properties.table import Evidence, Kind
from caldist._properties.witnesses import Domain

__all__ = [
    "TWO_POINTS",
    "Claim",
    "above",
    "below",
    "blind",
    "complete",
    "jump",
    "jump_at_two_points",
    "modulus",
    "not_near_calibrated",
    "positive",
    "sound",
    "together",
]

TWO_POINTS = tuple(witnesses.two_points(eps) for eps in (1e-2, 1e-4, 1e-6))


@dataclass(frozen=True)
class Claim:
    """What is said of one property of a measure, and how it is shown."""

    holds: bool | str
    reason: str
    kind: Kind
    show: Callable[[Subject], Evidence]


# -- theorems --------------------------------------------------------------------------------------


def complete(reason: str) -> Claim:
    """Complete: 0 on calibrated predictors."""
    return Claim(True, reason, "theorem", evidence.complete)


def modulus(reason: str, constant: float, power: float = 1) -> Claim:
    """Continuous: μ moves by at most constant · E|f - g|^power."""
    show = partial(evidence.continuous, constant=constant, power=power)
    return Claim(True, reason, "theorem", show)


def sound(reason: str) -> Claim:
    """Sound: 0 only on calibrated predictors."""
    return Claim(True, reason, "theorem", evidence.sound)


def above(exponent: str, reason: str, constant: float) -> Claim:
    """Robustly complete: μ ≤ constant · dCE^exponent."""
    show = partial(evidence.bounded_above, constant=constant, power=_number(exponent))
    return Claim(exponent, reason, "theorem", show)


def below(exponent: str, reason: str, constant: float) -> Claim:
    """Robustly sound: μ ≥ constant · dCE^exponent."""
    show = partial(evidence.bounded_below, constant=constant, power=_number(exponent))
    return Claim(exponent, reason, "theorem", show)


def together(upper: Claim, lower: Claim) -> Claim:
    """Consistent: robustly complete and robustly sound."""
    if upper.holds is False:
        return Claim(False, "It is not robustly complete.", upper.kind, upper.show)
    if lower.holds is False:
        return Claim(False, "It is not robustly sound.", lower.kind, lower.show)
    return Claim(
        f"({upper.holds}, {lower.holds})",
        "It is robustly complete and robustly sound, with these exponents.",
        "theorem",
        lambda subject: evidence.both(upper.show(subject), lower.show(subject)),
    )


# -- counter-examples ------------------------------------------------------------------------------


def jump(reason: str, limit: Domain, near: tuple[Domain, ...]) -> Claim:
    """Not continuous: the value jumps at the limit."""
    show = partial(evidence.jumps, limit=limit, near=near)
    return Claim(False, reason, "counter-example", show)


def jump_at_two_points(reason: str) -> Claim:
    """Not continuous at ½ ± ε with labels 0 and 1, as ε goes to 0."""
    return jump(reason, witnesses.two_points(0), TWO_POINTS)


def not_near_calibrated(reason: str) -> Claim:
    """Not robustly complete at ½ ± ε with labels 0 and 1."""
    show = partial(evidence.far_from_calibrated, near=TWO_POINTS)
    return Claim(False, reason, "counter-example", show)


def positive(reason: str) -> Claim:
    """Not complete: the prediction ½ for a fair coin has a positive value."""
    show = partial(evidence.taxes_calibrated, domain=witnesses.fair_coin())
    return Claim(False, reason, "counter-example", show)


def blind(reason: str, domain: Domain) -> Claim:
    """Not sound: the value is 0 on a predictor that is not calibrated."""
    show = partial(evidence.sees_nothing, domain=domain)
    return Claim(False, reason, "counter-example", show)


def _number(exponent: str) -> float:
    top, _, bottom = exponent.partition("/")
    return float(top) / float(bottom or 1)
