"""What the tests of reports share."""

import os

import pytest

from pages import BROWSER


@pytest.fixture
def browser():
    if BROWSER is None:
        if os.environ.get("CALDIST_REQUIRE_BROWSER"):
            pytest.fail("no Chromium is installed")
        pytest.skip("no Chromium is installed")
