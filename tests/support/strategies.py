"""Instances for all tests: hypothesis strategies, and seeded families that a solver can fear."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from caldist.kernels.loader import COMPILED


def examples(count):
    """Return settings with so many examples, in the fast tier with no more than others have."""
    return settings(max_examples=min(count, settings().max_examples) if COMPILED else count)


# For tests whose examples are slow.
fewer = settings(max_examples=max(8, settings().max_examples * 4 // 15))

EXTREMES = (0.0, 1.0, 0.5, 1e-300, 5e-324, 1 - 2**-53, 2**-53, 0.5 + 2**-53, 1e-16)

probability = st.one_of(
    st.floats(0, 1),
    st.sampled_from(EXTREMES),
    st.integers(0, 10).map(lambda k: k / 10),  # ties
    st.floats(0, 1e-9).map(lambda x: 0.3 + x),  # clusters
)


@st.composite
def samples(draw, min_size=1, max_size=30, *, weighted=None):
    """Draw (y_true, y_prob, sample_weight or None)."""
    size = draw(st.integers(min_size, max_size))
    y_prob = np.array(draw(st.lists(probability, min_size=size, max_size=size)))
    y_true = np.array(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
    if not (draw(st.booleans()) if weighted is None else weighted):
        return y_true, y_prob, None
    weight = st.one_of(st.integers(0, 5).map(float), st.floats(1e-6, 1e6))
    sample_weight = np.array(draw(st.lists(weight, min_size=size, max_size=size)))
    if sample_weight.sum() == 0:
        sample_weight[0] = 1.0
    return y_true, y_prob, sample_weight


def _labels(rng, p):
    return (rng.random(p.size) < p).astype(int)


def family(name, n, rng):
    """Return (y_true, y_prob) of a named kind."""
    f = rng.random(n)
    if name.startswith("beta"):
        beta = float(name.removeprefix("beta"))
        return _labels(rng, f), f**beta / (f**beta + (1 - f) ** beta)
    if name == "tied":
        v = np.round(f, 1)
        return _labels(rng, v), v
    if name == "one class":
        return np.full(n, int(rng.integers(2))), f
    if name == "one sided":
        return _labels(rng, f / 2), f
    if name == "oscillating":
        return _labels(rng, f + 0.6 * np.sin(40 * f) * f * (1 - f)), f
    if name == "clusters":
        v = np.clip(rng.choice([0.0, 0.2, 0.5, 0.5 + 1e-9, 1.0], n) + 1e-12 * f, 0, 1)
        return _labels(rng, v), v
    if name == "extreme":
        v = rng.choice(EXTREMES, n)
        return rng.integers(0, 2, n), v
    if name == "alternating":
        v = np.sort(f)
        return np.arange(n) % 2, v
    raise ValueError(name)


FAMILIES = (
    "beta0.3",
    "beta1",
    "beta3",
    "tied",
    "one class",
    "one sided",
    "oscillating",
    "clusters",
    "extreme",
    "alternating",
)


def instances(n, rounds):
    """Yield (y_true, y_prob, sample_weight or None) of every family, from one row on."""
    for name in FAMILIES:
        for seed in range(rounds):
            rng = np.random.default_rng([seed, len(name)])
            size = 1 if seed == 0 else int(rng.integers(2, n))
            y, p = family(name, size, rng)
            yield y, p, rng.exponential(size=size) ** 3 if seed % 2 else None
