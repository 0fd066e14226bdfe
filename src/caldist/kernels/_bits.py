"""The bits of doubles in plain Python; compiled code has ``_wide.pxd``."""

from __future__ import annotations

from struct import pack, unpack


def bits_of(x: float) -> int:
    """Return the 64 bits of a double as a signed integer."""
    return int(unpack("<q", pack("<d", x))[0])


def double_of(bits: int) -> float:
    """Return the double that has these bits."""
    return float(unpack("<d", pack("<q", bits))[0])
