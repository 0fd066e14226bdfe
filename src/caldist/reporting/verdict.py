"""The verdict in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from caldist._util.escaping import for_line
from caldist._util.numbers import chance as in_words
from caldist._util.numbers import down, percent, short, up
from caldist.clinical.rates import Rates
from caldist.inference.regions import Region
from caldist.reporting.model import GroupReport

LEVEL = 0.05  # p-values below are called evidence
_NEARLY = 0.05  # a region reaching this far beyond one half lies on its other side all the same
_END = 1e-9  # predictions this near to 0 or 1 are called so
_NOTHING = 1e-3  # of the upper bound; a lower one below says nothing
_NAMED = 3  # sub-groups that are named
_LONGEST = 40  # letters of a name


def readable(name: object) -> str:
    """Return a name from the data as it can stand in a sentence: one line, and not too long.

    Examples
    --------
    >>> from caldist.reporting.verdict import readable
    >>> readable("x" * 99)
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'
    """
    line = for_line(str(name))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def verdict(
    lower: float,
    upper: float,
    pvalue: float,
    regions: Sequence[Region],
    confidence_level: float,
    *,
    tolerance: float | None = None,
    rates: Rates | None = None,
    least_pvalue: float = 0.0,
    both_sides: bool = True,
    groups: Sequence[GroupReport] = (),
) -> str:
    """Say how far from calibrated a model is, whether that is beyond chance, and where it errs.

    ``tolerance`` is a distance that is acceptable. ``both_sides`` says that predictions lie on both
    sides of one half: only there is an error a matter of confidence. ``least_pvalue`` is the
    smallest one that the draws can give; p-values of ``groups`` are adjusted for all of them.
    """
    proved = lower > _NOTHING * upper
    least = f"at least {down(lower)} and " if proved else ""
    distance = (
        f"With {percent(confidence_level)} confidence this model is {least}at most {up(upper)} "
        "from calibrated."
    )
    if tolerance is not None:
        distance += f" {_within(lower, upper, tolerance)}"
    if rates is not None:
        distance += f" It {rates}."
    chance = f"({in_words(pvalue, least_pvalue)})"
    compatible = (
        f"the test of perfect calibration does not tell it from chance {chance}"
        if proved
        else f"the data are compatible with perfect calibration {chance}"
    )
    level = _one_way(regions) or _is_level(regions, rates)
    places = _listed(regions, confident=both_sides and not level)
    found = [group for group in groups if group.pvalue < LEVEL]
    least_group_pvalue = len({group.by for group in groups}) * least_pvalue
    where = _groups(found, len(groups), least_group_pvalue) if found else ""
    if pvalue >= LEVEL and not regions:
        if found:
            return f"{distance} As a whole {compatible}, but {where}."
        return f"{distance} T{compatible[1:]}."
    parts = f" Taken separately, {where}." if found else ""
    if pvalue >= LEVEL:
        return f"{distance} As a whole {compatible}, but it {places}.{parts}"
    if regions:
        return f"{distance} It is not perfectly calibrated {chance}: it {places}.{parts}"
    return (
        f"{distance} It is not perfectly calibrated {chance}; the data do not show in which "
        f"range of predictions it errs.{parts}"
    )


def _within(lower: float, upper: float, tolerance: float) -> str:
    """Say whether limits of the distance are on one side of what is acceptable."""
    if upper < tolerance:
        return f"That is within the tolerance of {tolerance:g}."
    if lower > tolerance:
        return f"That is beyond the tolerance of {tolerance:g}."
    return f"There are too few rows to tell whether that is within the tolerance of {tolerance:g}."


def _groups(found: Sequence[GroupReport], number: int, least_pvalue: float) -> str:
    """Say which sub-groups are not calibrated, the strongest evidence first."""
    first = sorted(found, key=lambda group: group.pvalue)[:_NAMED]
    names = [
        readable(f"{group.by} {group.group}".strip())
        + f" (adjusted {in_words(group.pvalue, least_pvalue)})"
        for group in first
    ]
    more = len(found) - len(first)
    *most, last = [*names, f"{more:,} more"] if more else names
    listed = f"{', '.join(most)} and {last}" if most else last
    are = "is" if len(found) == 1 else "are"
    return f"{len(found):,} of {number:,} sub-groups {are} not calibrated: {listed}"


def _one_way(regions: Sequence[Region]) -> bool:
    """Whether regions on both sides of one half err the same way, which no confidence does."""
    low = {region.too_high for region in regions if region.upper <= 0.5 + _NEARLY}
    high = {region.too_high for region in regions if region.lower >= 0.5 - _NEARLY}
    return len(low) == 1 and low == high


def _is_level(regions: Sequence[Region], rates: Rates | None) -> bool:
    """Whether all regions err the way that the mean prediction surely does: in level."""
    if rates is None or rates.ratio.lower <= 1 <= rates.ratio.upper:
        return False
    too_high = (rates.ratio.lower > 1) == (rates.label == 0)
    return {region.too_high for region in regions} == {too_high}


def _where(region: Region, *, confident: bool) -> tuple[str, str]:
    """Say what is wrong in a region, and where; over-confident is too far from one half."""
    direction = "too high" if region.too_high else "too low"
    low, high = _place(region.lower), _place(region.upper)
    place = f"at {low}" if low == high else f"between {low} and {high}"
    size = f"by {short(abs(region.gap), 2)} on average"
    across = region.lower < 0.5 - _NEARLY and region.upper > 0.5 + _NEARLY
    if across or not confident:
        return f"predicts {direction}", f"{place} ({size})"
    over = region.too_high == (region.lower + region.upper > 1)
    return (
        f"is {'over' if over else 'under'}-confident",
        f"{place} (predictions {direction} {size})",
    )


def _place(prediction: float) -> str:
    """Return a prediction as one would say it, with digits up to either end: 6e-16 is 0."""
    if not _END < prediction < 1 - _END:
        return f"{prediction:.0f}"
    if prediction < 0.5:
        return short(prediction)
    decimals = max(3, 1 - math.floor(math.log10(1 - prediction)))
    return f"{prediction:.{decimals}f}".rstrip("0").rstrip(".")


def _listed(regions: Sequence[Region], *, confident: bool) -> str:
    """Join what is wrong in each region, saying the same verb once."""
    said = ""
    parts = []
    for region in regions:
        verb, place = _where(region, confident=confident)
        parts.append(place if verb == said else f"{verb} {place}")
        said = verb
    *most, last = parts or [""]
    return f"{', '.join(most)} and {last}" if most else last
