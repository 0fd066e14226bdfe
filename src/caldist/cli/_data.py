"""FILE... and the options about its columns: the rows of models, or saved summaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from caldist.cli._source import matches, on_disk
from caldist.cli._working import working

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from caldist.cli._classes import ClassModels
    from caldist.data.joint import Joint
    from caldist.data.rows import Rows

_OF_TABLES = {
    "label": "the labels are in a summary already: leave it out.",
    "score": "the predictions of one model are in a summary already: leave it out.",
    "weight": "the weights of the rows are in a summary already: leave it out.",
    "clusters": "a summary does not say which rows belong together: pass the table itself.",
    "by": (
        "a summary has no rows to divide: summarise each sub-group into a file of its own, and "
        "pass these files."
    ),
    "classes": (
        "a summary has one column of predictions. Of several classes pass the table, or use "
        "caldist.report([joint, …]) in Python."
    ),
}


@dataclass(frozen=True)
class Models:
    """Models by name: columns of predictions on the same rows, or summaries of different rows.

    Attributes
    ----------
    rows
        The rows of each model, checked, or the summary that stands for them.
    named_by
        What the names are: "score" or "file".
    head
        What was read, for JSON.
    groups
        The names of sub-groups, and the number of each row's.
    """

    rows: dict[str, Rows]
    named_by: str
    head: dict[str, object]
    groups: tuple[NDArray[np.object_], NDArray[np.int64]] | None = None

    @property
    def are_summaries(self) -> bool:
        """Whether each model has rows of its own."""
        return self.named_by == "file"

    def lines(self) -> Iterator[tuple[dict[str, object], Rows]]:
        """Give the rows of each model or of each sub-group of it, and what a line says of them."""
        for name, rows in self.rows.items():
            if self.groups is None:
                yield {self.named_by: name, "rows": rows.n_rows}, rows
                continue
            names, code = self.groups
            for group, part in zip(names, rows.split(code, len(names)), strict=True):
                if part.weight is not None and not part.weight.any():
                    message = f"--weight is 0 in all rows of group {group}: leave these rows out."
                    raise ValueError(message)
                yield {self.named_by: name, "group": str(group), "rows": part.n_rows}, part


@dataclass(frozen=True)
class Data:
    """What a command was asked to read."""

    files: tuple[str, ...]
    label: str | None = None
    scores: tuple[str, ...] = ()
    weight: str | None = None
    clusters: str | None = None
    by: str | None = None
    classes: str | None = None

    def models(self) -> Models:
        """Read columns or summaries of labels 0 and 1, once, and check them."""
        found = self.read(several=False)
        assert isinstance(found, Models)  # noqa: S101 -- several classes are not asked for
        return found

    def read(self, *, several: bool = True) -> Models | ClassModels:
        """Read columns, of one model or of several classes, or summaries; once, and check them."""
        from caldist.cli._classes import read_classes, speaks_of_classes
        from caldist.cli._columns import read_table
        from caldist.cli._source import open_source
        from caldist.data.rows import Rows

        with working("reading"), self.opened() as found:
            if isinstance(found, list):
                source = open_source(found)
                if several and speaks_of_classes(self, source.columns):
                    return read_classes(self, source)
                return read_table(self, source)
            empty = next((name for name, joint in found.items() if joint.total == 0), None)
            if empty is not None:
                message = f"{empty} is a summary of no rows: leave it out."
                raise ValueError(message)
            rows = {name: Rows.of(joint) for name, joint in found.items()}
            return Models(rows, "file", {"files": list(self.files)})

    @contextmanager
    def opened(self) -> Iterator[dict[str, Joint] | list[str]]:
        """Give summaries by the names of their files, or else the paths of tables."""
        with on_disk(self.files) as paths:
            if are_summaries(paths):
                self.refuse_columns()
                yield self._loaded(paths)
            else:
                yield paths

    def _loaded(self, paths: Sequence[str]) -> dict[str, Joint]:
        from caldist.data.joint import Joint

        found: dict[str, Joint] = {}
        for path in (match for name in paths for match in matches(name)):
            name = "-" if "-" in self.files else str(path)
            if name in found:
                message = f"{name} is named twice: its rows would count twice."
                raise ValueError(message)
            found[name] = Joint.load(path)
        return found

    def refuse_columns(self) -> None:
        """Raise if an option speaks of columns, which summaries have not."""
        given = (self.label, self.scores, self.weight, self.clusters, self.by, self.classes)
        for (option, reason), value in zip(_OF_TABLES.items(), given, strict=True):
            if value:
                message = f"--{option} was given with a summary (.npz), but {reason}"
                raise ValueError(message)


def are_summaries(paths: Sequence[str]) -> bool:
    """Whether files are saved summaries, all of them or none."""
    kinds = {Path(path).suffix.lower() == ".npz": path for path in paths}
    if len(kinds) > 1:
        message = (
            f"{kinds[True]} is a summary and {kinds[False]} is not: pass summaries or tables, or "
            "make summaries of the tables first, with caldist summarize."
        )
        raise ValueError(message)
    return True in kinds
