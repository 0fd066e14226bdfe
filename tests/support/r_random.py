"""R's random numbers, so that published examples of R packages can be made again.

``set.seed``, ``runif``, ``rnorm`` and ``rbinom(n, 1, p)`` with R's defaults: Mersenne Twister, and
normal numbers by inversion.
"""

import numpy as np
from scipy.special import expit, ndtri


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
    y = random.bernoulli(expit(a1 + x1 + x2 + a3 * x1 * x2))
    np.testing.assert_allclose(x1[:2], [-1.19142464, 0.54930055], atol=5e-9)  # as they print it
    return y, expit(a1 + x1 + x2)


def rms_example():
    """The example of ``?rms::val.prob``, ``set.seed(1)``: a model of 100 rows on 100 others."""
    random = RRandom(1)
    x = np.stack([random.uniform(200) for _ in range(3)], axis=1)
    y = (random.uniform(200) <= expit(2 * (x[:, 0] - 0.5))).astype(int)
    return y[100:], _logistic_predictions(x[:100], y[:100], x[100:])


def calibration_curves_example():
    """The vignette of CalibrationCurves: a model of its ``traindata`` on its ``testdata``."""
    random = RRandom(1782)

    def part(size):
        x = np.stack([random.normal(size) for _ in range(4)], axis=1)
        return x, random.bernoulli(expit(0.1 + x @ [0.5, 1.2, -0.75, 0.8]))

    (x, y), (x_test, y_test) = part(1000), part(500)
    np.testing.assert_allclose(  # as they print it: head(traindata)
        np.column_stack((y, x))[:2],
        [
            [0, -0.19981624, 0.2982990, 1.0277486, -0.1146414],
            [1, -1.37127488, 0.5940002, -0.8234645, 2.0927676],
        ],
        atol=5e-8,
    )
    return y_test, _logistic_predictions(x, y, x_test)


def _logistic_predictions(x, y, x_new):
    """What ``glm`` and ``lrm`` predict: logistic regression by Newton's steps."""
    design = np.column_stack((np.ones(y.size), x))
    coefficient = np.zeros(design.shape[1])
    for _ in range(25):
        p = expit(design @ coefficient)
        information = (design * (p * (1 - p))[:, None]).T @ design
        coefficient += np.linalg.solve(information, design.T @ (y - p))
    return expit(coefficient[0] + x_new @ coefficient[1:])
