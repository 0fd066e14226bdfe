"""R's random numbers, so that published examples of R packages can be made again.

``set.seed``, ``runif``, ``rnorm`` and ``rbinom(n, 1, p)`` with R's defaults: Mersenne Twister, and
normal numbers by inversion.
"""

import numpy as np
from scipy.special import ndtri


class RRandom:
    """What R draws after ``set.seed(seed)``."""

    def __init__(self, seed):
        words = []
        for _ in range(50):
            seed = (69069 * seed + 1) % 2**32
        for _ in range(625):
            seed = (69069 * seed + 1) % 2**32
            words.append(seed)
        self._bits = np.random.MT19937()
        state = self._bits.state
        state["state"] = {"key": np.array(words[1:], np.uint32), "pos": 624}
        self._bits.state = state

    def uniform(self, size):
        return self._bits.random_raw(size) * 2.3283064365386963e-10

    def normal(self, size):
        u = self.uniform(2 * size)
        return ndtri((np.floor(2**27 * u[0::2]) + u[1::2]) / 2**27)

    def bernoulli(self, p):
        u = self.uniform(p.size)
        return np.where(p <= 0.5, u >= 1 - p, u < p).astype(int)


def pmcalibration_example(a1, a3):
    """The data of pmcalibration's README and vignette: ``set.seed(2345); sim_dat(1000, a1, a3)``.

    Returns the labels and the predictions ``plogis(a1 + x1 + x2)`` that they validate.
    """
    random = RRandom(2345)
    x1, x2 = random.normal(1000), random.normal(1000)
    y = random.bernoulli(1 / (1 + np.exp(-(a1 + x1 + x2 + a3 * x1 * x2))))
    np.testing.assert_allclose(x1[:2], [-1.19142464, 0.54930055], atol=5e-9)  # as they print it
    return y, 1 / (1 + np.exp(-(a1 + x1 + x2)))
