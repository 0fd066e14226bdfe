"""Several classes: a column of probabilities for each, found by a pattern or named one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caldist._util.invalid import show
from caldist.cli._columns import check_names, groups_of
from caldist.cli._dropped import Dropped
from caldist.cli._missing_values import Content, called, read_content
from caldist.cli._source import Source
from caldist.data import validate
from caldist.data.class_rows import ROW_SUM_TOLERANCE, ClassRows, check_order, divided_by_sums
from caldist.errors import InvalidInput

if TYPE_CHECKING:
    from caldist.cli._data import Data

_LISTED = 20  # classes that a note names


@dataclass(frozen=True)
class ClassModels:
    """Models of several classes by name, on the same rows.

    Attributes
    ----------
    rows
        The rows of each model, checked.
    head
        What was read, for JSON.
    notes
        What is said of it below a table.
    groups
        The names of sub-groups, and the number of each row's.
    dropped
        What was left out of all models; None if nobody asked for it.
    """

    rows: dict[str, ClassRows]
    head: dict[str, object]
    notes: list[str]
    groups: tuple[NDArray[np.object_], NDArray[np.int64]] | None = None
    dropped: Dropped | None = None

    def lines(self) -> Iterator[tuple[dict[str, object], ClassRows]]:
        """Give the rows of each model or of each sub-group of it, and what a line says of them."""
        for name, rows in self.rows.items():
            if self.groups is None:
                yield self._line({"score": name}, rows.n_rows), rows
                continue
            names, code = self.groups
            for number, group in enumerate(names):
                part = rows.take(np.flatnonzero(code == number))
                if part.weight is not None and not part.weight.any():
                    reason = f"is 0 in all rows of group {group}"
                    remedy = "Leave these rows out."
                    raise InvalidInput(argument="--weight", reason=reason, remedy=remedy)
                yield self._line({"score": name, "group": str(group)}, part.n_rows), part

    def _line(self, line: dict[str, object], rows: int) -> dict[str, object]:
        line["rows"] = rows
        if self.dropped is not None:
            group = line.get("group")
            found = self.dropped
            line["dropped"] = found.rows if group is None else found.groups.get(str(group), 0)
        return line


def speaks_of_classes(data: Data, columns: Sequence[str]) -> bool:
    """Whether --classes is given, or a --score is a pattern and no column's own name."""
    return data.classes is not None or any(
        "*" in score and score not in columns for score in data.scores
    )


def read_classes(data: Data, source: Source) -> ClassModels:
    """Read and check the columns of labels and of the probabilities of each class."""
    if data.clusters is not None:
        raise InvalidInput(
            argument="--clusters",
            reason="was given with several classes, whose intervals and tests take rows for "
            "independent",
            remedy="Keep one row of each cluster, or pass one class as --score with labels 0 "
            "and 1.",
        )
    if data.by_columns:
        raise InvalidInput(
            argument="--by",
            reason="was given with several classes, whose report has no sub-groups",
            remedy="caldist measure --by has their numbers; or make a file of each sub-group, and "
            "a report of each.",
        )
    if data.label is None:
        raise InvalidInput(
            argument="--label",
            reason="is missing, and with several classes it is not guessed",
            remedy=f"Name the column of classes. Columns: {', '.join(source.columns)}.",
        )
    others = [name for name in (data.weight, data.by) if name is not None]
    check_names(source.columns, [data.label, *others])
    found = _columns(data, source.columns, {data.label, *others})
    given = None if data.classes is None else _listed(data.classes)
    names = _class_names(found, given)
    as_names = [data.label, *([] if data.by is None else [data.by])]
    wanted = [data.label, *others, *(name for columns in found.values() for name in columns)]
    content = read_content(
        source,
        [name for name in wanted if name not in as_names],
        as_names,
        label=data.label,
        by=data.by,
        drop_missing=data.drop_missing,
    )
    label = content.names[data.label]
    classes = _as_labels(names, data.label, label)
    weight = groups = None
    with content.placing():
        number = _numbers(classes, data.label, label)
        if data.weight is not None:
            values = content.numbers[data.weight]
            weight = validate.weights(values, label.size, called(data.weight))
        if data.by is not None:
            groups = groups_of(data.by, content.names[data.by])
        rows = {
            name: ClassRows(
                number,
                _matrix(columns, content, normalize=data.normalize),
                list(classes),
                weight,
            )
            for name, columns in found.items()
        }
    notes = [] if content.dropped is None else [content.dropped.note()]
    if given is None:
        shown = ", ".join(names[:_LISTED])
        more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
        notes.append(f"Classes, from the names of the columns and in their order: {shown}{more}.")
    head: dict[str, object] = {
        "files": list(data.files),
        "label": data.label,
        "classes": list(classes),
        "columns": found,
        "weight": data.weight,
        "by": data.by,
    }
    if content.dropped is not None:
        head["dropped"] = content.dropped.to_dict()
    return ClassModels(rows, head, notes, groups, content.dropped)


def _listed(classes: str) -> list[str]:
    names = [name.strip() for name in classes.split(",")]
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if "" in names or twice is not None or len(names) < 2:
        wrong = "an empty name" if "" in names else f"{len(names)} name"
        wrong = wrong if twice is None or "" in names else f"{twice!r} twice"
        raise InvalidInput(
            argument="--classes",
            value=classes,
            reason=f"that has {wrong}",
            remedy="Name two or more different classes with commas between, in the order of the "
            "columns.",
        )
    return names


def _columns(data: Data, columns: Sequence[str], taken: set[str]) -> dict[str, list[str]]:
    """Return the columns of each model: of each pattern, or all that are named."""
    scores = list(dict.fromkeys(data.scores))
    patterns = [score for score in scores if "*" in score and score not in columns]
    if not scores:
        raise InvalidInput(
            argument="--score",
            reason="is missing",
            remedy="Name the columns of the classes: a pattern, as --score 'p_*', or --score for "
            f"each, in the order of --classes. Columns: {', '.join(columns)}.",
        )
    if not patterns:
        check_names(columns, scores)
        return {_common_start(scores).rstrip("_-. ") or "model": scores}
    if len(patterns) < len(scores):
        plain = next(score for score in scores if score not in patterns)
        raise InvalidInput(
            argument="--score",
            reason=f"is the pattern {patterns[0]!r} and the column {plain!r}",
            remedy="With several classes pass patterns only, one for each model, or a column for "
            "each class.",
        )
    free = [name for name in columns if name not in taken]
    return {pattern: _matching(pattern, free, columns) for pattern in patterns}


def _common_start(names: Sequence[str]) -> str:
    first, last = min(names), max(names)
    same = [a == b for a, b in zip(first, last, strict=False)]
    return first[: same.index(False) if False in same else len(same)]


def _matching(pattern: str, free: Sequence[str], columns: Sequence[str]) -> list[str]:
    if pattern.count("*") > 1:
        reason = f"a pattern has one star, for the name of a class, not {pattern.count('*')}"
        raise InvalidInput(argument="--score", value=pattern, reason=reason)
    before, after = pattern.split("*")
    found = [
        name
        for name in free
        if name.startswith(before) and name.endswith(after) and len(name) > len(pattern) - 1
    ]
    if len(found) < 2:
        which = f"1 column, {found[0]!r}" if found else "no column"
        raise InvalidInput(
            argument="--score",
            value=pattern,
            reason=f"the pattern matches {which}, and several classes need two or more",
            remedy=f"Columns: {', '.join(columns)}.",
        )
    return found


def _class_names(found: Mapping[str, list[str]], given: list[str] | None) -> list[str]:
    """Return the names of the classes, from --classes or else from the columns of a pattern."""
    inside: dict[str, list[str]] = {}
    for pattern, columns in found.items():
        if "*" in pattern:
            before, after = pattern.split("*")
            inside[pattern] = [name[len(before) : len(name) - len(after)] for name in columns]
    if given is None:
        (first, names), *others = inside.items()
        for pattern, other in others:
            if other != names:
                raise InvalidInput(
                    argument="--score",
                    value=pattern,
                    reason=f"its columns have the classes {', '.join(other)}, and those of "
                    f"{first!r} have {', '.join(names)}",
                    remedy="They must be the same, in the same order.",
                )
        return names
    for name, columns in found.items():
        if len(columns) != len(given):
            raise InvalidInput(
                argument="--classes",
                reason=f"names {len(given)} classes, and --score {name!r} stands for "
                f"{len(columns)} columns, {', '.join(columns)}",
                remedy="Name a class for each column, in their order.",
            )
        check_order(f"--score {name!r}", columns, given)
    return given


def _as_labels(names: list[str], label: str, values: NDArray[Any]) -> list[Any]:
    """Return the classes as the column of labels has them: text, or numbers."""
    if values.dtype.kind not in "biuf":
        return names
    found: list[Any] = []
    for name in names:
        try:
            number = float(name)
            found.append(int(number) if number == int(number) else number)
        except (ValueError, OverflowError):
            listed = ",".join(map(str, range(len(names))))
            raise InvalidInput(
                argument=called(label),
                reason=f"holds numbers, as {values[0]}, and the classes are {show(names)}",
                remedy="Name them as the labels do, in the order of the columns, for example "
                f"--classes {listed}.",
            ) from None
    return found


def _numbers(classes: list[Any], label: str, values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of each row's class."""
    number = {name: at for at, name in enumerate(classes)}
    if values.dtype.kind not in "biuf":
        values = values.astype(object)
    result = np.array([number.get(value, -1) for value in values.tolist()], dtype=np.int64)
    unknown = result < 0
    if unknown.any():
        reason = f"it is none of the classes, {show(classes)}"
        remedy = "Add the column of its probabilities, or leave those rows out."
        validate.fail(called(label), values, unknown, reason, remedy)
    return result


def _matrix(columns: Sequence[str], content: Content, *, normalize: bool) -> NDArray[np.float64]:
    parts = [validate.probabilities(content.numbers[name], called(name)) for name in columns]
    matrix = np.column_stack(parts)
    total = matrix.sum(axis=1)
    if normalize:
        try:
            return divided_by_sums(matrix, total, "the row")
        except InvalidInput as error:
            where = content.place(validate.first(total == 0))
            raise error.but(argument=where, index=None) from None
    off = np.abs(total - 1) > ROW_SUM_TOLERANCE
    if off.any():
        row = validate.first(off)
        raise InvalidInput(
            argument=f"{content.place(row)}: columns {columns[0]!r} to {columns[-1]!r}",
            reason=f"sum to {total[row]:.6g}, not to 1 (the first of {int(off.sum())} such rows)",
            remedy="Is a class missing? If they were rounded, --normalize divides them by their "
            "sums. For independent labels pass one column at a time.",
        )
    return matrix
