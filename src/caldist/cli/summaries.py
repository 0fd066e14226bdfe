"""``caldist summarize`` and ``caldist merge``: fixed-size summaries of any number of rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

import click

from caldist.cli import _options
from caldist.cli._data import Data
from caldist.cli._progress import working
from caldist.cli._streams import say

if TYPE_CHECKING:
    from caldist.data.joint import Joint

_BITS = 16
_SPECIAL = '/\\%=:*?"<>|'  # what names of folders have not, on some system


@click.command()
@_options.data("positive", "by")
@click.option(
    "--bits",
    type=int,
    metavar="BITS",
    help=f"2^BITS cells between 0 and 1. Default: {_BITS}; of summaries, those of the coarsest.",
)
@click.option(
    "--invalid",
    type=click.Choice(["raise", "count"]),
    default="raise",
    show_default=True,
    help="What to do with rows of a table without a valid label or prediction.",
)
@_options.out(
    required=True, help="The summary to write, .npz; with --by one in a folder COL=group."
)
def summarize(
    *, data: Data, bits: int | None, invalid: Literal["raise", "count"], out: str
) -> None:
    """Summarise a file of any size on a grid.

    The summary is small, merges with others of the same grid to the bit, and every command reads
    it. DuckDB does the work where it is installed. Summaries (.npz) in place of FILE are brought to
    one grid and merged. With --by there is a summary of each sub-group: -o day.npz --by site writes
    site=north/day.npz and so on, which `caldist monitor --by site` reads.
    """
    from caldist.cli._summarizing import summarized

    _options.check_out(out, [".npz"])
    joints: Mapping[str | None, Joint]
    with working("summarising"), data.opened() as found:
        if isinstance(found, dict):
            joints = {None: _merged(_on_one_grid(found, bits))}
        else:
            joints = summarized(data, found, _BITS if bits is None else bits, invalid)
    for group, joint in joints.items():
        path = Path(out)
        if group is not None:
            path = path.parent / f"{_in_path(str(data.by))}={_in_path(group)}" / path.name
            path.parent.mkdir(exist_ok=True)
        joint.save(path)
        say(f"{path}: {joint!r}")


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="SUMMARY...")
@_options.out(required=True, help="The summary to write, .npz.")
def merge(*, files: tuple[str, ...], out: str) -> None:
    """Merge summaries of different rows into one, in any order."""
    _options.check_out(out, [".npz"])
    with Data(files).opened() as found:
        if isinstance(found, list):
            message = f"{found[0]} is not a saved joint (.npz): caldist summarize makes one."
            raise TypeError(message)
        joint = _merged(found)
    joint.save(out)
    say(f"{out}: {joint!r}")


def _in_path(name: str) -> str:
    """Return a name as it may be a folder's, with what may not as in addresses."""
    return "".join(quote(c, safe="") if c in _SPECIAL or c < " " else c for c in name)


def _bits(joint: Joint) -> int | None:
    return None if joint.grid is None else joint.grid.bits


def _on_one_grid(joints: Mapping[str, Joint], bits: int | None) -> dict[str, Joint]:
    if bits is None:
        bits = min(_bits(joint) or _BITS for joint in joints.values())
    for name, joint in joints.items():
        own = _bits(joint)
        if own is not None and own < bits:
            message = f"--bits is {bits}, but {name} has only {own}: at most these can be had."
            raise ValueError(message)
    return {name: joint.coarsen(bits) for name, joint in joints.items()}


def _merged(joints: Mapping[str, Joint]) -> Joint:
    grids = {_bits(joint): name for name, joint in joints.items()}
    if len(grids) > 1:
        told = ", ".join(
            f"{name} has {'no grid' if bits is None else f'{bits} bits'}"
            for bits, name in grids.items()
        )
        message = f"{told}: bring them to one grid with caldist summarize --bits, which merges too."
        raise ValueError(message)
    first, *others = joints.values()
    return sum(others, first)
