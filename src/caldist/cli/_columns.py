"""Which columns hold the labels and the predictions, and their values, checked."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from caldist import _validate
from caldist.cli._data import Data, Models
from caldist.cli._source import Source
from caldist.data.categories import cluster_codes, refuse_measurements
from caldist.data.rows import Rows


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


def groups_of(name: str, values: NDArray[Any]) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Return the names of sub-groups, in order, and the number of each row's."""
    refuse_measurements(values, f"column {name!r}")
    if values.dtype.kind == "O":  # as others have an order of their own
        values = values.astype(str)
    names, code = np.unique(values, return_inverse=True)
    return names.astype(str), code.astype(np.int64)


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
            message = f"there is no column {name!r}.{hint} Columns: {', '.join(columns)}."
            raise ValueError(message)


def _guess(
    source: Source, label: str | None, scores: list[str], taken: list[str]
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
