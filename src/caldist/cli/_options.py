"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from caldist.cli._data import Data
from caldist.errors import InvalidInput

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

DRAWS, SEED = 999, 0  # of intervals and tests: the same rows give the same answer
ALL, CLINICAL = "all", "clinical"  # what --measure takes instead of names


class Command(click.Command):
    """A command that refuses an option given twice: the first value would be lost silently."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, once to count the options and once to take them."""
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        for found in dict.fromkeys(order):
            takes_one = isinstance(found, click.Option) and not (found.multiple or found.is_flag)
            if takes_one and order.count(found) > 1:
                message = (
                    f"{flag(found)} was given {order.count(found)} times, and takes one value."
                )
                raise click.UsageError(message, ctx)
        return super().parse_args(ctx, args)


def flag(option: click.Parameter) -> str:
    """Return an option as people type it."""
    return max(option.opts, key=len)


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
    "by": click.option("--by", metavar="COL", help="Sub-groups: one for each value of a column."),
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
    """Add FILE, the options of all commands that read rows, and others, all in one argument."""
    names = ["files", "label", "scores", "weight", "positive", *others, "drop_missing"]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_data(*args: Any, **options: Any) -> None:
            asked = Data(**{name: options.pop(name) for name in names})
            command(*args, data=asked, **options)

        for name in reversed(names):
            _DATA[name](with_data)
        return with_data

    return decorate


def out(**settings: Any) -> Callable[[Decorated], Decorated]:
    """Add -o, the file to write."""
    return click.option("-o", "--out", metavar="FILE", **settings)


def check_out(path: str, suffixes: Sequence[str], option: str = "--out") -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    folder = Path(path).parent
    if Path(path).suffix not in suffixes:
        reason = f"its name must end in {', '.join(suffixes)}"
        raise InvalidInput(argument=option, value=path, reason=reason)
    if not folder.is_dir():
        reason = f"there is no folder {str(folder)!r}"
        raise InvalidInput(argument=option, value=path, reason=reason, remedy="Make it first.")


def confidence(command: Decorated) -> Decorated:
    """Add --confidence-level."""
    return click.option(
        "--confidence-level", type=float, default=0.95, show_default=True, metavar="LEVEL"
    )(command)


def measures(text: str) -> Callable[[Decorated], Decorated]:
    """Add --measure, which takes several names."""
    return click.option(
        "--measure", "measures", multiple=True, callback=_several, metavar="NAMES", help=text
    )


def measure(default: str, text: str) -> Callable[[Decorated], Decorated]:
    """Add --measure, which takes one name."""
    return click.option(
        "--measure", multiple=True, callback=_one, default=[default], show_default=True,
        metavar="NAME", help=text,
    )  # fmt: skip


def _several(_: click.Context, __: click.Parameter, given: Sequence[str]) -> tuple[str, ...]:
    """Return the names in a list with commas or in several options, each once."""
    parts = [name.strip() for value in given for name in value.split(",")]
    names = tuple(dict.fromkeys(filter(None, parts)))
    if given and not names:
        raise InvalidInput(argument="--measure", reason="names no measure")
    for word in (ALL, CLINICAL):
        if word in names and len(names) > 1:
            reason = f"it has {word!r} among other names, which stands alone"
            raise InvalidInput(argument="--measure", value=",".join(names), reason=reason)
    return names


def _one(context: click.Context, option: click.Parameter, given: Sequence[str]) -> str:
    names = _several(context, option, given)
    if len(names) > 1:
        reason = f"{context.info_name} takes one measure"
        remedy = "Run it once for each."
        value = ",".join(names)
        raise InvalidInput(argument="--measure", value=value, reason=reason, remedy=remedy)
    return names[0]
