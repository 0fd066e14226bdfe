"""Labels of calibrated predictions, and a statistic of them by its formula."""

import math

import numpy as np


def labels(rng, p):
    return (rng.random(p.size) < p).astype(int)


def spiegelhalter_z(y, v, w=None):
    w = np.ones(len(v)) if w is None else np.asarray(w, float)
    top = sum(wi * (yi - vi) * (1 - 2 * vi) for yi, vi, wi in zip(y, v, w, strict=True))
    variance = sum((wi * (1 - 2 * vi)) ** 2 * vi * (1 - vi) for vi, wi in zip(v, w, strict=True))
    return abs(top) / math.sqrt(variance)
