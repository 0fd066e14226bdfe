"""The bits of doubles in plain Python; compiled code has ``_wide.pxd``."""

from __future__ import annotations

from struct import pack, unpack


def double_of(bits: int) -> float:
    """Return the double that has these bits."""
    return float(unpack("<d", pack("<q", bits))[0])
