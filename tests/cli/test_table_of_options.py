"""The commands and their options are those of the documented table, and mean one thing each."""

import click
import pytest

from caldist.cli import main

ROWS = "files label score weight positive drop-missing"
CLASSES = "classes normalize"
TABLE = {
    "measure": f"{ROWS} {CLASSES} clusters by each-class measure format fail-above require-below",
    "report": f"{ROWS} {CLASSES} clusters by measure tolerance confidence-level out exact",
    "test": f"{ROWS} {CLASSES} clusters measure tolerance fail-below format",
    "compare": f"{ROWS} {CLASSES} clusters measure confidence-level format",
    "recalibrate": f"{ROWS} clusters family confidence-level fail-above require-below out",
    "apply": "map_file files score column sql dialect out",
    "monitor": f"{ROWS} by date date-format state tolerance false-alarm-rate run-length maturity "
    "dependent-dates invalid out format fail-on-alarm",
    "summarize": f"{ROWS} by bits invalid out",
    "verify": "files",
    "demo": "",
}


def names(command):
    """Return the options of a command by their longest flag, and its arguments."""
    return {max(found.opts, key=len).removeprefix("--") for found in command.params}


def test_there_are_these_commands_in_this_order():
    assert list(main.commands) == list(TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_a_command_has_these_options(name):
    assert names(main.commands[name]) == set(TABLE[name].split())


def test_the_program_itself_has_only_its_version():
    assert names(main) == {"version"}


def test_an_option_is_written_and_typed_alike_everywhere():
    found = {}
    for command in main.commands.values():
        for option in command.params:
            if isinstance(option, click.Option):
                kind = (sorted(option.opts), option.is_flag)
                assert found.setdefault(max(option.opts, key=len), kind) == kind
