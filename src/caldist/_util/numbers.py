"""Numbers as they are printed: with significant digits, so that rare events read right.

A calibration error of 0.00055 printed with three decimals is 0.001, twice as much. Decimals are
what a reader expects of larger numbers, so a number has both: a least number of decimals and a
least number of significant digits. Ends of intervals are rounded outwards, so that what is printed
holds too.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext

_LEAST = 1e-6  # below, powers of ten are easier to read than zeros
_SAME = Decimal("1e-9")  # relative; what floats lose on the way
_EXACT = 1100  # digits that any double has at most
_END = re.compile(r"(?:(?!bin_).*_)?(?P<side>lower|upper)(?:_limit)?")


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
    return _bare(number(value, 0, digits))


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


def down(value: float, decimals: int = 3, digits: int = 3, *, plus: bool = False) -> str:
    """Return a lower limit rounded down, with so many decimals or significant digits.

    Examples
    --------
    >>> from caldist._util.numbers import down
    >>> down(0.0129), down(0.00054999), down(0.4129), down(0.00019, 4, plus=True)
    ('0.0129', '0.000549', '0.412', '+0.000190')
    """
    return _end(value, decimals, digits, -1, plus=plus)


def up(value: float, decimals: int = 3, digits: int = 3, *, plus: bool = False) -> str:
    """Return an upper limit rounded up, with so many decimals or significant digits.

    Examples
    --------
    >>> from caldist._util.numbers import up
    >>> up(0.0121), up(0.00054901), up(0.4121), up(-0.25, plus=True)
    ('0.0121', '0.000550', '0.413', '-0.250')
    """
    return _end(value, decimals, digits, 1, plus=plus)


def least(value: float, digits: int = 4, *, plus: bool = False) -> str:
    """Return a lower end as it stands in a sentence, without zeros at the end.

    Examples
    --------
    >>> from caldist._util.numbers import least
    >>> least(0.03076999), least(0.25), least(-1.00004)
    ('0.03076', '0.25', '-1.001')
    """
    return _bare(down(value, 0, digits, plus=plus))


def most(value: float, digits: int = 4, *, plus: bool = False) -> str:
    """Return an upper end as it stands in a sentence, without zeros at the end.

    Examples
    --------
    >>> from caldist._util.numbers import most
    >>> most(0.01043901), most(0.25), most(-1.00004)
    ('0.01044', '0.25', '-1')
    """
    return _bare(up(value, 0, digits, plus=plus))


def ends(lower: float, upper: float, digits: int = 4, *, plus: bool = False) -> str:
    """Return both ends of an interval as they stand in a sentence.

    Examples
    --------
    >>> from caldist._util.numbers import ends
    >>> ends(0.0307669, 0.0409), ends(-0.00123456, 0.2, 3, plus=True)
    ('0.03076 to 0.0409', '-0.00124 to +0.2')
    """
    return f"{least(lower, digits, plus=plus)} to {most(upper, digits, plus=plus)}"


def signed_ends(lower: float, upper: float) -> str:
    """Return both ends of a difference, with the digits that :func:`signed` gives it.

    Examples
    --------
    >>> from caldist._util.numbers import signed_ends
    >>> signed_ends(-0.12345, 0.00012341)
    '-0.1235 to +0.000124'
    """
    return f"{down(lower, 4, plus=True)} to {up(upper, 4, plus=True)}"


def side(name: str) -> int:
    """Return -1 or 1 for the name of a lower or an upper end, as columns have it, and else 0.

    Examples
    --------
    >>> from caldist._util.numbers import side
    >>> [side(name) for name in ("lower", "smooth_ce_upper", "lower_distance", "bin_lower")]
    [-1, 1, 0, 0]
    """
    found = _END.fullmatch(name)
    return 0 if found is None else 1 if found["side"] == "upper" else -1


def outwards(value: float, places: int, side: int) -> float:
    """Round to so many decimals, down for side -1, up for 1, and to the nearest for 0."""
    if side == 0 or value == 0 or not math.isfinite(value):
        return round(value, places)
    # Ends that have as many digits already keep them, though a float may lie beside them.
    exact, unit = Decimal(value), Decimal(1).scaleb(-places)
    with localcontext(prec=_EXACT, rounding=ROUND_CEILING if side > 0 else ROUND_FLOOR):
        return float((exact - side * min(_SAME * abs(exact), unit / 1000)).quantize(unit))


def outwards_to(value: float, digits: int, side: int) -> float:
    """Round the end of an interval to so many significant digits; see :func:`outwards`."""
    return outwards(value, _decimals(value, -_EXACT, digits), side) if side else value


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
    nearly = least * (1 - float(_SAME))
    if nearly <= pvalue < min(1.0, 2 * nearly):
        return f"≤ {outwards_to(pvalue, 2, 1):.2g}"
    if pvalue == 0:  # what is below all floats
        return "< 1e-300"
    return f"{pvalue:.3f}" if pvalue >= 0.001 else f"{pvalue:.2g}"


def chance(pvalue: float, least: float = 0.0) -> str:
    """Return a p-value as it stands in a sentence.

    Examples
    --------
    >>> from caldist._util.numbers import chance
    >>> chance(0.2), chance(0.001, 1 / 1000), chance(0.0)
    ('p = 0.200', 'p ≤ 0.001', 'p < 1e-300')
    """
    text = probability(pvalue, least)
    return f"p {text}" if text.startswith(("≤", "<")) else f"p = {text}"


def least_of(draws: int) -> float:
    """Return the smallest p-value that the ranks among so many draws can give."""
    return 1 / (draws + 1)


def _decimals(value: float, decimals: int, digits: int) -> int:
    """Return how many decimals show so many significant digits, and at least so many decimals."""
    if value == 0 or not math.isfinite(value):
        return decimals
    return max(decimals, digits - 1 - math.floor(math.log10(abs(value))))


def _end(value: float, decimals: int, digits: int, side: int, *, plus: bool) -> str:
    """Return an end of an interval, rounded outwards, with its sign where that is asked for."""
    rounded = outwards(value, _decimals(value, decimals, digits), side)
    return f"{'+' if plus and value >= 0 else ''}{number(rounded, decimals, digits)}"


def _bare(text: str) -> str:
    """Return a number without zeros at the end of its decimals."""
    return text if "e" in text or "." not in text else text.rstrip("0").rstrip(".")
