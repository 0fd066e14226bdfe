"""``caldist measure`` of several classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from caldist.cli._classes import ClassModels
from caldist.cli._output import noting, show
from caldist.cli._progress import working
from caldist.data.class_rows import ClassRows

if TYPE_CHECKING:
    from caldist.inference import Gate, Interval

GATED = "classwise_distance"  # what --fail-above and --require-below judge
_ERROR = 0.05  # of each one-sided limit
_NAMES = (GATED, "smooth_ce", "kernel_ce")


@dataclass(frozen=True)
class Asked:
    """What is to be measured: names with commas, limits that gate, a line for each class or not."""

    measures: str | None
    limits: dict[str, float]
    each_class: bool

    def names(self) -> list[str]:
        """Return the measures, checked."""
        if self.measures is None:
            return [GATED]
        if self.measures.strip() == "all":
            return list(_NAMES)
        names = [name.strip() for name in self.measures.split(",") if name.strip()]
        for name in names:
            if name not in _NAMES:
                message = (
                    f"--measures names {name!r}; of several classes there are {', '.join(_NAMES)}. "
                    "Others are of one column: pass one class as --score with labels 0 and 1."
                )
                raise ValueError(message)
        if not names:
            message = "--measures names no measure."
            raise ValueError(message)
        if self.limits and names[0] != GATED:
            message = (
                f"{next(iter(self.limits))} cannot be judged by {names[0]} of several classes: "
                f"name {GATED} first."
            )
            raise ValueError(message)
        return list(dict.fromkeys(names))


def measured(
    models: ClassModels, asked: Asked, style: str
) -> tuple[list[dict[str, object]], list[Gate | Interval]]:
    """Print the values; return what lines speak of, and the limits of each that gate."""
    names, notes = asked.names(), list(models.notes)
    lines = list(models.lines())
    gates: list[Gate | Interval] = []
    with working("measuring"), noting(notes):
        if asked.limits:
            gates = [_gate(rows) for _, rows in lines]
            notes.append(
                f"lower_limit and upper_limit are of {GATED} of the population; each is on the "
                "wrong side of it with probability 5%."
            )
        shown: list[dict[str, object]] = []
        for at, (line, rows) in enumerate(lines):
            if asked.each_class:
                shown += _each_class(line, rows)
                continue
            ends = {}
            if gates:
                ends = {"lower_limit": gates[at].lower, "upper_limit": gates[at].upper}
            shown.append(line | {"classes": rows.n_classes} | _values(rows, names) | ends)
    if asked.each_class:
        notes.append(
            "Shares add up to classwise_distance; noise is what they would be on average if "
            "calibrated; lower is the population's, with 95% confidence for all classes of a model."
        )
    show(shown, style, head=models.head, notes=notes)
    return [line for line, _ in lines], gates


def _values(rows: Any, names: list[str]) -> dict[str, object]:
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


def _gate(rows: ClassRows) -> Gate | Interval:
    """Return one-sided limits of the population, each wrong with probability 5%."""
    if rows.n_classes == 2:
        from caldist.inference.gates import gate_of
        from caldist.measures.lower_distance import lower_distance

        return gate_of(rows.binary, lower_distance, 0.0, 1 - _ERROR)
    from caldist.multiclass import confidence_interval

    checked: Any = rows
    return confidence_interval(checked, confidence_level=1 - 2 * _ERROR)
