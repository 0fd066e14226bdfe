"""Claims about a measure, each with the evidence that goes with it; an entry has one of each kind.

The entries are in ``claims_by_measure.py``. In their texts sections are those of the paper, and
"From" marks what follows from its statements but is not among them. dCE is the true distance to
calibration, c a residual E[(y - v) 1(v = t)], S its prefix sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from caldist.paper import evidence, witnesses
from caldist.paper.evidence import Subject, of_joints
from caldist.paper.table import COLUMNS, Evidence, Kind, Property
from caldist.paper.witnesses import Domain

__all__ = [
    "NOT_NEAR_CALIBRATED",
    "TWO_POINTS",
    "Claim",
    "Entry",
    "Subject",
    "above",
    "below",
    "blind",
    "complete",
    "cost",
    "jump",
    "jump_at_two_points",
    "modulus",
    "np_hard",
    "of_joints",
    "positive",
    "refuted",
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


def complete(
    reason: str = "Calibrated predictions have E[y - v|v] = 0, so every sum is 0.",
) -> Claim:
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
    show = partial(evidence.bounded_above, constant=constant, power=float(Fraction(exponent)))
    return Claim(exponent, reason, "theorem", show)


def below(exponent: str, reason: str, constant: float) -> Claim:
    """Robustly sound: μ ≥ constant · dCE^exponent."""
    show = partial(evidence.bounded_below, constant=constant, power=float(Fraction(exponent)))
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
        partial(_both, upper.show, lower.show),
    )


def _both(
    first: Callable[[Subject], Evidence], second: Callable[[Subject], Evidence], subject: Subject
) -> Evidence:
    return evidence.both(first(subject), second(subject))


# -- counter-examples ------------------------------------------------------------------------------


def refuted(reason: str, show: Callable[..., Evidence], **given: Any) -> Claim:
    """Make the claim that a property fails, as an instance shows."""
    return Claim(False, reason, "counter-example", partial(show, **given))


def jump(reason: str, limit: Domain, near: tuple[Domain, ...]) -> Claim:
    """Not continuous: the value jumps at the limit."""
    return refuted(reason, evidence.jumps, limit=limit, near=near)


def jump_at_two_points(reason: str) -> Claim:
    """Not continuous at ½ ± ε with labels 0 and 1, as ε goes to 0."""
    return jump(reason, witnesses.two_points(0), TWO_POINTS)


NOT_NEAR_CALIBRATED = refuted(
    "dCE ≤ ε at ½ ± ε with labels 0 and 1, while the value does not go to 0 (section 4).",
    evidence.far_from_calibrated,
    near=TWO_POINTS,
)


def positive(reason: str = "A calibrated predictor has a positive value.") -> Claim:
    """Not complete, robustly or at all: the prediction ½ for a fair coin has a positive value."""
    return refuted(reason, evidence.taxes_calibrated, domain=witnesses.fair_coin())


def blind(reason: str, domain: Domain) -> Claim:
    """Not sound, robustly or at all: the value is 0 on a predictor that is not calibrated."""
    return refuted(reason, evidence.sees_nothing, domain=domain)


# -- access and cost -------------------------------------------------------------------------------

_PREDICTIONS = Claim(
    True,
    "A function of the joint distribution of prediction and label.",
    "computation",
    evidence.predictions_suffice,
)


def cost(text: str, reason: str) -> Claim:
    """Cost: it ends on many predictions."""
    return Claim(text, reason, "computation", evidence.runs)


def np_hard(enclose: Callable[[Domain], tuple[float, float]]) -> Claim:
    """Cost: on many points only bounds are found."""
    reason = "NP-hard in general; exact up to 17 points, proved bounds beyond."
    return Claim("NP-hard", reason, "computation", partial(_only_bounded, enclose))


def _only_bounded(enclose: Callable[[Domain], tuple[float, float]], _: Subject) -> Evidence:
    return evidence.only_bounded(enclose)


_SORT = cost("O(n log n)", "A sort and one pass.")


@dataclass(frozen=True)
class Entry:
    """A line of the table: a measure, and a claim for each column.

    ``upper`` and ``lower`` are robust completeness and soundness. ``paper`` is what Table 1 says of
    continuous, complete and sound.
    """

    subject: Subject
    continuous: Claim
    complete: Claim
    sound: Claim
    upper: Claim
    lower: Claim
    cost: Claim = _SORT
    access: Claim = _PREDICTIONS
    paper: tuple[bool, bool, bool] | None = None

    def cells(self) -> list[Property]:
        """Return its cells, one for each column."""
        claims = (
            self.continuous, self.complete, self.sound, self.upper, self.lower,
            together(self.upper, self.lower), self.access, self.cost,
        )  # fmt: skip
        marks = (*(self.paper or (None,) * 3), *(None,) * 5)
        return [
            Property(
                self.subject.name, column, claim.holds, claim.reason, claim.kind,
                partial(claim.show, self.subject), mark,
            )
            for column, claim, mark in zip(COLUMNS, claims, marks, strict=True)
        ]  # fmt: skip
