"""``caldist summarize``: fixed-size summaries of any number of rows, merged where they are."""

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
from caldist.errors import InvalidInput

if TYPE_CHECKING:
    from caldist.data.joint import Joint

_BITS = 16
_MOST_BITS = 30  # of a grid; data.grid.MAX_BITS, which takes a while to import
_SPECIAL = '/\\%=:*?"<>|'  # what names of folders have not, on some system


@click.command(cls=_options.Command)
@_options.data("by")
@click.option(
    "--bits",
    type=click.IntRange(1, _MOST_BITS),
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
            joints = {None: _merged(_coarsened(found, bits))}
        else:
            joints = summarized(data, found, _BITS if bits is None else bits, invalid)
    for group, joint in joints.items():
        path = Path(out)
        if group is not None:
            path = path.parent / f"{_in_path(str(data.by))}={_in_path(group)}" / path.name
            path.parent.mkdir(exist_ok=True)
        joint.save(path)
        say(f"{path}: {joint!r}")


def _in_path(name: str) -> str:
    """Return a name as it may be a folder's, with what may not as in addresses."""
    return "".join(quote(c, safe="") if c in _SPECIAL or c < " " else c for c in name)


def _bits(joint: Joint) -> int | None:
    return None if joint.grid is None else joint.grid.bits


def _coarsened(joints: Mapping[str, Joint], bits: int | None) -> dict[str, Joint]:
    """Bring summaries to one grid: the coarsest of theirs, or one that is coarser."""
    if bits is None:
        bits = min(_bits(joint) or _BITS for joint in joints.values())
    for name, joint in joints.items():
        own = _bits(joint)
        if own is not None and own < bits:
            reason = f"{name} has only {own}"
            remedy = "Ask for at most as many."
            raise InvalidInput(argument="--bits", value=bits, reason=reason, remedy=remedy)
    return {name: joint.coarsen(bits) for name, joint in joints.items()}


def _merged(joints: Mapping[str, Joint]) -> Joint:
    first, *others = joints.values()
    return sum(others, first)
