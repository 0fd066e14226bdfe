"""The exponential function of ``_wide.pxd`` in plain Python: the same steps, the same bits."""

from __future__ import annotations

from math import ldexp

_SERIES = (
    2.08767569878681e-09, 2.505210838544172e-08, 2.755731922398589e-07, 2.7557319223985893e-06,
    2.48015873015873e-05, 0.0001984126984126984, 0.001388888888888889, 0.008333333333333333,
    0.041666666666666664, 0.16666666666666666, 0.5,
)  # fmt: skip


def exponential(x: float) -> float:
    """Return e^x for x from -700 to 700."""
    k = x * 1.4426950408889634 + 6755399441055744.0 - 6755399441055744.0
    r = x - k * 0.6931471803691238 - k * 1.9082149292705877e-10
    e = 1.6059043836821613e-10
    for coefficient in _SERIES:
        e = e * r + coefficient
    return ldexp(1.0 + (r + r * r * e), int(k))
