"""Sentences about a recalibration."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from caldist._util.numbers import down, most, number, signed, signed_ends, up
from caldist.measures.registry import find

if TYPE_CHECKING:
    from caldist.recalibration.recalibration import Recalibration

_CALLED = {
    "shift": "a shift of the logits",
    "temperature": "a temperature",
    "sigmoid": "a sigmoid",
    "beta": "a beta map",
    "isotonic": "isotonic regression",
}


def sentences(found: Recalibration) -> str:
    """Return which map was fitted, how well it calibrates, and what is left."""
    parts = [_what(found)]
    parts.append(_limits(found) if found.after else f"No statement is made: {found.reason}")
    parts += _losses(found)
    if found.after and found.after["smooth_ce"].lower > 0:
        parts.append(
            f"At least {down(found.after['smooth_ce'].lower, 4)} is left: another family may "
            "follow these labels, or no monotone map can."
        )
    if found.map is not None:
        parts.append(_rest(found))
    return "\n".join(parts)


def _what(found: Recalibration) -> str:
    if found.map is None:
        return "No map."
    table = f"as a table of {found.map.x.size} points"
    if found.family == "identity":
        why = ": these rows support no map that makes them better" if found.candidates else ""
        return f"The predictions stay as they are{why}."
    if found.family == "given":
        return f"A map made elsewhere, {table}."
    if found.family == "monotone":
        return (
            f"Recalibrated by a monotone map with slopes within a factor of {found.slack:g} of "
            f"those of a sigmoid or beta map, {table}."
        )
    return f"Recalibrated by {_CALLED[found.family]}, {table}."


def _limits(found: Recalibration) -> str:
    assert found.confidence_level is not None  # noqa: S101 -- a statement has one
    before, after = found.before["smooth_ce"], found.after["smooth_ce"]
    rows = "" if found.n_rows is None else f" {found.n_rows:,}"
    whole = ", for every population" if found.method == "finite_sample" else ""
    rounded = (
        f" This allows for the rounding of their predictions, by {most(found.rounding, 2)} on "
        "average at most."
        if found.rounding > 0
        else ""
    )
    return (
        f"With {100 * found.confidence_level:g}% confidence{whole} the smooth calibration error "
        f"was at least {down(before.lower, 4)} before and is at most {up(after.upper, 4)} after, "
        f"for rows drawn like these{rows}, which the model must not have seen.{rounded}"
    )


def _losses(found: Recalibration) -> list[str]:
    lines = []
    how = "if the map was made from other rows" if found.family == "given" else "cross-validated"
    for name, change in found.loss.items():
        called = find(name).facts.called
        called = called[0].upper() + called[1:]
        assert found.confidence_level is not None  # noqa: S101 -- a statement has one
        level = f"{100 * found.confidence_level:g}% interval"
        if math.isinf(change.change):
            lines.append(f"{called} {number(change.before)} -> {number(change.after)} ({how}).")
            continue
        lines.append(
            f"{called} {number(change.before)} -> {number(change.after)} (change "
            f"{signed(change.change)}, {level} {signed_ends(change.lower, change.upper)}, {how})."
        )
    changes = found.loss.values() if found.family != "identity" else ()
    if changes and all(change.lower <= 0 <= change.upper for change in changes):
        lines.append(
            "These rows do not show that recalibration makes the predictions better or worse."
        )
    if any(change.lower > 0 for change in changes):
        lines.append("Recalibration makes the predictions worse: leave them as they are.")
    return lines


def _rest(found: Recalibration) -> str:
    ranking = "There is no ranking: one label is missing."
    if found.auc_before is not None and found.auc_after is not None:
        ranking = f"The ranking is unchanged (AUC {found.auc_before:.3f})."
        if found.auc_before != found.auc_after:
            ranking = (
                f"The map makes ties in the ranking (AUC {found.auc_before:.3f} -> "
                f"{found.auc_after:.3f})."
            )
    left = 0.0 if found.resolution is None else found.resolution.miscalibration
    return (
        f"{ranking} The rest of the Brier score is not miscalibration: no monotone map takes off "
        f"more than {up(left, 4)} on these rows. Other features or another model may; "
        "recalibration cannot."
    )
