"""The exploring run: other examples each time, and the same ones again from the printed seed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

CONFTEST = Path(__file__).parents[1] / "conftest.py"
DRAWING = """
from hypothesis import given, settings, strategies as st

def test_draws():
    drawn = []

    @given(st.integers(0, 2**40))
    def draw(number):
        drawn.append(number)

    draw()
    print("drawn", len(drawn), sum(drawn))
"""


def run(folder, *options, **environment):
    (folder / "conftest.py").write_text(CONFTEST.read_text("utf-8"), "utf-8")
    (folder / "test_drawing.py").write_text(DRAWING, "utf-8")
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", *options, "."]
    unset = ("CALDIST_EXPLORE", "CI")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**kept, **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    seed = re.search(
        r"hypothesis seed (\d+); repeat with .*--hypothesis-seed=\1$", done.stdout, re.MULTILINE
    )
    drawn = re.search(r"drawn (\d+) (\d+)", done.stdout)
    return seed and seed[1], int(drawn[1]), int(drawn[2])


def test_a_fresh_seed_is_printed_and_repeats_the_run(tmp_path):
    seed, count, total = run(tmp_path, CALDIST_EXPLORE="1")
    again = run(tmp_path, "-q", f"--hypothesis-seed={seed}", CALDIST_EXPLORE="1")
    assert again == (seed, count, total)
    other, _, _ = run(tmp_path, CALDIST_EXPLORE="1")
    assert other != seed
    nothing, usual, _ = run(tmp_path)
    assert nothing is None
    assert count == usual


def test_examples_are_the_same_in_ci_and_elsewhere(tmp_path):
    here = run(tmp_path)
    assert here == run(tmp_path)
    assert here == run(tmp_path, CI="1")
