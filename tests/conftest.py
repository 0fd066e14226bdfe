"""Set-up shared by all tests.

In CI the examples of Hypothesis are the same in every run, so that a failure is the change's own.
``CALDIST_EXPLORE=1`` looks for new ones instead, from a fresh seed that is printed.
"""

import os
import secrets

import pytest
from hypothesis import HealthCheck, settings

from caldist import _kernels

EXPLORING = os.environ.get("CALDIST_EXPLORE") == "1"
# Uncompiled kernels are a hundred times slower: fewer examples, the same tests.
EXAMPLES = 150 if _kernels.COMPILED else 15
COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}

settings.register_profile(
    "default", max_examples=EXAMPLES, derandomize="CI" in os.environ, **COMMON
)
# Without a database a run depends on its seed alone.
settings.register_profile(
    "explore", max_examples=EXAMPLES, derandomize=False, database=None, **COMMON
)
settings.load_profile("explore" if EXPLORING else "default")


@pytest.hookimpl(tryfirst=True)  # before Hypothesis reads its option
def pytest_configure(config):
    if EXPLORING and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(secrets.randbelow(2**32))  # workers get it from here


def _seed(config):
    seed = config.option.hypothesis_seed
    return f"hypothesis seed {seed}; repeat with CALDIST_EXPLORE=1 and --hypothesis-seed={seed}"


def pytest_report_header(config):
    return _seed(config) if EXPLORING else None


def pytest_terminal_summary(terminalreporter, config):
    if EXPLORING and not terminalreporter.showheader:
        terminalreporter.write_line(_seed(config))
