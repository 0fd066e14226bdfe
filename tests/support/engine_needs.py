"""Engines that a test needs: skipped where one is absent, unless all must be there."""

import importlib
import os

import pytest

REQUIRED = os.environ.get("CALDIST_REQUIRE_ENGINES") == "1"


def need(*modules):
    """Import the modules of an engine, or skip; the first is returned."""
    try:
        first, *_ = (importlib.import_module(module) for module in modules)
    except ImportError as error:
        if REQUIRED:
            pytest.fail(f"CALDIST_REQUIRE_ENGINES is set, but: {error}")
        pytest.skip(str(error))
    return first
