"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = ["check_out", "confidence", "data", "out", "resampling"]

Command = TypeVar("Command", bound=Callable[..., Any])

_files = click.argument("files", nargs=-1, required=True, metavar="FILE...")
_label = click.option("--label", metavar="COL", help="The column of labels, 0 and 1.")
_score = click.option(
    "--score",
    "scores",
    multiple=True,
    metavar="COL",
    help="A column of predicted probabilities; repeat for several models.",
)
_weight = click.option("--weight", metavar="COL", help="A column of row weights.")


def data(command: Command) -> Command:
    """Add FILE, --label, --score and --weight."""
    return _files(_label(_score(_weight(command))))


def out(**settings: Any) -> Callable[[Command], Command]:
    """Add -o, the file to write."""
    return click.option("-o", "--out", metavar="FILE", **settings)


def check_out(path: str, suffixes: Sequence[str]) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    if Path(path).suffix not in suffixes:
        message = f"--out is {path!r}; its name must end in {', '.join(suffixes)}."
        raise ValueError(message)
    folder = Path(path).parent
    if not folder.is_dir():
        message = f"--out is {path!r}, but there is no folder {str(folder)!r}: make it first."
        raise ValueError(message)


def confidence(command: Command) -> Command:
    """Add --confidence-level."""
    return click.option(
        "--confidence-level", type=float, default=0.95, show_default=True, metavar="LEVEL"
    )(command)


def resampling(command: Command) -> Command:
    """Add --groups, --resamples and --seed."""
    groups = click.option(
        "--groups", metavar="COL", help="Rows that belong together: a patient, a game, a user."
    )
    resamples = click.option(
        "--resamples", type=int, default=999, show_default=True, metavar="N", help="How many draws."
    )
    seed = click.option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        metavar="N",
        help="Same seed, same draws.",
    )
    return groups(resamples(seed(command)))
