"""Set-up shared by all tests.

``pytest`` runs the fast tier: tests without the mark ``slow``, with 25 examples of Hypothesis for
each. ``pytest -m "slow or not slow"`` runs all tests, with 150 examples. The whole suite runs on
all cores, the tests of a file that is named run in one process.

The examples of Hypothesis are the same in every run, in CI and elsewhere, so that a failure is the
change's own. ``CALDIST_EXPLORE=1`` looks for new ones instead, from a fresh seed that is printed.

In a source tree nothing is tested while a kernel differs from what was compiled.
"""

import hashlib
import importlib.util
import json
import os
import secrets
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import caldist
from caldist.kernels import loader

EXPLORING = os.environ.get("CALDIST_EXPLORE") == "1"
FAST_TIER = "not slow"  # what pyproject.toml gives as option -m
EXAMPLES, FAST_EXAMPLES, PLAIN_EXAMPLES = 150, 25, 15  # plain kernels are 100 times slower
WORKERS = 8  # at most: each imports all tests
PACKAGE = Path(caldist.__file__).parent
# What folders and modules of the package need to be imported.
NEEDED = {"sklearn": "sklearn", "torch": "torch", "torch/_metric.py": "torchmetrics"}
# Hashes of the kernels as they were compiled; written by setup.py, in a source tree alone.
RECORD = PACKAGE / "_compiled" / f"sources.{sys.implementation.cache_tag}.json"
REBUILD = "CALDIST_REQUIRE_COMPILED=1 python setup.py build_ext --inplace"


class InstalledPackage:
    """Collects the examples in the docstrings of the installed package, and of nothing else."""

    @staticmethod
    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(file_path):
        collectors = yield
        if not file_path.is_relative_to(PACKAGE):
            return [c for c in collectors if type(c).__name__ != "DoctestModule"]
        place = file_path.relative_to(PACKAGE).as_posix()
        needed = (other for start, other in NEEDED.items() if place.startswith(start))
        return collectors if all(map(importlib.util.find_spec, needed)) else []


def edited_kernels():
    """Return the kernels that differ from what was compiled: edits that tests would not see."""
    if not (loader.COMPILED and RECORD.exists()):
        return []
    compiled = json.loads(RECORD.read_text("utf-8"))
    paths = [PACKAGE / "kernels" / name for name in compiled]
    return [
        path
        for path in paths
        if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() != compiled[path.name]
    ]


@pytest.hookimpl(tryfirst=True)  # before Hypothesis reads its option
def pytest_configure(config):
    if edited := edited_kernels():
        message = (
            f"{', '.join(map(str, edited))}: edited since it was compiled, so tests would run the "
            f"old code. Compile it: {REBUILD}"
        )
        pytest.exit(message, returncode=pytest.ExitCode.USAGE_ERROR)
    config.pluginmanager.register(InstalledPackage)
    examples = FAST_EXAMPLES if config.option.markexpr == FAST_TIER else EXAMPLES
    settings.register_profile(
        "caldist",
        max_examples=examples if loader.COMPILED else PLAIN_EXAMPLES,
        derandomize=not EXPLORING,
        deadline=None,
        database=None,  # a run depends on its seed alone
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    settings.load_profile("caldist")
    if EXPLORING and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(secrets.randbelow(2**32))  # workers get it from here


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads its options
def pytest_cmdline_main(config):
    worker = hasattr(config, "workerinput")  # which would start workers of its own
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if whole and not worker and config.getoption("numprocesses", default=0) is None:
        config.option.numprocesses = "auto"
        config.option.maxprocesses = config.option.maxprocesses or WORKERS
        if config.option.dist == "no":
            config.option.dist = "worksteal"  # most tests of a file stay in one process


def _seed(config):
    seed = config.option.hypothesis_seed
    return f"hypothesis seed {seed}; repeat with CALDIST_EXPLORE=1 and --hypothesis-seed={seed}"


def pytest_report_header(config):
    return _seed(config) if EXPLORING else None


def pytest_terminal_summary(terminalreporter, config):
    if EXPLORING and not terminalreporter.showheader:
        terminalreporter.write_line(_seed(config))
