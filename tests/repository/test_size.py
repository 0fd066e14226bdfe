"""The table of sizes: checked for its packages, and for numbers that are far off."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "size.py"


@pytest.fixture(scope="module")
def size():
    spec = importlib.util.spec_from_file_location("size", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("old", "new", "near"),
    [
        ("cli 3,696 lines", "cli 3,700 lines", True),
        ("cli 3,696 lines", "cli  3,880 lines", True),
        ("cli 3,696 lines", "cli 3,900 lines", False),
        ("cli 3,696 lines", "sklearn 3,696 lines", False),
        ("cli 1 2", "cli 1 2 3", False),
    ],
)
def test_a_page_is_old_if_it_has_other_words_or_numbers_that_are_far_off(size, old, new, near):
    assert size._is_near(old, new) == near


def test_the_page_is_current(size):
    assert size.main(["--check"]) == 0
