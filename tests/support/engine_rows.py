"""Rows that engines could get wrong."""

import numpy as np

from strategies import EXTREMES, FAMILIES, family

NAN, INF = float("nan"), float("inf")


def hard_rows(size=300, seed=0):
    """Return (y_true, y_prob): all families, both sides of cell edges, and the ends of floats."""
    rng = np.random.default_rng(seed)
    parts = [family(name, size, rng) for name in FAMILIES]
    edges = rng.integers(1, 2**16, size) / 2**16
    values = (*EXTREMES, -0.0, 2.0**-1074, 2.0**-1022, 2.0**-16, 1 - 2.0**-16)
    around = (edges, np.nextafter(edges, 0), np.nextafter(edges, 1), np.array(values))
    parts += [(rng.integers(0, 2, near.size), near) for near in around]
    y_true, y_prob = zip(*parts, strict=True)
    return np.concatenate(y_true), np.concatenate(y_prob)


# The last two rows are valid.
INVALID_ROWS = {
    "label": [None, NAN, 2.0, 0.5, -1.0, INF, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0],
    "score": [0.5, 0.5, 0.5, NAN, 0.5, 0.5, None, NAN, -0.1, 1.5, INF, -INF, 0.25, 0.75],
    "w": [1.0] * 12 + [2.0, 3.0],
}
INVALID_COUNTS = {
    "missing label": 2,
    "bad label": 4,
    "missing prediction": 2,
    "bad prediction": 4,
}
