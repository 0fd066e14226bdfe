"""Numbers as they are printed: with significant digits, so that rare events read right.

A calibration error of 0.00055 printed with three decimals is 0.001, twice as much. Decimals are
what a reader expects of larger numbers, so a number has both: a least number of decimals and a
least number of significant digits.
"""

from __future__ import annotations

import math

_LEAST = 1e-6  # below, powers of ten are easier to read than zeros
_SAME = 1e-9  # relative; what floats lose on the way


def number(value: float | None, decimals: int = 4, digits: int = 3) -> str:
    """Return a value with at least so many decimals and significant digits; a dash for None.

    Examples
    --------
    >>> from caldist._util.numbers import number
    >>> number(0.25), number(0.00123456), number(5.5e-9), number(0), number(None)
    ('0.2500', '0.00123', '5.5e-09', '0.0000', '—')
    """
    if value is None:
        return "—"
    if not math.isfinite(value) or value == 0 or abs(value) >= _LEAST:
        return f"{value:.{_decimals(value, decimals, digits)}f}"
    return f"{value:.{digits}g}"


def short(value: float, digits: int = 3) -> str:
    """Return a value with so many significant digits, without zeros at the end.

    Examples
    --------
    >>> from caldist._util.numbers import short
    >>> short(0.25), short(0.0001234), short(0.1, 2), short(1234.5)
    ('0.25', '0.000123', '0.1', '1234')
    """
    text = number(value, 0, digits)
    return text if "e" in text or "." not in text else text.rstrip("0").rstrip(".")


def signed(value: float | None) -> str:
    """Return a value as :func:`number` does, with its sign.

    Examples
    --------
    >>> from caldist._util.numbers import signed
    >>> signed(0.000123), signed(-0.5)
    ('+0.000123', '-0.5000')
    """
    if value is None:
        return "—"
    return f"{'+' if value >= 0 else ''}{number(value)}"


def down(value: float, decimals: int = 3) -> str:
    """Return a lower bound with three digits or decimals, rounded so that it stays one.

    Examples
    --------
    >>> from caldist._util.numbers import down
    >>> down(0.0129), down(0.00054999), down(0.4129)
    ('0.0129', '0.000549', '0.412')
    """
    return _outwards(value, decimals, -1)


def up(value: float, decimals: int = 3) -> str:
    """Return an upper bound with three digits or decimals, rounded so that it stays one.

    Examples
    --------
    >>> from caldist._util.numbers import up
    >>> up(0.0121), up(0.00054901), up(0.4121)
    ('0.0121', '0.000550', '0.413')
    """
    return _outwards(value, decimals, 1)


def percent(level: float) -> str:
    """Return a confidence level as a percentage without needless digits."""
    return f"{100 * level:.6g}%"


def rate(share: float) -> str:
    """Return how frequent something is, as a percentage that keeps its digits at both ends.

    Examples
    --------
    >>> from caldist._util.numbers import rate
    >>> rate(0.000549), rate(0.25), rate(0.99951), rate(1.0)
    ('0.0549%', '25.0%', '99.9510%', '100%')
    """
    rare = min(share, 1 - share)
    if rare <= 0:
        return f"{100 * share:.3g}%"
    if rare < 1e-8:
        return f"{100 * share:.3g}%" if share < 0.5 else f"100% less {100 * rare:.2g}%"
    decimals = max(0, 2 - math.floor(math.log10(100 * rare)))
    return f"{100 * share:.{decimals}f}%"


def probability(pvalue: float, least: float = 0.0) -> str:
    """Return a p-value with three decimals, or two digits where these would be zeros.

    ``least`` is the smallest one that so many draws can give: such a p-value is only known not to
    be larger.

    Examples
    --------
    >>> from caldist._util.numbers import probability
    >>> probability(0.0413), probability(0.001, 1 / 1000), probability(0.001, 1 / 10_000)
    ('0.041', '≤ 0.001', '0.001')
    """
    if least * (1 - _SAME) <= pvalue < min(1.0, 2 * least * (1 - _SAME)):
        return f"≤ {_up_to_two(pvalue)}"
    if pvalue == 0:  # what is below all floats
        return "< 1e-300"
    return f"{pvalue:.3f}" if pvalue >= 0.001 else f"{pvalue:.2g}"


def chance(pvalue: float, least: float = 0.0) -> str:
    """Return a p-value as it stands in a sentence.

    Examples
    --------
    >>> from caldist._util.numbers import chance
    >>> chance(0.2), chance(0.001, 1 / 1000)
    ('p = 0.200', 'p ≤ 0.001')
    """
    text = probability(pvalue, least)
    return f"p {text}" if text.startswith("≤") else f"p = {text}"


def least_of(draws: int) -> float:
    """Return the smallest p-value that the ranks among so many draws can give."""
    return 1 / (draws + 1)


def _decimals(value: float, decimals: int, digits: int) -> int:
    """Return how many decimals show so many significant digits, and at least so many decimals."""
    if value == 0 or not math.isfinite(value):
        return decimals
    return max(decimals, digits - 1 - math.floor(math.log10(abs(value))))


def _outwards(value: float, decimals: int, side: int) -> str:
    """Round to three digits or so many decimals, down for side -1, and up for side 1."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.{decimals}f}"
    places = _decimals(value, decimals, 3)
    # Ends that have three digits already keep them, though a float may lie beside them.
    scaled = value * 10.0**places - side * _SAME * abs(value) * 10.0**places
    whole = math.ceil(scaled) if side > 0 else math.floor(scaled)
    return number(whole / 10.0**places, decimals)


def _up_to_two(pvalue: float) -> str:
    """Return a p-value with two digits, not below it."""
    places = 1 - math.floor(math.log10(pvalue))
    scaled = math.ceil(pvalue * 10.0**places * (1 - _SAME))
    return f"{scaled / 10.0**places:.2g}"
