"""How often a monitor is wrong over all its looks, and how long it takes to be right.

Every part draws streams of batches: calibrated ones, whose alarms are false; laws with a known
distance, which the confidence sequence must hold at every look; and miscalibrated ones, whose alarm
is compared with an oracle that knows the truth, and with probcal's monitor where it is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist import Joint, Monitor, lower_distance
from caldist.monitoring import mixtures, potentials
from studies.laws import midpoints, stream
from studies.runs import Row

__all__ = [
    "CASES",
    "CHANGES",
    "LAWS",
    "NULLS",
    "TOLERANCES",
    "UNSEEN",
    "Plan",
    "cells",
    "monitor_cell",
]

Vector = NDArray[np.float64]
Function = Callable[[Vector], Vector]

BATCH = 250
LOOKS = 40
LONGEST = 20_000  # rows after which nobody waits any longer
LEVELS = (0.2, 0.1, 0.05, 0.01)
RATE = 0.05
CALM, DAY_ROWS, DAYS = 60, 200, 40
RUN_LENGTH = 1000.0
SHORT_RUN, MOST_BATCHES = 20.0, 200


@dataclass(frozen=True)
class Plan:
    """How many streams there are of each kind."""

    seed: int = 5
    false_alarms: int = 2000
    coverage: int = 1000
    delay: int = 200
    change: int = 100
    tolerance: int = 100

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in vars(self).items())


def of_size(streams: int) -> Plan:
    """Return a plan with so many calibrated streams, and fewer of the others."""
    some = max(1, streams // 10)
    return Plan(
        false_alarms=streams, coverage=streams // 2, delay=some, change=some, tolerance=some
    )


FULL = Plan()
QUICK = Plan(false_alarms=2, coverage=2, delay=1, change=1, tolerance=1)


# -- curves ------------------------------------------------------------------------------------


def _logit(p: Vector) -> Vector:
    return np.log(p) - np.log1p(-p)


def _expit(x: Vector) -> Vector:
    return np.asarray(1 / (1 + np.exp(-x)))


def same(v: Vector) -> Vector:
    return v


def shifted(amount: float) -> Function:
    return lambda v: _expit(_logit(v) + amount)


def tilted(slope: float) -> Function:
    return lambda v: _expit(slope * _logit(v))


def between(low: float, high: float, amount: float) -> Function:
    return lambda v: np.clip(v + amount * ((v >= low) & (v <= high)), 0.0, 1.0)


def uniform(u: Vector) -> Vector:
    return u


def sharp(u: Vector) -> Vector:
    """Return the quantiles of Beta(0.5, 0.5)."""
    return np.asarray(np.clip(np.sin(np.pi * u / 2) ** 2, 1e-9, 1 - 1e-9))


def rare(u: Vector) -> Vector:
    """Return the quantiles of Beta(1, 32), whose mean is 0.03."""
    return -np.expm1(np.log1p(-u) / 32)


def very_rare(u: Vector) -> Vector:
    """Return the quantiles of Beta(1, 199), whose mean is 0.005."""
    return -np.expm1(np.log1p(-u) / 199)


def nine_values(u: Vector) -> Vector:
    return (np.floor(9 * u) + 1) / 10


def with_ends(u: Vector) -> Vector:
    """Return 0 and 1 for a tenth of the rows each."""
    return np.clip((u - 0.1) / 0.8, 0.0, 1.0)


def one_value(u: Vector) -> Vector:
    return np.full_like(u, 0.3)


@dataclass(frozen=True)
class Case:
    """Predictions as quantiles, and the frequency of label 1 given the prediction."""

    text: str
    prediction: Function
    frequency: Function

    def draw(self, n: int, rng: np.random.Generator) -> tuple[NDArray[np.bool_], Vector, Vector]:
        """Return labels, predictions and the frequencies behind them."""
        v = self.prediction(rng.random(n))
        p = self.frequency(v)
        return rng.random(n) < p, v, p

    def population(self, atoms: int = 20_000) -> Joint:
        """Return the law at the midpoints of equal pieces."""
        v = self.prediction(midpoints(atoms))
        p = self.frequency(v)
        return Joint.from_masses(v, 1 - p, p)


NULLS: dict[str, str] = {
    "uniform": "v uniform",
    "sharp": "v ~ Beta(0.5, 0.5)",
    "rare": "3% positives, v ~ Beta(1, 32)",
    "very rare": "0.5% positives, v ~ Beta(1, 199)",
    "ties": "nine predictions",
    "moving": "v about 0.1 at first and 0.9 at last",
    "feedback": "predictions that react to the labels of the batch before",
    "one value": "v = 0.3",
    "exact 0 and 1": "a tenth of the predictions 0, a tenth 1",
    "rounded": "v uniform, in 16 cells (bits = 4)",
    "weights": "v uniform, weights exponential",
    "sub-groups": "v uniform, three sub-groups of different sizes",
    "run length": "v uniform, run_length 20, batches of 50 rows",
}

CASES: dict[str, Case] = {
    "shift": Case("uniform, logits + 0.2", uniform, shifted(0.2)),
    "slope": Case("uniform, logits × 0.7", uniform, tilted(0.7)),
    "bump": Case("uniform, + 0.1 on [0.6, 0.75]", uniform, between(0.6, 0.75, 0.1)),
    "wave": Case(
        "uniform, + 0.05 sin 4πv",
        uniform,
        lambda v: np.clip(v + 0.05 * np.sin(4 * np.pi * v), 0.0, 1.0),
    ),
    "rare": Case(
        "3% positives, odds × 1.4",
        rare,
        lambda v: _expit(_logit(np.maximum(v, 1e-12)) + np.log(1.4)),
    ),
    "top": Case("uniform, - 0.08 above 0.8", uniform, between(0.8, 1.0, -0.08)),
    "sharp": Case("Beta(0.5, 0.5), logits × 1.3", sharp, tilted(1.3)),
    "ties": Case("nine values, logits + 0.2", nine_values, shifted(0.2)),
}

UNSEEN: dict[str, Case] = {
    "narrow bump": Case("uniform, + 0.15 on [0.30, 0.36]", uniform, between(0.30, 0.36, 0.15)),
    "two bumps": Case(
        "uniform, + 0.1 on [0.2, 0.3], - 0.1 on [0.7, 0.8]",
        uniform,
        lambda v: between(0.7, 0.8, -0.1)(between(0.2, 0.3, 0.1)(v)),
    ),
    "steps": Case("uniform, the truth in five bins", uniform, lambda v: np.floor(5 * v) / 5 + 0.1),
    "fast wave": Case(
        "uniform, + 0.08 sin 10πv",
        uniform,
        lambda v: np.clip(v + 0.08 * np.sin(10 * np.pi * v), 0.0, 1.0),
    ),
    "half": Case(
        "uniform, logits × 0.6 above 0.5", uniform, lambda v: np.where(v > 0.5, tilted(0.6)(v), v)
    ),
    "mixed": Case("uniform, a tenth of the rows at random", uniform, lambda v: 0.9 * v + 0.05),
    "ceiling": Case("uniform, never above 0.9", uniform, lambda v: np.minimum(v, 0.9)),
    "rare top": Case(
        "3% positives, half as many above 0.1", rare, lambda v: np.where(v > 0.1, v / 2, v)
    ),
}  # fmt: skip

LAWS: dict[str, Case] = {
    "calibrated": Case("uniform, calibrated", uniform, same),
    "shift": CASES["shift"],
    "large shift": Case("uniform, logits + 0.8", uniform, shifted(0.8)),
    "slope": CASES["slope"],
    "wave": CASES["wave"],
    "sharp": CASES["sharp"],
    "rare": CASES["rare"],
    "ties": CASES["ties"],
    "drift": Case("uniform, logits + 0 at first, + 0.4 at last", uniform, same),
}

CHANGES: dict[str, Case] = {name: CASES[name] for name in ("shift", "slope", "wave", "rare")}

TOLERANCES: dict[str, Case] = {
    "shift": CASES["shift"],
    "slope": CASES["slope"],
    "large shift": Case("uniform, logits + 0.5", uniform, shifted(0.5)),
}
TOLERANCE = 0.01


# -- cells -------------------------------------------------------------------------------------


def cells(plan: Plan) -> list[tuple[str, str, int]]:
    """Return (part, case, number of streams) of all cells, the slow parts first."""
    parts: list[tuple[str, list[str], int]] = [
        ("delay", [*CASES, *UNSEEN], plan.delay),
        ("change", list(CHANGES), plan.change),
        ("tolerance", list(TOLERANCES), plan.tolerance),
        ("after calm", ["shift", "slope"], plan.tolerance),
        ("false alarms", list(NULLS), plan.false_alarms),
        ("coverage", list(LAWS), plan.coverage),
    ]
    return [(part, name, count) for part, names, count in parts for name in names]


def monitor_cell(part: str, case: str, streams: int, *, plan: Plan) -> list[Row]:
    """Run the streams of a case and return sums of what was found, for each way and level."""
    found: dict[tuple[str, str], list[float]] = {}
    for at in range(streams):
        rng = stream(plan.seed, part, case, at)
        for (method, level), value in _PARTS[part](case, rng).items():
            found.setdefault((method, level), []).append(value)
    return [
        {
            "part": part,
            "case": case,
            "method": method,
            "level": level,
            "streams": str(len(values)),
            "total": repr(float(np.sum(values))),
        }
        for (method, level), values in found.items()
    ]


Found = dict[tuple[str, str], float]


def _null_batches(name: str, rng: np.random.Generator) -> Iterator[tuple[Any, Vector]]:
    quantiles = {
        "sharp": sharp, "rare": rare, "very rare": very_rare, "ties": nine_values,
        "one value": one_value, "exact 0 and 1": with_ends,
    }  # fmt: skip
    mean = 0.5
    for look in range(LOOKS):
        u = rng.random(BATCH)
        if name == "moving":
            v = 0.1 + 0.8 * look / (LOOKS - 1) + 0.2 * (u - 0.5)
        elif name == "feedback":
            v = u ** np.exp(4 * (mean - 0.5))
        else:
            v = quantiles.get(name, uniform)(u)
        y = rng.random(BATCH) < v
        mean = float(y.mean())
        yield y, v


def _false_alarms(case: str, rng: np.random.Generator) -> Found:
    options: dict[str, dict[str, Any]] = {
        "rounded": {"bits": 4},
        "sub-groups": {"by": (0, 1, 2)},
    }
    if case == "run length":
        return _run_length(rng)
    monitor = Monitor(**options.get(case, {}))
    falsely = 0.0
    for look, (y, v) in enumerate(_null_batches(case, rng)):
        more: dict[str, Any] = {}
        if case == "weights":
            more["sample_weight"] = rng.exponential(size=BATCH)
        if case == "sub-groups":
            more["by"] = np.minimum(np.arange(BATCH) // 25, 2)
        step = monitor.update(y, v, batch=look, **more)
        falsely = max(falsely, float(any(part.alarm for part in step.by.values())))
    result = {("alarm", str(level)): float(step.pvalue <= level) for level in LEVELS}
    if case == "sub-groups":
        result["a sub-group named", str(RATE)] = falsely
    return result


def _run_length(rng: np.random.Generator) -> Found:
    """Return the number of batches until a false alarm, MOST_BATCHES if there is none."""
    monitor = Monitor(run_length=SHORT_RUN)
    for batch in range(MOST_BATCHES):
        v = rng.random(50)
        if monitor.update(rng.random(50) < v, v, batch=batch).alarm:
            break
    return {("batches until an alarm", ""): float(batch + 1)}


@cache
def distance_of(law: str) -> float:
    """Return the lower distance of a law."""
    return lower_distance(LAWS[law].population())


@cache
def _drift() -> tuple[list[Case], Vector]:
    """Return the cases of a drift over the looks, and the mean distance up to each."""
    cases = [Case("", uniform, shifted(0.4 * k / (LOOKS - 1))) for k in range(LOOKS)]
    distance = np.array([lower_distance(case.population(5000)) for case in cases])
    return cases, np.cumsum(distance) / np.arange(1, LOOKS + 1)


def _coverage(case: str, rng: np.random.Generator) -> Found:
    """Say whether an end was wrong at any look, and whether a tolerance of the truth alarmed."""
    drifting = case == "drift"
    truths = _drift()[1] if drifting else np.full(LOOKS, distance_of(case))
    wide = Monitor(false_alarm_rate=0.2)
    narrow = Monitor(tolerance=max(distance_of(case), 1e-6), false_alarm_rate=RATE)
    missed: Found = {}
    for look in range(LOOKS):
        law = _drift()[0][look] if drifting else LAWS[case]
        y, v, _ = law.draw(BATCH, rng)
        for monitor, level in ((wide, 0.2), (narrow, RATE)):
            step = monitor.update(y, v, batch=look)
            below, above = ("lower", str(level)), ("upper", str(level))
            missed[below] = max(missed.get(below, 0), float(step.lower > truths[look] + 1e-6))
            if not drifting:
                missed[above] = max(
                    missed.get(above, 0), float((step.upper or 1.0) < truths[look] - 1e-6)
                )
    if not drifting:
        missed["alarm at this tolerance", str(RATE)] = float(step.alarm)
    missed["width", str(RATE)] = (step.upper or 1.0) - step.lower
    return missed


def _batch_ends(alarms: Callable[[Any, Vector], bool], y: Any, v: Vector, size: int) -> float:
    """Return the number of rows at the first alarm; LONGEST if there is none."""
    for first in range(0, y.size, size):
        if alarms(y[first : first + size], v[first : first + size]):
            return float(first + size)
    return float(y.size)


def _ratio(y: Any, v: Vector, p: Vector) -> Vector:
    """Return each row's log likelihood ratio of the truth against the prediction."""
    with np.errstate(divide="ignore"):
        return np.where(y, np.log(p) - np.log(v), np.log1p(-p) - np.log1p(-v))


def _probcal() -> Any:
    """Return probcal's monitor, or None where it is not installed."""
    if find_spec("probcal") is None:
        return None
    from probcal.monitor import CalibrationMonitor  # type: ignore[import-not-found]

    return CalibrationMonitor(alpha=RATE)


def _delay(case: str, rng: np.random.Generator) -> Found:
    law = (CASES | UNSEEN)[case]
    y, v, p = law.draw(LONGEST, rng)
    wealth = np.cumsum(_ratio(y, v, p))[BATCH - 1 :: BATCH]
    passed = np.flatnonzero(wealth >= -np.log(RATE))
    monitor, batch = Monitor(false_alarm_rate=RATE), iter(range(LONGEST))
    found: Found = {
        ("oracle", ""): float((passed[0] + 1) * BATCH) if passed.size else float(LONGEST),
        ("caldist", ""): _batch_ends(
            lambda a, b: monitor.update(a, b, batch=next(batch)).alarm, y, v, BATCH
        ),
    }
    other = _probcal()
    if other is not None:
        found["probcal", ""] = _batch_ends(
            lambda a, b: bool(other.update(a.astype(int), b).alarm), y, v, BATCH
        )
    return found


def _change(case: str, rng: np.random.Generator) -> Found:
    """Return the days from the change to the alarm, DAYS where there is none."""
    law = CHANGES[case]
    calm = Case("", law.prediction, same)
    days = [calm.draw(DAY_ROWS, rng) for _ in range(CALM)]
    days += [law.draw(DAY_ROWS, rng) for _ in range(DAYS)]
    wealth = np.cumsum([_ratio(*day).sum() for day in days[CALM:]])
    passed = np.flatnonzero(wealth >= -np.log(RATE))
    found: Found = {("oracle", ""): float(passed[0] + 1) if passed.size else float(DAYS)}
    ways: dict[str, Any] = {"ever": Monitor(), "run length": Monitor(run_length=RUN_LENGTH)}
    other = _probcal()
    if other is not None:
        ways["probcal"] = other
    for name, monitor in ways.items():
        day = DAYS
        early = False
        for at, (y, v, _) in enumerate(days):
            if name == "probcal":
                alarm = bool(monitor.update(y.astype(int), v).alarm)
            else:
                step = monitor.update(y, v, batch=at)
                alarm = step.alarm
            if alarm:
                early = at < CALM
                day = max(at + 1 - CALM, 0)
                if name == "ever" and not early:
                    found["onset off by", ""] = float(abs(step.onset - CALM))
                break
        found[name, ""] = float(day)
        found[f"{name}, before the change", ""] = float(early)
    return found


@cache
def _best_potentials(case: str) -> potentials.Potentials:
    joint = TOLERANCES[case].population(4000)
    best = potentials.fit(joint.prediction, joint.mass0, joint.mass1, 1e-5)
    assert best is not None
    return best.potentials


def _log_wealth(gain: float, square: float) -> float:
    logs = mixtures.LOG_WEIGHTS + mixtures.RATES * gain - mixtures.COSTS * square
    return mixtures.log_sum(logs)


def _tolerance(case: str, rng: np.random.Generator) -> Found:
    """Return the rows until an alarm at a tolerance, with the best potentials and with ours."""
    y, v, _ = TOLERANCES[case].draw(2 * LONGEST, rng)
    r0, r1 = _best_potentials(case).at(v)
    payoff = np.where(y, r1, r0)
    gain, square = np.cumsum(payoff), np.cumsum(payoff**2)
    best = float(y.size)
    for end in range(BATCH, y.size + 1, BATCH):
        excess = float(gain[end - 1]) - end * TOLERANCE
        if _log_wealth(excess, float(square[end - 1])) >= -np.log(RATE):
            best = float(end)
            break
    monitor, batch = Monitor(tolerance=TOLERANCE), iter(range(y.size))
    ours = _batch_ends(lambda a, b: monitor.update(a, b, batch=next(batch)).alarm, y, v, BATCH)
    return {("oracle", ""): best, ("caldist", ""): ours}


def _after_calm(case: str, rng: np.random.Generator) -> Found:
    """Within a tolerance of 0.02 for sixty days, then beyond it: days until the alarm."""
    calm = Case("", uniform, shifted(0.06))  # a distance of 0.010
    worse = Case("", uniform, shifted(0.35) if case == "shift" else tilted(0.5))
    days = [calm.draw(300, rng) for _ in range(CALM)] + [worse.draw(300, rng) for _ in range(DAYS)]
    found: Found = {}
    for name, options in (("ever", {}), ("run length", {"run_length": RUN_LENGTH})):
        monitor, day, early = Monitor(tolerance=0.02, **options), DAYS, False
        for at, (y, v, _) in enumerate(days):
            if monitor.update(y, v, batch=at).alarm:
                early, day = at < CALM, max(at + 1 - CALM, 0)
                break
        found[name, ""] = float(day)
        found[f"{name}, before the change", ""] = float(early)
    return found


_PARTS: dict[str, Callable[[str, np.random.Generator], Found]] = {
    "false alarms": _false_alarms,
    "coverage": _coverage,
    "delay": _delay,
    "change": _change,
    "tolerance": _tolerance,
    "after calm": _after_calm,
}
