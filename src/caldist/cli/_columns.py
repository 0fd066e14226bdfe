"""Which columns hold the labels and the predictions, and their values, checked."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist.cli._data import Data, Models
from caldist.cli._missing_values import called, read_content
from caldist.cli._source import Source
from caldist.cli._streams import say
from caldist.data import validate
from caldist.data.categories import cluster_codes, refuse_measurements
from caldist.data.rows import Rows
from caldist.engines import cells
from caldist.errors import InvalidInput

HEAD = 1000  # rows that tell what most columns are not
_NAMED = 40  # columns that a message lists
_CLASSES = (
    "Of two other labels say with --positive which counts as 1; of several classes name a column "
    "of probabilities for each, as --score 'p_*'."
)


def read_table(data: Data, source: Source) -> Models:
    """Read and check the columns that a command needs, guessing those that are not named."""
    divided = [name for name in (data.clusters, data.by, *data.by_columns) if name is not None]
    others = [*([] if data.weight is None else [data.weight]), *divided]
    named = [name for name in (data.label, *data.scores, *others) if name is not None]
    check_names(source.columns, named)
    label, scores = data.label, list(dict.fromkeys(data.scores))
    if label is None and data.positive is not None:
        reason, remedy = "was given without --label", "Name the column of labels."
        raise InvalidInput(argument="--positive", reason=reason, remedy=remedy)
    if label is None or not scores:
        label, scores = guess(source, label, scores, others)
    as_names = [*divided]
    as_numbers = [*scores, *([] if data.weight is None else [data.weight])]
    (as_numbers if data.positive is None else as_names).insert(0, label)
    content = read_content(
        source, as_numbers, as_names, label=label, by=data.by, drop_missing=data.drop_missing
    )
    labels = (content.numbers if data.positive is None else content.names)[label]
    weight, cluster, n_clusters, groups = None, None, 0, None
    with content.placing():
        try:
            clean_label, predictions = validate.named_inputs(
                labels,
                {called(name): content.numbers[name] for name in scores},
                true_name=called(label),
                remedy="Exchange --label and --score.",
                option="--positive",
                pos_label=None if data.positive is None else positive_value(labels, data.positive),
            )
        except InvalidInput as error:
            other = data.positive is not None or error.value > 1
            if error.argument == called(label) and other:
                raise error.but(remedy=_CLASSES) from None
            raise
        if data.weight is not None:
            values = content.numbers[data.weight]
            weight = validate.weights(values, clean_label.size, called(data.weight))
        if data.clusters is not None:
            cluster, n_clusters = cluster_codes(content.names[data.clusters], clean_label.size)
        if data.by is not None:
            groups = groups_of(data.by, content.names[data.by])
    return Models(
        {
            name: Rows(clean_label, prediction, weight, cluster, n_clusters)
            for name, prediction in zip(scores, predictions, strict=True)
        },
        named_by="score",
        head={
            "files": list(data.files),
            "label": label,
            "weight": data.weight,
            "clusters": data.clusters,
            "by": data.by,
        }
        | ({} if content.dropped is None else {"dropped": content.dropped.to_dict()}),
        groups=groups,
        by={name: content.names[name] for name in data.by_columns},
        dropped=content.dropped,
    )


def positive_value(values: NDArray[Any], text: str) -> object:
    """Return the label that a text of the shell means, as the column has it."""
    distinct = list(dict.fromkeys(values.tolist()))
    if text in distinct:
        return text
    meant = cells.number(text)
    same = [value for value in distinct if cells.number(value) == meant]
    return same[0] if len(same) == 1 and meant != cells.BAD else text


def groups_of(name: str, values: NDArray[Any]) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Return the names of sub-groups, in order, and the number of each row's.

    Names stay Python's: NumPy's text takes the room of the longest name for every row, and drops
    zeros at the end.
    """
    refuse_measurements(values, called(name))
    if values.dtype.kind == "O":
        values = np.array([str(value) for value in values], dtype=object)
        found = sorted(set(values))
        number = {name: at for at, name in enumerate(found)}
        code = np.fromiter((number[value] for value in values), np.int64, values.size)
    else:  # which have an order of their own
        distinct, code = np.unique(values, return_inverse=True)
        found = [str(value) for value in distinct]
    return np.array(found, dtype=object), code.astype(np.int64)


def check_names(columns: Sequence[str], names: Sequence[str]) -> None:
    """Raise unless there are columns of these names."""
    for name in names:
        if name not in columns:
            near = get_close_matches(name, columns, n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            if all(cells.number(column) != cells.BAD for column in columns):
                hint = "The first line is taken for the header, and holds numbers: add one. "
            raise InvalidInput(
                argument=called(name),
                reason="is not there",
                remedy=f"{hint}Columns: {_listed(columns)}.",
            )


def guess(
    source: Source,
    label: str | None,
    scores: list[str],
    taken: list[str],
    rows: int | None = None,
) -> tuple[str, list[str]]:
    """Find the one column of zeros and ones and the one other column within [0, 1], and say so.

    All rows are looked at, or the first ``rows``.
    """
    if all(cells.number(column) != cells.BAD for column in source.columns):
        raise InvalidInput(
            argument="the first line",
            reason="is taken for the header, and holds numbers",
            remedy="Add a header, or name the columns with --label and --score. Columns: "
            f"{_listed(source.columns)}.",
        )
    known = {label, *scores, *taken}
    likely = [name for name in source.columns if name not in known | source.twice]
    # Most columns show in their first rows that they are something else: only the others are read.
    first = source.read(likely, rows=HEAD).numbers
    likely = list(_within_unit(first))
    found = _within_unit(source.read(likely, rows=rows).numbers)
    binary = {name: None for name, column in found.items() if np.isin(column, (0, 1)).all()}
    inside = [name for name in found if name not in binary]
    if label is None:
        label = _only(list(binary), "--label", "holds only 0 and 1", source)
    if not scores:
        hint = "" if inside else _in_other_units(first)
        scores = [_only(inside, "--score", "holds only values between 0 and 1", source, hint)]
    say(f"using label {label!r} and score {', '.join(map(repr, scores))}", err=True)
    return label, scores


def _within_unit(columns: dict[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """Return the columns of numbers from 0 to 1, without their missing values.

    A missing value makes a column bad, not another one right: it is refused when it is read.
    """
    there = {name: column[~np.isnan(column)] for name, column in columns.items()}
    return {name: x for name, x in there.items() if x.size and ((x >= 0) & (x <= 1)).all()}


def _in_other_units(columns: dict[str, NDArray[np.float64]]) -> str:
    """Return which columns look like percentages, if some do."""
    there = {name: column[~np.isnan(column)] for name, column in columns.items()}
    found = [
        repr(name)
        for name, x in there.items()
        if x.size and (x >= 0).all() and 1 < x.max() <= 100 and (x != np.round(x)).any()
    ]
    return f" If {' or '.join(found)} holds percentages, divide them by 100." if found else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _only(candidates: list[str], option: str, what: str, source: Source, hint: str = "") -> str:
    if len(candidates) == 1:
        return candidates[0]
    found = f"{len(candidates)} columns do: {_listed(candidates)}" if candidates else "none does"
    raise InvalidInput(
        argument=option,
        reason=f"is missing, and it is guessed only where exactly one column {what}; {found}",
        remedy=f"Name the column.{hint} Columns: {_listed(source.columns)}.",
    )
