"""The verdict in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from caldist.inference.regions import Region

LEVEL = 0.05  # p-values below are called evidence
_NEARLY = 0.05  # a region reaching this far beyond one half lies on its other side all the same


def down(value: float, digits: int = 3) -> str:
    """Return a lower bound with three decimals, or others, rounded so that it stays one."""
    scale = 10**digits
    return f"{math.floor(value * scale + 1e-9) / scale:.{digits}f}"


def up(value: float) -> str:
    """Return an upper bound with three decimals, rounded so that it stays one."""
    return f"{math.ceil(value * 1000 - 1e-9) / 1000:.3f}"


def percent(level: float) -> str:
    """Return a confidence level as a percentage without needless digits."""
    return f"{100 * level:.6g}%"


def probability(pvalue: float) -> str:
    """Return a p-value with three decimals, or two digits where these would be zeros."""
    return f"{pvalue:.3f}" if pvalue >= 0.001 else f"{pvalue:.2g}"


def verdict(
    lower: float, upper: float, pvalue: float, regions: Sequence[Region], confidence_level: float
) -> str:
    """Say how far from calibrated a model is, whether that is beyond chance, and where it errs."""
    least = f"at least {down(lower)} and " if float(down(lower)) else ""  # 0 says nothing
    distance = (
        f"With {percent(confidence_level)} confidence this model is {least}at most {up(upper)} "
        "from calibrated."
    )
    chance = f"(p = {probability(pvalue)})"
    compatible = (
        f"the test of perfect calibration does not tell it from chance {chance}"
        if float(down(lower))
        else f"the data are compatible with perfect calibration {chance}"
    )
    places = _listed(regions)
    if pvalue >= LEVEL and not regions:
        return f"{distance} T{compatible[1:]}."
    if pvalue >= LEVEL:
        return f"{distance} As a whole {compatible}, but it {places}."
    if regions:
        return f"{distance} It is not perfectly calibrated {chance}: it {places}."
    return (
        f"{distance} It is not perfectly calibrated {chance}; the data do not show in which "
        "range of predictions it errs."
    )


def _where(region: Region) -> tuple[str, str]:
    """Say what is wrong in a region, and where; over-confident is too far from one half."""
    direction = "too high" if region.too_high else "too low"
    low, high = _place(region.lower), _place(region.upper)
    place = f"at {low}" if low == high else f"between {low} and {high}"
    size = f"by {abs(region.gap):.2g} on average"
    if region.lower < 0.5 - _NEARLY and region.upper > 0.5 + _NEARLY:
        return f"predicts {direction}", f"{place} ({size})"
    over = region.too_high == (region.lower + region.upper > 1)
    return (
        f"is {'over' if over else 'under'}-confident",
        f"{place} (predictions {direction} {size})",
    )


def _place(prediction: float) -> str:
    """Return a prediction as one would say it: 6e-16 is 0."""
    return f"{prediction:.3g}" if 1e-4 <= prediction <= 1 - 1e-4 else f"{prediction:.0f}"


def _listed(regions: Sequence[Region]) -> str:
    """Join what is wrong in each region, saying the same verb once."""
    said = ""
    parts = []
    for region in regions:
        verb, place = _where(region)
        parts.append(place if verb == said else f"{verb} {place}")
        said = verb
    *most, last = parts or [""]
    return f"{', '.join(most)} and {last}" if most else last
