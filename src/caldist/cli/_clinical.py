"""``caldist measure --measure clinical``: intercept, slope, O/E, ICI and relatives, Cox's test."""

from __future__ import annotations

from typing import Any

from caldist.cli import _options
from caldist.cli._data import Models
from caldist.cli._output import described, noting
from caldist.cli._progress import working
from caldist.errors import InvalidInput
from caldist.inference.sample import units_of

_LEVEL = 0.95


def clinical_lines(models: Models) -> tuple[list[dict[str, Any]], list[str]]:
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
            resampler = Resampler.of(_options.SEED, n_resamples=_options.DRAWS)
            try:
                found = summary_of(rows, "loess", _LEVEL, resampler)
            except InvalidInput as error:
                if len(every) == 1:
                    raise
                notes.append(f"left out: {described(line)}: {error}")
                continue
            rated.append(f"{described(line)} {found.rates}.")
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
        reason = "is undefined in every line"
        raise InvalidInput(argument="--measure clinical", reason=reason, remedy=" ".join(notes))
    notes += rated
    notes.append(
        "lower and upper: 95% intervals for the population, each by itself. cox_test_pvalue: "
        "intercept 0 and slope 1."
    )
    return lines, notes
