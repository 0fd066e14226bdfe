"""How often tests reject: calibrated predictions (the size) and miscalibrated ones (the power).

Of sub-groups the size is the family-wise error, and the power that of one group among ten.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from caldist.groups.evaluation import evaluate_groups
from caldist.inference.testing import calibration_test
from studies.laws import LAWS, Function, Law, Sample, bump, identity, shift, sine, stream, tied
from studies.laws import temperature as tempered
from studies.runs import Row

__all__ = [
    "CALIBRATED",
    "EXACT",
    "FAMILIES",
    "GROUPS",
    "GROUP_ROWS",
    "GROUP_TEST",
    "LEVELS",
    "ROWS",
    "TESTS",
    "Plan",
    "cells",
    "power_cell",
]

LEVELS = (0.05, 0.1)
ROWS = (100, 400, 2000)
POWER_ROWS = 500
GROUPS = 10
GROUP_ROWS = 5000  # of all groups
GROUP_STRENGTHS = (0.0, 0.7)  # added to the logits that are predicted for the first group
GROUP_TEST = "evaluate_groups"

EXACT = (
    "auto",
    "smooth_ce",
    "random_interval_ce",
    "spiegelhalter",
    "kernel_ce",
    "ecce_mad",
    "hosmer_lemeshow",
)
LIMIT_LAWS = {
    "spiegelhalter": "spiegelhalter, normal law",
    "ecce_mad": "ecce_mad, limit law",
    "hosmer_lemeshow": "hosmer_lemeshow, chi-squared law",
}
TESTS = (*EXACT, *LIMIT_LAWS.values())

CALIBRATED: dict[str, Law] = {name: law for name, law in LAWS.items() if law.calibrated} | {
    "ties": Law("ties", "calibrated, five predictions", tied, identity, calibrated=True)
}


@dataclass(frozen=True)
class Family:
    """Miscalibration of one kind in growing strength, 0 (or 1 for a factor) being none."""

    text: str
    strengths: tuple[float, ...]
    law: Callable[[float], Law]


def _of_frequency(frequency: Callable[[float], Function]) -> Callable[[float], Law]:
    return lambda strength: Law("", "", identity, frequency(strength))


FAMILIES: dict[str, Family] = {
    "temperature": Family(
        "factor of the logits",
        (1.0, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8),
        lambda strength: Law("", "", tempered(strength), identity),
    ),
    "shift": Family(
        "amount added to the logits", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6), _of_frequency(shift)
    ),
    "bump": Family(
        "height of a bump at v = 0.6", (0.0, 0.1, 0.2, 0.25, 0.3, 0.35, 0.4), _of_frequency(bump)
    ),
    "sine": Family(
        "size of three waves", (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3), _of_frequency(sine)
    ),
}


@dataclass(frozen=True)
class Plan:
    """How much work a cell is: data sets by the number of rows, and for the power."""

    seed: int = 2
    data_sets: tuple[int, ...] = (800, 600, 400)
    power_sets: int = 200
    n_resamples: int = 199

    def __str__(self) -> str:
        return (
            f"seed {self.seed}; data sets {self.data_sets}, power {self.power_sets}; "
            f"resamples {self.n_resamples}"
        )


FULL = Plan()


def cells() -> list[tuple[str, str, float, int]]:
    """Return (kind, law or family, strength, rows) of all cells, the slow ones first."""
    size = [("size", name, 0.0, n) for n in sorted(ROWS, reverse=True) for name in CALIBRATED]
    power = [
        ("power", name, strength, POWER_ROWS)
        for name, family in FAMILIES.items()
        for strength in family.strengths
    ]
    groups = [
        ("groups", name, strength, GROUP_ROWS)
        for name in CALIBRATED
        for strength in GROUP_STRENGTHS
    ]
    return [*groups, *size, *power]


def power_cell(kind: str, name: str, strength: float, n: int, *, plan: Plan) -> list[Row]:
    """Simulate one cell and return a row for each test and level."""
    if kind == "groups":
        law, sets = CALIBRATED[name], plan.power_sets
    elif kind == "size":
        law, sets = CALIBRATED[name], plan.data_sets[ROWS.index(n)]
    else:
        law, sets = FAMILIES[name].law(strength), plan.power_sets
    found: dict[str, list[float]] = {}
    for at in range(sets):
        sample = law.draw(n, stream(plan.seed, kind, name, str(strength), n, at))
        rng = stream(plan.seed, kind, name, str(strength), n, at, "test")
        if kind == "groups":
            pvalues = _of_groups(sample, strength, plan.n_resamples, rng)
        else:
            pvalues = _pvalues(sample, plan.n_resamples, rng)
        for test, pvalue in pvalues.items():
            found.setdefault(test, []).append(pvalue)
    return [
        {
            "kind": kind,
            "law": name,
            "strength": str(strength),
            "rows": str(n),
            "test": test,
            "level": str(level),
            "data_sets": str(sets),
            "rejected": str(int(np.count_nonzero(np.array(found[test]) <= level + 1e-12))),
        }
        for test in (*TESTS, GROUP_TEST)
        if test in found
        for level in LEVELS
    ]


def _pvalues(sample: Sample, n_resamples: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the p-value of each test; limit laws only for independent rows."""
    pvalues: dict[str, float] = {}
    for name in ("auto", "kernel_ce", "ecce_mad", "hosmer_lemeshow"):
        with warnings.catch_warnings():  # of few clusters or draws, which is what is studied
            warnings.simplefilter("ignore", UserWarning)
            result = calibration_test(
                sample.y_true, sample.y_prob, measure=name, n_resamples=n_resamples,
                clusters=sample.clusters, rng=rng,
            )  # fmt: skip
        for part in (result, *result.components):
            pvalues[part.measure] = part.pvalue
            if part.measure in LIMIT_LAWS and part.asymptotic_pvalue is not None:
                pvalues[LIMIT_LAWS[part.measure]] = part.asymptotic_pvalue
    return pvalues


def _of_groups(
    sample: Sample, strength: float, n_resamples: int, rng: np.random.Generator
) -> dict[str, float]:
    """Return the p-value of all groups; of the first one where its predictions are moved."""
    unit = np.arange(sample.y_true.size) if sample.clusters is None else sample.clusters
    by = unit % GROUPS
    y_prob = np.where(by == 0, shift(strength)(sample.y_prob), sample.y_prob)
    result = evaluate_groups(
        sample.y_true, y_prob, by=by, clusters=sample.clusters, measures=[],
        n_resamples=n_resamples, rng=rng,
    )  # fmt: skip
    return {GROUP_TEST: result[0].pvalue if strength else result.pvalue}
