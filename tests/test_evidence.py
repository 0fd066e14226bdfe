"""The page of evidence says what can be counted now."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "make_evidence_page.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(script):
    page = script.TARGET.read_text("utf-8")
    assert page == script.render(), "run python scripts/make_evidence_page.py"


def test_a_share_within_the_noise_is_not_below(script):
    assert not script.below(0.93, 0.95, 1000)
    assert script.below(0.92, 0.95, 1000)
    assert not script.below(0.99, 0.95, 1000)
