"""Set-up shared by all tests."""

import os

from hypothesis import HealthCheck, settings

from caldist import _kernels

# Uncompiled kernels are a hundred times slower: fewer examples, the same tests.
settings.register_profile(
    "default",
    max_examples=150 if _kernels.COMPILED else 15,
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("default")
