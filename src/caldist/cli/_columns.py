"""Which columns hold the labels and the predictions, and their values, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from caldist.cli._source import Source, open_source
from caldist.cli._working import working

__all__ = ["Columns", "read_columns"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """Clean columns: labels, predictions by name, and what else was asked for."""

    label_name: str
    label: NDArray[np.uint8]
    scores: dict[str, Vector]
    weight: Vector | None
    others: dict[str, NDArray[Any]]


def read_columns(
    files: Sequence[str],
    label: str | None,
    scores: Sequence[str],
    weight: str | None = None,
    others: Sequence[str] = (),
) -> Columns:
    """Read and check the columns that a command needs, guessing those that are not named."""
    from caldist import _validate

    with working("reading"), open_source(files) as source:
        named = [name for name in (label, *scores, weight, *others) if name is not None]
        _check_names(source, named)
        if label is None or not scores:
            label, scores = _guess(source, label, list(scores), {*others, weight})
        content = source.read([*dict.fromkeys([label, *scores, *named])])
    names = list(dict.fromkeys(scores))
    clean_label, predictions = _validate.named_inputs(
        content[label],
        {f"column {name!r}": content[name] for name in names},
        true_name=f"column {label!r}",
        remedy="Exchange --label and --score.",
    )
    clean_scores = dict(zip(names, predictions, strict=True))
    clean_weight = None
    if weight is not None:
        clean_weight = _validate.weights(content[weight], clean_label.size, f"column {weight!r}")
    for name in others:
        _refuse_missing(name, content[name])
    kept = {name: content[name] for name in others}
    return Columns(label, clean_label, clean_scores, clean_weight, kept)


def _refuse_missing(name: str, values: NDArray[Any]) -> None:
    from caldist import _validate

    missing = np.array([value is None or value != value for value in values])  # noqa: PLR0124 -- NaN
    if missing.any():
        _validate.fail(f"column {name!r}", values, missing, "fill it, or leave those rows out.")


def _check_names(source: Source, names: Sequence[str]) -> None:
    for name in names:
        if name not in source.columns:
            near = get_close_matches(name, source.columns, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            message = f"there is no column {name!r}.{hint} Columns: {', '.join(source.columns)}."
            raise ValueError(message)


def _guess(
    source: Source, label: str | None, scores: list[str], taken: set[str | None]
) -> tuple[str, list[str]]:
    """Find the one column of zeros and ones and the one other column within [0, 1], and say so."""
    free = [name for name in source.columns if name not in {label, *scores, *taken}]
    # A missing value makes a column bad, not another one right: it is refused when it is read.
    numeric = {
        name: column[column == column]  # noqa: PLR0124 -- NaN
        for name, column in source.read(free).items()
        if column.dtype.kind in "biuf"
    }
    binary = [name for name, column in numeric.items() if np.isin(column, (0, 1)).all()]
    inside = [
        name
        for name, column in numeric.items()
        if name not in binary and ((column >= 0) & (column <= 1)).all()
    ]
    if label is None:
        label = _only(binary, "--label", "holds only 0 and 1", source)
    if not scores:
        scores = [_only(inside, "--score", "holds only values between 0 and 1", source)]
    click.echo(f"using label {label!r} and score {', '.join(map(repr, scores))}", err=True)
    return label, scores


def _only(candidates: list[str], option: str, what: str, source: Source) -> str:
    if len(candidates) == 1:
        return candidates[0]
    found = f"{len(candidates)} columns do: {', '.join(candidates)}" if candidates else "none does"
    message = (
        f"name the column with {option}. It is guessed only where exactly one {what}; {found}. "
        f"Columns: {', '.join(source.columns)}."
    )
    raise ValueError(message)
