"""The exponential of the kernels, which has the same bits on every processor."""

import numpy as np

from caldist.kernels._exponential import exponential


def test_exponentials_are_right_to_the_last_digits():
    x = np.concatenate((np.linspace(-700, 700, 40_001), np.linspace(-1e-3, 1e-3, 999), [0.0]))
    found = np.array([exponential(float(value)) for value in x])
    np.testing.assert_allclose(found, np.exp(x), rtol=5e-16)
    assert exponential(0.0) == 1.0
