"""The fuzzer: its targets run, a fault is found, printed and repeated, and a seed fixes all."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import caldist
from caldist import Joint

ROOT = Path(__file__).parents[2]
TARGETS = ("measures", "certificates", "rounding", "files", "command_line")


@pytest.fixture
def fuzz(monkeypatch):
    """Return the entry point, imported as from the root of a checkout."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    monkeypatch.setenv("CALDIST_NUM_THREADS", "1")
    return import_module("fuzz.__main__")


@pytest.mark.parametrize("name", TARGETS)
def test_a_few_rounds_of_each_target(fuzz, name):
    assert tuple(fuzz.TARGETS) == TARGETS
    for number in range(4):
        assert fuzz.main(["--only", name, "--seed", "7", "--round", str(number)]) == 0


@pytest.mark.parametrize("name", TARGETS)
def test_a_round_depends_on_seed_and_number_alone(fuzz, name):
    def drawn(seed, number):
        return fuzz.shown(fuzz.TARGETS[name].draw(fuzz.stream(name, seed, number)))

    assert drawn(1, 5) == drawn(1, 5)
    assert len({drawn(1, 5), drawn(1, 6), drawn(2, 5)}) == 3


def test_the_seed_of_the_day_is_printed(fuzz, capsys):
    assert fuzz.main(["--seconds", "0"]) == 0
    seed = capsys.readouterr().out.splitlines()[0]
    assert seed.startswith("seed 20")
    assert len(seed) == len("seed YYYYMMDD")


def found(fuzz, capsys, name):
    """Fuzz until something is found; return what is printed when it is repeated as told."""
    assert fuzz.main(["--seconds", "60", "--only", name, "--seed", "3"]) == 1
    printed = capsys.readouterr().out
    assert printed.endswith(f"found: {name}\n")
    [repeat] = [line for line in printed.splitlines() if line.startswith("repeat: ")]
    assert fuzz.main(repeat.removeprefix("repeat: python -m fuzz ").split()) == 1
    again = capsys.readouterr().out
    [instance] = [line for line in printed.splitlines() if line.startswith(f"found by {name}: ")]
    assert instance in again
    return again, eval(instance.removeprefix(f"found by {name}: "))


def test_a_wrong_measure_is_found(fuzz, capsys, monkeypatch):
    right = caldist.interval_ce
    monkeypatch.setattr(
        caldist,
        "interval_ce",
        lambda y, p, **options: right(y, p, **options) + (np.size(y) > 3) / 9,
    )
    printed, instance = found(fuzz, capsys, "measures")
    assert "AssertionError" in printed
    assert len(instance["y_true"]) > 3


def test_a_verifier_that_believes_everything_is_found(fuzz, capsys, monkeypatch):
    for kind in ("SmoothCertificate", "LowerCertificate", "UpperCertificate"):
        monkeypatch.setattr(getattr(caldist.certificates, kind), "verify", lambda self: None)
    printed, _ = found(fuzz, capsys, "certificates")
    assert "a forged proof of" in printed


def test_a_bound_that_is_too_narrow_is_found(fuzz, capsys, monkeypatch):
    monkeypatch.setattr(Joint, "coarsen", lambda self, bits: Joint.from_arrays([0, 1], [0.0, 1.0]))
    found(fuzz, capsys, "rounding")


def test_a_file_that_is_read_without_a_check_is_found(fuzz, capsys, monkeypatch):
    monkeypatch.setattr(
        Joint, "load", classmethod(lambda cls, path: cls.from_arrays([0, 1], [0.5, 0.5]))
    )
    found(fuzz, capsys, "files")


def test_a_command_that_fails_is_found(fuzz, capsys, monkeypatch):
    def broken(*arguments, **options):
        raise ZeroDivisionError

    monkeypatch.setattr("caldist.cli.main.callback", broken)
    found(fuzz, capsys, "command_line")


def test_a_round_without_a_target_is_refused(fuzz, capsys):
    with pytest.raises(SystemExit):
        fuzz.main(["--round", "1"])
    assert "--round needs --only" in capsys.readouterr().err
