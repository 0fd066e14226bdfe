"""Rows in clusters whose rare labels come at once."""

import numpy as np


def bursts(rng, number, spread, *, rate=0.05, together=0.5, size=20):
    """Return labels, calibrated predictions and clusters.

    Sizes are log-normal with mean ``size``. Each row takes the random number of its cluster with
    probability ``together``, and one of its own otherwise.
    """
    sizes = size * np.exp(spread * rng.normal(size=number) - spread**2 / 2)
    cluster = np.repeat(np.arange(number), np.maximum(1, sizes.astype(int)))
    v = np.clip(rate * np.exp(0.7 * rng.normal(size=cluster.size)), 0.0, 0.5)
    common = rng.random(number)[cluster]
    uniform = np.where(rng.random(v.size) < together, common, rng.random(v.size))
    return (uniform < v).astype(int), v, cluster
