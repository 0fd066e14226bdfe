"""``caldist measure --measures medical``: intercept, slope, O/E, ICI and relatives, Cox's test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caldist.cli._data import Models
from caldist.cli._output import COUNTS, noting
from caldist.cli._progress import working
from caldist.inference.sample import units_of

NAME = "medical"
_LEVEL, _DRAWS, _SEED = 0.95, 999, 0


def refuse_limits(given: Mapping[str, float | None]) -> None:
    """Raise for limits: there is no one number that they could be compared with."""
    for option, limit in given.items():
        if limit is not None:
            message = (
                f"{option} cannot be judged by --measures medical, which is several numbers: "
                "name one measure, as --measures smooth_ce."
            )
            raise ValueError(message)


def medical_lines(models: Models) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a line for each model, sub-group and number, and what there is to note."""
    from caldist.clinical.calibration_summary import summary_of
    from caldist.inference.limits import warn_if_few
    from caldist.inference.resampling import Resampler

    lines: list[dict[str, Any]] = []
    notes: list[str] = []
    rated: list[str] = []
    every = list(models.lines())
    with working("measuring"), noting(notes):
        for line, rows in every:
            warn_if_few(units_of(rows))
            resampler = Resampler.of(_SEED, n_resamples=_DRAWS)
            try:
                found = summary_of(rows, "loess", _LEVEL, resampler)
            except ValueError as error:
                if len(every) == 1:
                    raise
                notes.append(f"left out: {_described(line)}: {error}")
                continue
            rated.append(f"{_described(line)} {found.rates}.")
            for name, part in found.estimates.items():
                content = part.to_dict()
                ends = {key: content[key] for key in ("value", "lower", "upper")}
                lines.append(line | {"measure": name} | ends)
            lines.append(
                line
                | {"measure": "cox_test_pvalue", "value": found.test.pvalue}
                | {"lower": None, "upper": None}
            )
            reasons = dict.fromkeys(part.note for part in found.estimates.values() if part.note)
            notes += [why for why in reasons if why not in notes]
    if not lines:
        message = f"no line could be computed. {' '.join(notes)}"
        raise ValueError(message)
    notes += rated
    notes.append(
        "lower and upper: 95% intervals for the population, each by itself. cox_test_pvalue: "
        "intercept 0 and slope 1."
    )
    return lines, notes


def _described(line: dict[str, Any]) -> str:
    return " / ".join(str(value) for key, value in line.items() if key not in COUNTS)
