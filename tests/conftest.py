"""Set-up shared by all tests.

The examples of Hypothesis are the same in every run, in CI and elsewhere, so that a failure is the
change's own. ``CALDIST_EXPLORE=1`` looks for new ones instead, from a fresh seed that is printed.
"""

import importlib.util
import os
import secrets
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import caldist
from caldist import _kernels

EXPLORING = os.environ.get("CALDIST_EXPLORE") == "1"
# Uncompiled kernels are a hundred times slower: fewer examples, the same tests.
EXAMPLES = 150 if _kernels.COMPILED else 15
COMMON = {
    "max_examples": EXAMPLES,
    "deadline": None,
    "database": None,  # a run depends on its seed alone
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}

settings.register_profile("default", derandomize=True, **COMMON)
settings.register_profile("explore", derandomize=False, **COMMON)
settings.load_profile("explore" if EXPLORING else "default")


PACKAGE = Path(caldist.__file__).parent
NEEDED = {
    "sklearn": "sklearn",
    "torch": "torch",
    "torch/_metric.py": "torchmetrics",
}  # to import it


class InstalledPackage:
    """Collects the examples in the docstrings of the installed package, and of nothing else."""

    @staticmethod
    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(file_path):
        collectors = yield
        if not file_path.is_relative_to(PACKAGE):
            return [c for c in collectors if type(c).__name__ != "DoctestModule"]
        place = file_path.relative_to(PACKAGE).as_posix()
        absent = (
            importlib.util.find_spec(NEEDED[x]) is None for x in NEEDED if place.startswith(x)
        )
        return [] if any(absent) else collectors


@pytest.hookimpl(tryfirst=True)  # before Hypothesis reads its option
def pytest_configure(config):
    config.pluginmanager.register(InstalledPackage)
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
