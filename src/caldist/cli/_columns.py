"""Which columns hold the labels and the predictions, and their values, checked."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist import _validate
from caldist.cli._data import Data, Models
from caldist.cli._source import Source
from caldist.cli._streams import say
from caldist.data.categories import cluster_codes, refuse_measurements
from caldist.data.rows import Rows

_HEAD = 1000  # rows that tell what most columns are not
_NAMED = 40  # columns that a message lists


def read_table(data: Data, source: Source) -> Models:
    """Read and check the columns that a command needs, guessing those that are not named."""
    others = [name for name in (data.weight, data.clusters, data.by) if name is not None]
    named = [name for name in (data.label, *data.scores, *others) if name is not None]
    check_names(source.columns, named)
    label, scores = data.label, list(dict.fromkeys(data.scores))
    if label is None or not scores:
        label, scores = _guess(source, label, scores, others)
    content = source.read([*dict.fromkeys([label, *scores, *others])])
    clean_label, predictions = _validate.named_inputs(
        content[label],
        {f"column {name!r}": content[name] for name in scores},
        true_name=f"column {label!r}",
        remedy="Exchange --label and --score.",
    )
    weight, cluster, n_clusters, groups = None, None, 0, None
    if data.weight is not None:
        called = f"column {data.weight!r}"
        weight = _validate.weights(content[data.weight], clean_label.size, called)
    if data.clusters is not None:
        refuse_missing(data.clusters, content[data.clusters])
        cluster, n_clusters = cluster_codes(content[data.clusters], clean_label.size)
    if data.by is not None:
        refuse_missing(data.by, content[data.by])
        groups = groups_of(data.by, content[data.by])
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
        },
        groups=groups,
    )


def groups_of(name: str, values: NDArray[Any]) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Return the names of sub-groups, in order, and the number of each row's.

    Names stay Python's: NumPy's text takes the room of the longest name for every row, and drops
    zeros at the end.
    """
    refuse_measurements(values, f"column {name!r}")
    if values.dtype.kind == "O":
        values = np.array([str(value) for value in values], dtype=object)
        found = sorted(set(values))
        number = {name: at for at, name in enumerate(found)}
        code = np.fromiter((number[value] for value in values), np.int64, values.size)
    else:  # which have an order of their own
        distinct, code = np.unique(values, return_inverse=True)
        found = [str(value) for value in distinct]
    return np.array(found, dtype=object), code.astype(np.int64)


def refuse_missing(name: str, values: NDArray[Any]) -> None:
    """Raise for a column with missing values."""
    missing = np.array([value is None or value != value for value in values])  # noqa: PLR0124 -- NaN
    if missing.any():
        _validate.fail(f"column {name!r}", values, missing, "fill it, or leave those rows out.")


def check_names(columns: Sequence[str], names: Sequence[str]) -> None:
    """Raise unless there are columns of these names."""
    for name in names:
        if name not in columns:
            near = get_close_matches(name, columns, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            message = f"there is no column {name!r}.{hint} Columns: {_listed(columns)}."
            raise ValueError(message)


def _guess(
    source: Source, label: str | None, scores: list[str], taken: list[str]
) -> tuple[str, list[str]]:
    """Find the one column of zeros and ones and the one other column within [0, 1], and say so."""
    known = {label, *scores, *taken}
    likely = [name for name in source.columns if name not in known]
    # Most columns show in their first rows that they are something else: only the others are read.
    likely = list(_within_unit(source.read(likely, _HEAD)))
    found = _within_unit(source.read(likely))
    binary = {name: None for name, column in found.items() if np.isin(column, (0, 1)).all()}
    inside = [name for name in found if name not in binary]
    if label is None:
        label = _only(list(binary), "--label", "holds only 0 and 1", source)
    if not scores:
        scores = [_only(inside, "--score", "holds only values between 0 and 1", source)]
    say(f"using label {label!r} and score {', '.join(map(repr, scores))}", err=True)
    return label, scores


def _within_unit(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the columns of numbers from 0 to 1, without their missing values.

    A missing value makes a column bad, not another one right: it is refused when it is read.
    """
    numeric = {
        name: column[column == column]  # noqa: PLR0124 -- NaN
        for name, column in columns.items()
        if column.dtype.kind in "biuf"
    }
    return {name: x for name, x in numeric.items() if ((x >= 0) & (x <= 1)).all()}


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _only(candidates: list[str], option: str, what: str, source: Source) -> str:
    if len(candidates) == 1:
        return candidates[0]
    found = f"{len(candidates)} columns do: {_listed(candidates)}" if candidates else "none does"
    message = (
        f"name the column with {option}. It is guessed only where exactly one {what}; {found}. "
        f"Columns: {_listed(source.columns)}."
    )
    raise ValueError(message)
