"""FILE... and the options about its columns: the rows of models, or saved summaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caldist.cli._dropped import Dropped
from caldist.cli._progress import working
from caldist.cli._source import matches, on_disk
from caldist.cli._streams import say
from caldist.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from caldist.cli._classes import ClassModels
    from caldist.cli._source import Source
    from caldist.data.joint import Joint
    from caldist.data.rows import Rows

_LEAVE = "Leave it out."
_OF_TABLES = {
    "label": ("the labels are in a summary already", _LEAVE),
    "score": ("the predictions of one model are in a summary already", _LEAVE),
    "weight": ("the weights of the rows are in a summary already", _LEAVE),
    "clusters": ("a summary does not say which rows belong together", "Pass the table itself."),
    "by": (
        "a summary has no rows to divide",
        "Summarise each sub-group into a file of its own, and pass these files.",
    ),
    "classes": (
        "a summary has one column of predictions",
        "Of several classes pass the table, or use caldist.report([joint, …]) in Python.",
    ),
    "normalize": ("a summary has one column of predictions", _LEAVE),
    "positive": ("the labels of a summary are 0 and 1 already", _LEAVE),
    "drop-missing": ("it has no rows", "Leave them out when it is made."),
}
_HEAD = ("label", "weight", "clusters", "by")  # what JSON says of tables


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
    by
        The columns of a command that divides the rows by several, each by itself; or the joints of
        the sub-groups of each.
    dropped
        What was left out of all models; None if nobody asked for it.
    left_out
        What was left out of each summary when it was made.
    parts
        The rows of each sub-group, where they are summaries.
    doubts
        What looks wrong about the columns that were not read.
    """

    rows: dict[str, Rows]
    named_by: str
    head: dict[str, object]
    groups: tuple[NDArray[np.object_], NDArray[np.int64]] | None = None
    by: Mapping[str, Any] = field(default_factory=dict)
    dropped: Dropped | None = None
    left_out: Mapping[str, Dropped] = field(default_factory=dict)
    parts: Mapping[str, Rows] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """What is said below a table of what was left out."""
        own = [] if self.dropped is None else [self.dropped.note()]
        return own + [found.note(name) for name, found in self.left_out.items()]

    @property
    def are_summaries(self) -> bool:
        """Whether each model has rows of its own."""
        return self.named_by == "file"

    @property
    def are_summarized(self) -> bool:
        """Whether values come with bounds: from files of summaries, or from many rows."""
        return any(rows.is_summary for rows in self.rows.values())

    def lines(self) -> Iterator[tuple[dict[str, object], Rows]]:
        """Give the rows of each model or of each sub-group of it, and what a line says of them."""
        for name, rows in self.rows.items():
            for group, part in self._divided(rows):
                yield self._line(name, part, group), part

    def _divided(self, rows: Rows) -> Iterator[tuple[str | None, Rows]]:
        """Give the rows of each sub-group with its name, or all of them without one."""
        if self.groups is None:
            yield from self.parts.items() or [(None, rows)]
            return
        names, code = self.groups
        for group, part in zip(names, rows.split(code, len(names)), strict=True):
            if part.weight is not None and not part.weight.any():
                reason = f"is 0 in all rows of group {group}"
                remedy = "Leave these rows out."
                raise InvalidInput(argument="--weight", reason=reason, remedy=remedy)
            yield str(group), part

    def _line(self, name: str, rows: Rows, group: str | None = None) -> dict[str, object]:
        line: dict[str, object] = {self.named_by: name}
        if group is not None:
            line["group"] = group
        line["rows"] = rows.n_rows
        if self.dropped is not None:
            found = self.dropped
            line["dropped"] = found.rows if group is None else found.groups.get(group, 0)
        elif self.left_out:
            line["dropped"] = self.left_out[name].rows if name in self.left_out else 0
        return line


@dataclass(frozen=True)
class Data:
    """What a command was asked to read."""

    files: tuple[str, ...]
    label: str | None = None
    scores: tuple[str, ...] = ()
    weight: str | None = None
    clusters: str | None = None
    by: str | None = None
    by_columns: tuple[str, ...] = ()
    classes: str | None = None
    normalize: bool = False
    positive: str | None = None
    drop_missing: bool = False

    @property
    def may_have_classes(self) -> bool:
        """Whether several classes may be meant; the names of the columns say whether they are."""
        return self.classes is not None or any("*" in score for score in self.scores)

    def models(self) -> Models:
        """Read columns or summaries of labels 0 and 1, once, and check them."""
        found = self.read(several=False)
        assert isinstance(found, Models)  # noqa: S101 -- several classes are not asked for
        return found

    def read(self, *, several: bool = True, whole: bool = False) -> Models | ClassModels:
        """Read columns, of one model or of several classes, or summaries; once, and check them.

        What looks wrong about them is said on stderr. Unless the ``whole`` table is asked
        for, many rows are summarised, which is said too.
        """
        found = self._read(several=several, whole=whole)
        if isinstance(found, Models):
            from caldist.data.doubts import doubts_of

            for doubt in found.doubts:
                say(f"warning: {doubt}", err=True)
            for name, rows in found.rows.items():
                for doubt in doubts_of(rows):
                    say(f"warning: {name}: {doubt}", err=True)
        return found

    def _read(self, *, several: bool, whole: bool) -> Models | ClassModels:
        from caldist.cli._identifiers import doubts_of_columns
        from caldist.cli._source import open_source
        from caldist.data.rows import Rows

        with working("reading"), self.opened() as found:
            if isinstance(found, list):
                source = open_source(found)
                with _saying_notes(source):
                    models = (None if whole else self._summary(source, found)) or self._table(
                        source, several=several
                    )
                    if not isinstance(models, Models):
                        return models
                    return replace(models, doubts=tuple(doubts_of_columns(self, source)))
            empty = next((name for name, joint in found.items() if joint.total == 0), None)
            if empty is not None:
                reason = "is a summary of no rows"
                raise InvalidInput(argument=empty, reason=reason, remedy="Leave it out.")
            rows = {name: Rows.of(joint) for name, joint in found.items()}
            left_out = {
                name: Dropped(sum(joint.invalid.values()), None, joint.invalid)
                for name, joint in found.items()
                if joint.invalid
            }
            head: dict[str, object] = {"files": list(self.files)} | dict.fromkeys(_HEAD)
            if left_out:
                head["dropped"] = {name: part.to_dict() for name, part in left_out.items()}
            return Models(rows, "file", head, left_out=left_out)

    def _summary(self, source: Source, paths: Sequence[str]) -> Models | None:
        """Return the summary of many rows; None where rows are few, or are needed."""
        from caldist.cli._by_summary import summary_of_many
        from caldist.cli._classes import speaks_of_classes

        if speaks_of_classes(self, source.columns):
            return None
        return summary_of_many(self, source, paths)

    def check_columns(self, source: Source) -> None:
        """Raise unless there are the columns that are named."""
        from caldist.cli._columns import check_names

        named = (self.label, *self.scores, self.weight, self.clusters, self.by)
        check_names(source.columns, [name for name in named if name is not None])

    def table(self, source: Source) -> Models:
        """Read and check columns of labels 0 and 1."""
        with _saying_notes(source):
            found = self._table(source, several=False)
        assert isinstance(found, Models)  # noqa: S101 -- several classes are not asked for
        return found

    def _table(self, source: Source, *, several: bool) -> Models | ClassModels:
        from caldist.cli._classes import read_classes, speaks_of_classes
        from caldist.cli._columns import read_table

        if not (several and speaks_of_classes(self, source.columns)):
            if self.normalize:
                raise InvalidInput(
                    argument="--normalize",
                    reason="is for several classes",
                    remedy="Name their columns, as --score 'p_*', or leave it out.",
                )
            return read_table(self, source)
        if self.positive is not None:
            raise InvalidInput(
                argument="--positive",
                value=self.positive,
                reason="there are several classes",
                remedy="Leave it out, or name one column of predictions with --score.",
            )
        return read_classes(self, source)

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
                reason = "is named twice, so that its rows would count twice"
                raise InvalidInput(argument=name, reason=reason, remedy="Name it once.")
            found[name] = Joint.load(path)
        return found

    def refuse_columns(self) -> None:
        """Raise if an option is about columns, which summaries do not have."""
        given = (
            *(self.label, self.scores, self.weight, self.clusters, self.by or self.by_columns),
            *(self.classes, self.normalize, self.positive, self.drop_missing),
        )
        for (option, (why, remedy)), value in zip(_OF_TABLES.items(), given, strict=True):
            if value:
                reason = f"was given with a summary (.npz), but {why}"
                raise InvalidInput(argument=f"--{option}", reason=reason, remedy=remedy)


def needs_rows(measures: Sequence[str]) -> bool:
    """Whether a measure is named of which a summary of many rows tells too little."""
    from caldist.measures.registry import shown_in

    unknown = {str(measure) for measure in shown_in("evaluate") if measure.facts.rounding is None}
    return not (unknown | {"clinical"}).isdisjoint(measures)


@contextmanager
def _saying_notes(source: Source) -> Iterator[None]:
    """Say how files were read, also where something is wrong with them."""
    try:
        yield
    finally:
        for note in source.notes:
            say(note, err=True)


def are_summaries(paths: Sequence[str]) -> bool:
    """Whether files are saved summaries, all of them or none."""
    kinds = {Path(path).suffix.lower() == ".npz": path for path in paths}
    if len(kinds) > 1:
        raise InvalidInput(
            argument=kinds[True],
            reason=f"is a summary and {kinds[False]} is not",
            remedy="Pass summaries or tables, or make summaries of the tables first, with caldist "
            "summarize.",
        )
    return True in kinds
