"""A measure stays a function where its file has the same name and is imported first."""

import subprocess
import sys

import pytest

import caldist
from caldist.measures.registry import all_measures


@pytest.mark.parametrize("name", ["smooth_ce", "upper_distance"])
def test_a_function_is_not_replaced_by_its_file(name):
    code = (
        f"import caldist.measures.{name}\n"
        "import caldist\n"
        f"print(caldist.measures.{name}([0, 1], [0.2, 0.7]) == caldist.{name}([0, 1], [0.2, 0.7]))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "True\n"


def test_all_measures_have_an_address_in_measures():
    assert {*all_measures()} <= {*caldist.measures.__all__}
