"""``caldist measure`` of several classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from caldist.cli._classes import ClassModels
from caldist.cli._gates import Ends, Limits, in_columns
from caldist.cli._options import ALL
from caldist.cli._output import noting, show
from caldist.cli._progress import working
from caldist.data.class_rows import ClassRows
from caldist.errors import InvalidInput

GATED = "classwise_distance"  # what --fail-above and --require-below judge
_ERROR = 0.05  # of each one-sided limit
_NAMES = (GATED, "smooth_ce", "kernel_ce")


@dataclass(frozen=True)
class Asked:
    """What is to be measured: names, limits that gate, a line for each class or not."""

    measures: tuple[str, ...]
    limits: Limits
    each_class: bool

    def names(self) -> tuple[str, ...]:
        """Return the measures, checked."""
        self.limits.check()
        if self.measures in ((), (ALL,)):
            return _NAMES if self.measures else (GATED,)
        for name in self.measures:
            if name not in _NAMES:
                raise InvalidInput(
                    argument="--measure",
                    value=name,
                    reason=f"of several classes there are {', '.join(_NAMES)}",
                    remedy="Others are of one column: pass one class as --score with labels 0 "
                    "and 1.",
                )
        if self.measures[0] != GATED:
            self.limits.refuse(
                f"cannot be judged by {self.measures[0]} of several classes",
                f"Name {GATED} first.",
            )
        return self.measures


def measured(models: ClassModels, asked: Asked, style: str) -> list[tuple[dict[str, object], Ends]]:
    """Print the values; return the lines with their limits for the population, where these gate."""
    names, notes = asked.names(), list(models.notes)
    lines = list(models.lines())
    gates: list[Ends] = []
    with working("measuring"), noting(notes):
        if asked.limits:
            gates = [_ends(rows) for _, rows in lines]
            notes.append(
                f"lower_limit and upper_limit are of {GATED} of the population; each is on the "
                "wrong side of it with probability 5%."
            )
        shown: list[dict[str, object]] = []
        for at, (line, rows) in enumerate(lines):
            if asked.each_class:
                shown += _each_class(line, rows)
                continue
            ends = gates[at] if gates else None
            own = asked.limits.decided(ends) if style == "json" else in_columns(ends)
            shown.append(line | {"classes": rows.n_classes} | _values(rows, names) | own)
    if asked.each_class:
        notes.append(
            "Shares add up to classwise_distance; noise is what they would be on average if "
            "calibrated; lower is the population's, with 95% confidence for all classes of a model."
        )
    show(shown, style, head=models.head, notes=notes)
    return [(line, ends) for (line, _), ends in zip(lines, gates, strict=bool(gates))]


def _values(rows: Any, names: tuple[str, ...]) -> dict[str, object]:
    from caldist import multiclass

    functions: dict[str, Callable[..., float]] = {
        GATED: multiclass.classwise_distance,
        "smooth_ce": multiclass.smooth_ce,
        "kernel_ce": multiclass.kernel_ce,
    }
    found: dict[str, object] = {}
    for name in names:
        found[name] = functions[name](rows, None)
        if name == GATED:
            found["noise"] = multiclass.classwise_table(rows, confidence_level=None).noise
    return found


def _each_class(line: dict[str, object], rows: Any) -> list[dict[str, object]]:
    from caldist.multiclass import classwise_table

    together = rows.n_classes if rows.n_classes > 2 else 1  # the limits of two are the same
    table = classwise_table(rows, confidence_level=1 - _ERROR / together)
    worst = sorted(table.lines, key=lambda item: (-(item.lower or 0.0), -item.share))
    kept = ("share", "lower", "noise", "smooth_ce", "frequency", "mean_prediction")
    return [
        line | {"class": str(item.name)} | {key: getattr(item, key) for key in kept}
        for item in worst
    ]


def _ends(rows: ClassRows) -> Ends:
    """Return one-sided limits of the population, each wrong with probability 5%."""
    if rows.n_classes == 2:
        from caldist.inference.gates import gate_of
        from caldist.measures.lower_distance import lower_distance

        gate = gate_of(rows.binary, lower_distance, 0.0, 1 - _ERROR)
        return gate.lower, gate.upper
    from caldist.multiclass import confidence_interval

    checked: Any = rows
    found = confidence_interval(checked, confidence_level=1 - 2 * _ERROR)
    return found.lower, found.upper
