"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from caldist.cli._data import Data

Command = TypeVar("Command", bound=Callable[..., Any])


def _one(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Refuse a second column, of which the first would be forgotten without a word."""
    if len(values) > 1:
        message = (
            f"{values[0]!r} and {values[1]!r} were given, and {context.info_name} divides the rows "
            "by one column: run it once for each. caldist report takes several."
        )
        raise click.BadParameter(message, context, option)
    return values[0] if values else None


_DATA = {
    "files": click.argument("files", nargs=-1, required=True, metavar="FILE..."),
    "label": click.option(
        "--label", metavar="COL", help="The column of labels: 0 and 1, or classes."
    ),
    "scores": click.option(
        "--score",
        "scores",
        multiple=True,
        metavar="COL",
        help="A column of predicted probabilities; repeat for several models. Of several classes a "
        "pattern in quotes, as 'p_*', for each model; or with --classes a column for each class.",
    ),
    "positive": click.option(
        "--positive",
        metavar="VALUE",
        help="Labels may be any two values: which of them counts as label 1, as yes.",
    ),
    "weight": click.option("--weight", metavar="COL", help="A column of row weights."),
    "clusters": click.option(
        "--clusters", metavar="COL", help="Rows that belong together: a patient, a game, a user."
    ),
    "classes": click.option(
        "--classes",
        metavar="NAMES",
        help="Several classes: their names as the labels have them, with commas between, in the "
        "order of the columns; by default what the star of a pattern stands for.",
    ),
    "normalize": click.option(
        "--normalize",
        is_flag=True,
        help="Several classes: divide the probabilities of each row by their sum, where "
        "rounding keeps them from summing to 1.",
    ),
    "drop_missing": click.option(
        "--drop-missing",
        is_flag=True,
        help="Leave out rows in which a column that is needed has no value; every output says how "
        "many. Otherwise they are an error.",
    ),
    "by": click.option(
        "--by",
        multiple=True,
        callback=_one,
        metavar="COL",
        help="Sub-groups: one for each value of a column.",
    ),
    "by_columns": click.option(
        "--by",
        "by_columns",
        multiple=True,
        metavar="COL",
        help="Sub-groups: one for each value of a column; many numbers are put into bins. Repeat "
        "for several columns.",
    ),
}


def data(*others: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add FILE, --label, --score, --weight, others and --drop-missing, all in one argument."""
    names = ["files", "label", "scores", "weight", *others, "drop_missing"]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_data(*args: Any, **options: Any) -> None:
            asked = Data(**{name: options.pop(name) for name in names})
            command(*args, data=asked, **options)

        for name in reversed(names):
            _DATA[name](with_data)
        return with_data

    return decorate


def out(**settings: Any) -> Callable[[Command], Command]:
    """Add -o, the file to write."""
    return click.option("-o", "--out", metavar="FILE", **settings)


def check_out(path: str, suffixes: Sequence[str], option: str = "--out") -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    if Path(path).suffix not in suffixes:
        message = f"{option} is {path!r}; its name must end in {', '.join(suffixes)}."
        raise ValueError(message)
    folder = Path(path).parent
    if not folder.is_dir():
        message = f"{option} is {path!r}, but there is no folder {str(folder)!r}: make it first."
        raise ValueError(message)


def confidence(command: Command) -> Command:
    """Add --confidence-level."""
    return click.option(
        "--confidence-level", type=float, default=0.95, show_default=True, metavar="LEVEL"
    )(command)


def resampling(command: Command) -> Command:
    """Add --resamples and --seed."""
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
    return resamples(seed(command))
