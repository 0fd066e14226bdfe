"""The least versions that CI installs are those that pyproject.toml declares."""

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "minimums.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="only the repository has .ci")
def test_the_constraints_are_those_of_pyproject():
    made = runpy.run_path(str(SCRIPT))
    assert made["FILE"].read_text("utf-8") == made["minimums"](), "run python .ci/minimums.py"
