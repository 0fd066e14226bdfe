"""Fuzz for a while: ``python -m fuzz --seconds 60``. The seed is that of the day, and is printed.

The targets take turns, so that each has its share of the time. One that found something rests; the
instance is printed, with the command that repeats it. The exit code is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
import time
import traceback
import zlib
from collections.abc import Sequence
from types import ModuleType

import numpy as np

from fuzz import certificates, command_line, files, measures, rounding

TARGETS: dict[str, ModuleType] = {
    "measures": measures,
    "certificates": certificates,
    "rounding": rounding,
    "files": files,
    "command_line": command_line,
}


def stream(name: str, seed: int, number: int) -> np.random.Generator:
    """Return the random stream of a round of a target."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), number])


def shown(instance: object) -> str:
    """Return an instance as Python would read it, every number to its last digit."""
    if isinstance(instance, dict):
        inside = ", ".join(f"{name!r}: {shown(value)}" for name, value in instance.items())
        return f"{{{inside}}}"
    return repr(instance.tolist() if isinstance(instance, np.ndarray) else instance)


def holds(name: str, seed: int, number: int) -> bool:
    """Run a round of a target; print what it finds, and how to repeat it."""
    instance = TARGETS[name].draw(stream(name, seed, number))
    try:
        TARGETS[name].check(instance)
    except Exception:  # noqa: BLE001 -- whatever it is, it is a finding
        print(f"\nfound by {name}: {shown(instance)}")
        traceback.print_exc(file=sys.stdout)
        print(f"repeat: python -m fuzz --only {name} --seed {seed} --round {number}", flush=True)
        return False
    return True


def fuzz(names: Sequence[str], seed: int, seconds: float) -> bool:
    """Let targets take turns until the time is over; return whether nothing was found."""
    rounds, spent, found = dict.fromkeys(names, 0), dict.fromkeys(names, 0.0), set[str]()
    begin = time.monotonic()
    while (now := time.monotonic()) - begin < seconds and len(found) < len(names):
        name = min(set(names) - found, key=lambda name: (spent[name], name))
        if not holds(name, seed, rounds[name]):
            found.add(name)
        rounds[name] += 1
        spent[name] += time.monotonic() - now
    print("rounds: " + ", ".join(f"{name} {rounds[name]:,}" for name in names))
    print("found: " + (", ".join(sorted(found)) or "nothing"))
    return not found


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long [60]")
    parser.add_argument("--seed", type=int, help="the date of today in UTC by default, YYYYMMDD")
    parser.add_argument("--only", choices=TARGETS, help="one target")
    parser.add_argument("--round", type=int, help="with --only: this round, and no other")
    chosen = parser.parse_args(arguments)
    if chosen.round is not None and chosen.only is None:
        parser.error("--round needs --only: each target has rounds of its own")
    seed = chosen.seed
    if seed is None:
        seed = int(dt.datetime.now(dt.UTC).strftime("%Y%m%d"))
    os.environ.setdefault("CALDIST_NUM_THREADS", "1")
    print(f"seed {seed}", flush=True)
    if chosen.round is not None:
        return 0 if holds(chosen.only, seed, chosen.round) else 1
    return 0 if fuzz([chosen.only] if chosen.only else list(TARGETS), seed, chosen.seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
