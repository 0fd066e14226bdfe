"""Fuzzing that goes on: ``python -m fuzz``, from the root of a checkout.

A target draws an instance from a random stream and checks what must hold of it. The stream of round
R of a target depends on the seed, the target and R alone, so that every finding can be repeated.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
