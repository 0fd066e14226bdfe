"""Evidence for and against properties: constructions that evaluate a measure.

What a theorem says of all predictors is tried on seeded collections, with the theorem's constant.
What fails is shown by one instance, or by one sequence.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from caldist.measures.smooth_ce import smooth_ce
from caldist.paper import witnesses
from caldist.paper.table import Evidence
from caldist.paper.witnesses import Domain

__all__ = [
    "Subject",
    "both",
    "bounded_above",
    "bounded_below",
    "complete",
    "continuous",
    "far_from_calibrated",
    "jumps",
    "needs_domain",
    "of_joints",
    "only_bounded",
    "parity",
    "predictions_suffice",
    "runs",
    "sees_nothing",
    "sound",
    "taxes_calibrated",
    "vanishes",
]

_ROUNDING = 1e-11
_FAR = 0.05  # a true distance at which every sound measure is well above its tolerance


@dataclass(frozen=True, eq=False)
class Subject:
    """A measure on domains; its value may be below the exact one by ``tolerance``."""

    name: str
    value: Callable[[Domain], float]
    tolerance: float = 0.0


def of_joints(name: str, measure: Callable[..., float], tolerance: float = 0.0) -> Subject:
    """Make a subject of a measure that needs only predictions and labels."""
    return Subject(name, partial(_of_joint, measure), tolerance)


def _of_joint(measure: Callable[..., float], domain: Domain) -> float:
    return measure(domain.joint)


@cache  # three columns speak of the same values
def _values(subject: Subject) -> tuple[float, ...]:
    return tuple(subject.value(domain) for domain in witnesses.domains())


# -- theorems, tried on collections ----------------------------------------------------------------


def continuous(subject: Subject, constant: float, power: float) -> Evidence:
    """Try |μ(f) - μ(g)| ≤ constant · E|f - g|^power."""
    ratios, holds = [], True
    for f, g in witnesses.pairs():
        change = abs(subject.value(f) - subject.value(g))
        bound = constant * f.distance_to(g) ** power
        ratios.append(change / bound)
        holds &= change <= bound + subject.tolerance + _ROUNDING
    return Evidence(
        f"|μ(f) - μ(g)| ≤ {_factor(constant)}{_power('E|f - g|', power)} on pairs of predictors",
        (("pairs", len(ratios)), ("largest share of the bound", max(ratios))),
        holds,
    )


def complete(subject: Subject) -> Evidence:
    """Try that calibrated predictors have the value 0."""
    values = [subject.value(domain) for domain in witnesses.calibrated()]
    return Evidence(
        "0 on perfectly calibrated predictors",
        (("predictors", len(values)), ("largest value", max(values))),
        max(values) <= _ROUNDING,
    )


def sound(subject: Subject) -> Evidence:
    """Try that predictors far from calibrated have a positive value."""
    cases = zip(_values(subject), witnesses.distances(), strict=True)
    values = [value for value, distance in cases if distance >= _FAR]
    return Evidence(
        f"positive where dCE ≥ {_FAR}",
        (("predictors", len(values)), ("smallest value", min(values))),
        min(values) > _ROUNDING,
    )


def bounded_above(subject: Subject, constant: float, power: float) -> Evidence:
    """Try μ ≤ constant · dCE^power."""
    cases = list(zip(_values(subject), witnesses.distances(), strict=True))
    ratios = [value / d**power for value, d in cases if d > _ROUNDING]
    return Evidence(
        f"μ ≤ {_factor(constant)}{_power('dCE', power)}",
        (("predictors", len(cases)), ("largest ratio", max(ratios)), ("at most", constant)),
        all(value <= constant * d**power + _ROUNDING for value, d in cases),
    )


def bounded_below(subject: Subject, constant: float, power: float) -> Evidence:
    """Try μ ≥ constant · dCE^power."""
    cases = list(zip(_values(subject), witnesses.distances(), strict=True))
    slack = subject.tolerance + _ROUNDING
    ratios = [(value + slack) / d**power for value, d in cases if d > _ROUNDING]
    return Evidence(
        f"μ ≥ {_factor(constant)}{_power('dCE', power)}",
        (("predictors", len(cases)), ("smallest ratio", min(ratios)), ("at least", constant)),
        all(value + slack >= constant * d**power for value, d in cases),
    )


def both(first: Evidence, second: Evidence) -> Evidence:
    """Join the evidence of two statements that are made together."""
    return Evidence(
        f"{first.claim}; {second.claim}",
        tuple(dict.fromkeys(first.numbers + second.numbers)),  # the same predictors, once
        first.holds and second.holds,
    )


# -- counter-examples ------------------------------------------------------------------------------


def jumps(subject: Subject, limit: Domain, near: tuple[Domain, ...]) -> Evidence:
    """Show predictors that converge to one at which the value is another."""
    at_limit = subject.value(limit)
    values = [subject.value(domain) for domain in near]
    steps = [domain.distance_to(limit) for domain in near]
    return Evidence(
        "predictors that converge, and their limit",
        (("E|f - g|", steps[-1]), ("μ(f)", values[-1]), ("μ(g)", at_limit)),
        steps[-1] < 1e-5
        and steps == sorted(steps, reverse=True)
        and min(abs(value - at_limit) for value in values) > 0.01,
    )


def parity(even: Subject, odd: Subject, limit: Domain, near: tuple[Domain, ...]) -> Evidence:
    """Show the jump, and that one more bin hides it."""
    jump = jumps(even, limit, near)
    hidden = odd.value(near[-1])
    numbers = (*jump.numbers, (f"μ(f) of {odd.name}", hidden))
    return Evidence(jump.claim, numbers, jump.holds and hidden <= _ROUNDING)


def _at(
    subject: Subject, domain: Domain, claim: str, holds: Callable[[float, float], bool]
) -> Evidence:
    distance, value = domain.distance(), subject.value(domain)
    return Evidence(claim, (("dCE", distance), ("μ", value)), holds(distance, value))


def taxes_calibrated(subject: Subject, domain: Domain) -> Evidence:
    """Show a calibrated predictor with a positive value."""
    claim = "a perfectly calibrated predictor"
    return _at(subject, domain, claim, lambda dce, mu: dce <= _ROUNDING and mu > 0.01)


def sees_nothing(subject: Subject, domain: Domain) -> Evidence:
    """Show a miscalibrated predictor with the value 0."""
    claim = "a predictor that is not calibrated"
    return _at(subject, domain, claim, lambda dce, mu: dce > 0.01 and mu <= _ROUNDING)


def far_from_calibrated(subject: Subject, near: tuple[Domain, ...]) -> Evidence:
    """Show predictors whose distance goes to 0 while the value does not."""
    values = [subject.value(domain) for domain in near]
    gaps = [domain.distance() for domain in near]
    return Evidence(
        "predictors ever closer to calibrated",
        (("dCE", gaps[-1]), ("μ", values[-1])),
        gaps[-1] < 1e-5 and gaps == sorted(gaps, reverse=True) and min(values) > 0.1,
    )


def vanishes(subject: Subject, steps: tuple[float, ...] = (0.02, 0.01, 0.005, 0.003)) -> Evidence:
    """Show that μ ≥ b·dCE^s would need ever larger s: exponentially small at polynomial smCE.

    dCE ≥ smCE/2, so s is at least ln μ / ln(smCE/2) but for the constant b.
    """
    numbers, exponents, holds = [], [], True
    for eps in steps:
        domain = witnesses.gaussian_wave(eps)
        value, smooth = subject.value(domain), smooth_ce(domain.joint)
        holds &= 0 < value < math.exp(-1 / (16 * eps)) and smooth > eps**1.5 / 2
        exponents.append(math.log(value) / math.log(smooth / 2))
        numbers += [("ε", eps), ("smCE", smooth), ("μ", value), ("least s", exponents[-1])]
    return Evidence(
        "v uniform on [¼, ¾], E[y - v|v] = cos(t/ε) exp(-t²/ε)/4 at t = v - ½",
        tuple(numbers),
        holds and exponents == sorted(exponents),
    )


# -- access and cost -------------------------------------------------------------------------------


def _on_both_domains(subject: Subject, holds: Callable[[float], bool]) -> Evidence:
    first, second = (subject.value(domain) for domain in witnesses.quadratic_gap(0.1))
    return Evidence(
        "two domains with the same predictions and labels",
        (("μ on the first", first), ("μ on the second", second)),
        holds(abs(first - second)),
    )


def predictions_suffice(subject: Subject) -> Evidence:
    """Show the same value on two domains with the same predictions and labels."""
    return _on_both_domains(subject, lambda gap: gap <= subject.tolerance + _ROUNDING)


def needs_domain(subject: Subject) -> Evidence:
    """Show different values on two domains with the same predictions and labels."""
    return _on_both_domains(subject, lambda gap: gap > 0.01)


def runs(subject: Subject) -> Evidence:
    """Evaluate the measure on many distinct predictions; the seconds are for information."""
    domain = witnesses.large()
    start = time.perf_counter()
    value = subject.value(domain)
    seconds = time.perf_counter() - start
    return Evidence(
        "evaluated on many distinct predictions",
        (("predictions", domain.mass.size), ("value", value), ("seconds", seconds)),
        math.isfinite(value),
    )


def only_bounded(enclose: Callable[[Domain], tuple[float, float]], size: int = 40) -> Evidence:
    """Show a domain on which only bounds on the value are found."""
    rng = np.random.default_rng(0)
    mean, prediction = rng.random(size), rng.random(size)
    lower, upper = enclose(Domain(mean, prediction, np.full(size, 1 / size)))
    return Evidence(
        f"{size} points, too many for the exact search",
        (("at least", lower), ("at most", upper)),
        lower < upper,
    )


def _factor(constant: float) -> str:
    return "" if constant == 1 else f"{constant:.4g} · "


def _power(base: str, power: float) -> str:
    return base if power == 1 else f"({base})^{power:g}" if "|" in base else f"{base}^{power:g}"
