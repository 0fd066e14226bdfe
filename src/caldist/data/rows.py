"""``Rows``: what users pass, checked once and sorted once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist._kernels import sums
from caldist._util.cached import cached_property
from caldist._util.frames import library_of
from caldist._util.types import Integers, Vector
from caldist.data.categories import cluster_codes
from caldist.data.gridding import Layout, grid_of
from caldist.data.joint import Joint
from caldist.data.residuals import Residuals
from caldist.data.sorting import sort_residuals, sorting_order
from caldist.data.units import Units
from caldist.kernels._arrays import prefix_sums

Labels = NDArray[np.uint8]
Columns = tuple[int, NDArray[Any], NDArray[Any], Vector | None]

# How sums.Reader reads labels of a type: its number for them, and as what if not as they are.
# Integers that are not 0 or 1 are none of both in whichever type of the same size.
_KINDS: dict[np.dtype[Any], tuple[int, type | None]] = {
    np.dtype(np.float32): (3, None),
    np.dtype(np.float64): (4, None),
    np.dtype(np.uint8): (0, None),
    np.dtype(np.int32): (1, None),
    np.dtype(np.int64): (2, None),
    np.dtype(np.bool_): (0, np.uint8),
    np.dtype(np.int8): (0, np.uint8),
    np.dtype(np.uint32): (1, np.int32),
    np.dtype(np.uint64): (2, np.int64),
}
_PREDICTIONS = (np.dtype(np.float64), np.dtype(np.float32))


class Rows:
    """A sample: labels and predictions in the order given, or a joint that stands for them.

    Every public function begins with :meth:`of` and passes the result on, which :meth:`of` takes
    in place of the data too. Measures that are sums over rows begin with :meth:`as_given` instead
    and :meth:`add_up`, which needs neither a sort nor a copy. What follows from the rows is made
    when it is first asked for, and once: :attr:`joint`, their distribution; :attr:`order`, how they
    are sorted; :attr:`units`, what replicates are made from.

    Attributes
    ----------
    label, prediction, weight
        The columns as clean arrays; weight is None where none was given. A joint has no columns.
    cluster, n_clusters
        The number of each row's cluster, and how many there are; None and 0 for independent rows.
    library
        Which frame library the predictions came from, if any.
    kept
        What statements about the rows have in common, kept by those who make them.
    """

    def __init__(
        self,
        label: Labels | None,
        prediction: Vector | None,
        weight: Vector | None = None,
        cluster: Integers | None = None,
        n_clusters: int = 0,
        *,
        joint: Joint | None = None,
        library: str | None = None,
    ) -> None:
        self._label, self._prediction, self._weight = label, prediction, weight
        self._given: tuple[Any, Any, Any] | None = None  # what is not checked yet
        self._columns: Columns | None = None  # as a reader takes them
        self._scale: tuple[float, float] | None = None
        self.cluster, self.n_clusters = cluster, n_clusters
        self.library = library
        self.kept: dict[Any, Any] = {}
        self.index: Integers | None = None  # of the rows this is a part of
        self._cells: dict[int, Joint] = {}  # by bits
        self.is_summary = joint is not None
        if joint is not None:
            joint.normalized()  # raises for a joint without rows
            self.joint = joint

    @classmethod
    def of(
        cls,
        y_true: ArrayLike | Joint | Rows,
        y_prob: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        pos_label: object = None,
    ) -> Rows:
        """Check labels and predictions, or take a joint that stands in their place."""
        if isinstance(y_true, Joint | Rows):
            refuse_beside_joint(
                y_prob=y_prob, sample_weight=sample_weight, clusters=clusters, pos_label=pos_label
            )
            return y_true if isinstance(y_true, Rows) else cls(None, None, joint=y_true)
        if isinstance(y_prob, Joint):
            message = "y_prob is a Joint: it stands for labels and predictions, so pass it alone."
            raise TypeError(message)
        label, prediction, weight = _validate.binary_inputs(
            y_true, y_prob, sample_weight, pos_label=pos_label
        )
        code, number = _codes(clusters, label.size)
        return cls(label, prediction, weight, code, number, library=library_of(y_prob))

    @classmethod
    def as_given(
        cls,
        y_true: ArrayLike | Joint | Rows,
        y_prob: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: object = None,
    ) -> Rows:
        """Take rows as they come, to be checked when they are added up, or else asked for."""
        joined = isinstance(y_true, _DISTRIBUTIONS) or y_prob is None or isinstance(y_prob, Joint)
        if joined or pos_label is not None:
            return cls.of(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        rows = cls(None, None)
        if type(y_prob) is not np.ndarray:
            rows.library = library_of(y_prob)
        rows._given = (y_true, y_prob, sample_weight)
        return rows

    def check(self) -> None:
        """Check what was taken as given: raise for the first value that is not valid."""
        if self._given is not None:
            self._label, self._prediction, self._weight = _validate.binary_inputs(*self._given)
            self._given = self._columns = self._scale = None

    # -- what there is -------------------------------------------------------------------------

    @property
    def label(self) -> Labels:
        """The labels, in the order of the rows."""
        self.check()
        if self._label is None:
            raise TypeError(_NO_ROWS)
        return self._label

    @property
    def prediction(self) -> Vector:
        """The predictions, in the order of the rows."""
        self.check()
        if self._prediction is None:
            raise TypeError(_NO_ROWS)
        return self._prediction

    @property
    def weight(self) -> Vector | None:
        """The weights, in the order of the rows; None where none were given."""
        self.check()
        return self._weight

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, if that is known."""
        return self.joint.n_rows if self.is_summary else self.label.size

    @property
    def n_positives(self) -> int | None:
        """How many rows have label 1, if that is known."""
        if not self.is_summary:
            return int(self.label.sum())
        return round(float(self.joint.mass1.sum())) if self.joint.counts_rows else None

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest prediction of rows with weight."""
        found = self.joint.prediction if self.is_summary else self.prediction
        if self.weight is not None:
            found = found[self.weight > 0]
        return float(found.min()), float(found.max())

    @property
    def weighted(self) -> bool:
        """Whether the rows have weights."""
        return not self.joint.counts_rows if self.is_summary else self.weight is not None

    @cached_property
    def order(self) -> Integers:
        """The numbers of the rows by increasing prediction."""
        return sorting_order(self.prediction)

    @cached_property
    def joint(self) -> Joint:
        """The distribution of the rows."""
        # Without weights or clusters values can be sorted, which takes half as long as an order.
        known = "order" in self.__dict__ or self.weight is not None or self.cluster is not None
        order = self.order if known else None
        return Joint._of_rows(self.label, self.prediction, self.weight, order)  # noqa: SLF001

    @cached_property
    def residuals(self) -> Residuals:
        """The distinct predictions of the rows, and the residual mass of each.

        That is a third less than the joint has, and needs no copy of the rows.
        """
        sorted_already = self.is_summary or "joint" in vars(self) or self.cluster is not None
        if sorted_already or self.weight is not None:
            return Residuals.of(self.joint)
        return sort_residuals(self.label, self.prediction)

    @cached_property
    def units(self) -> Units:
        """The rows on their sorted support; those without weight are left out."""
        if self.is_summary or (self.weight is None and self.cluster is None):
            return Units.of_joint(self.joint)
        return self.row_units(self.cluster, self.n_clusters)

    def row_units(self, cluster: Integers | None, n_clusters: int) -> Units:
        """Return a unit for each row that has weight, with clusters of its own."""
        order, joint = self.order, self.joint
        if self.weight is not None:
            order = order[self.weight[order] > 0]
        share = np.ones(order.size) if self.weight is None else self.weight[order]
        share = share / joint.total
        if cluster is not None:
            cluster = cluster[order]
            n_clusters = min(n_clusters, int(cluster.max()) + 1)  # the last may have no weight
        return Units(
            prediction=joint.prediction,
            residual=joint.residual(),
            place=_validate.positions(joint.prediction, self.prediction[order]),
            label=self.label[order].astype(np.int64),
            count=np.ones(order.size, dtype=np.int64),
            share=share,
            mass=share,
            cluster=cluster,
            n_clusters=n_clusters,
        )

    def on_grid(self, bits: int) -> Joint:
        """Return the joint on a grid, without sorting rows."""
        from caldist.data import grid

        if self.is_summary:
            return self.joint.coarsen(bits)
        return Joint._from_grid(  # noqa: SLF001 -- of rows that were checked
            grid.from_rows(self.label, self.prediction, self.weight, bits)
        )

    def cells(self, bits: int, most: int) -> Joint | None:
        """Return the rows on a grid in one pass, which neither sorts nor copies; they are kept.

        Weights are scaled, so that only shares of the total mass mean something. None where the
        grid would have room for more cells than ``most``; grids that are there already show which
        cells have no rows.
        """
        if bits not in self._cells:
            coarser = max((known for known in self._cells if known < bits), default=None)
            layout = Layout.of(bits, None if coarser is None else self._cells[coarser].grid)
            if layout.size > most:
                return None
            self._cells[bits] = self._in_cells(layout)
        return self._cells[bits]

    def _in_cells(self, layout: Layout) -> Joint:
        kind, label, prediction, weight = self._read()
        scale, _ = self._scaling()

        def reader(first: int, last: int) -> Any:
            part = None if weight is None else weight[first:last]
            return sums.Reader(kind, label[first:last], prediction[first:last], part, scale, False)

        grid = grid_of(reader, prediction.size, layout, weighted=weight is not None)
        if grid is None:
            self._refuse()
        return Joint._from_grid(grid)  # noqa: SLF001 -- of rows that were checked

    # -- sums over rows ------------------------------------------------------------------------

    def add_up(
        self, kernel: Callable[..., bool], *options: object, room: Sequence[int]
    ) -> list[Vector]:
        """Return what a kernel of ``kernels/sums.py`` adds up, to be divided by :attr:`total`.

        The rows are read as they came, in any order, and checked on the way. ``room`` says how many
        numbers there are of each kind.
        """
        found = [np.zeros(size) for size in room]
        for reader in self._readers():
            if not kernel(reader, *options, *found):
                self._refuse()
        return found

    def _refuse(self) -> NoReturn:
        """Raise for the first value that is not valid, or, where all are valid now, for change."""
        self.check()
        _validate.refuse_changed()

    @property
    def size(self) -> int:
        """How many rows there are; predictions of a joint where these have other weights."""
        if not self.is_summary:
            return self._read()[2].size
        rows = self.joint.n_rows if self.joint.counts_rows else None
        return self.joint.prediction.size if rows is None else rows

    @property
    def total(self) -> float:
        """The weight of all rows, scaled like those that are added up."""
        return self._scaling()[1]

    def _scaling(self) -> tuple[float, float]:
        """Return a power of two that brings the weights to a sum of about 1, and that sum."""
        if self._scale is None:
            self._scale = self._find_scale()
        return self._scale

    def _find_scale(self) -> tuple[float, float]:
        if self.is_summary:
            whole = self.joint.total
            if self.joint.counts_rows:
                return 1.0, whole
        else:
            _, _, prediction, weight = self._read()
            if weight is None:
                return 1.0, float(prediction.size)
            with np.errstate(over="ignore", invalid="ignore"):
                whole = float(weight.sum())
            if not 0 < whole < math.inf:
                self.check()  # raises
        scale = math.ldexp(1.0, min(1000, -math.frexp(whole)[1]))
        return scale, whole * scale

    def _readers(self) -> list[Any]:
        scale, _ = self._scaling()
        if not self.is_summary:
            return [sums.Reader(*self._read(), scale, False)]
        joint = self.joint
        readers = []
        for value, mass in enumerate((joint.mass0, joint.mass1)):
            label = np.broadcast_to(np.uint8(value), mass.shape)
            readers.append(sums.Reader(0, label, joint.prediction, mass, scale, joint.counts_rows))
        return readers

    def _read(self) -> Columns:
        """Return the columns as a reader takes them: as given where it can, else checked."""
        if self._columns is None:
            columns = None
            if self._given is not None:
                y_true, y_prob, weight = self._given
                try:
                    if not (
                        type(y_true) is type(y_prob) is np.ndarray
                        and y_true.ndim == 1
                        and y_true.shape == y_prob.shape
                        and y_true.size > 0
                        and weight is None
                    ):  # nothing to convert, nothing to say
                        y_true, y_prob, weight = _validate.columns(y_true, y_prob, weight)
                    columns = _readable(y_true, y_prob, weight)
                except (TypeError, ValueError):
                    self.check()  # raises what comes first in the order of the arguments
                    raise
            self._columns = columns or (0, self.label, self.prediction, self.weight)
        return self._columns

    def split(self, code: Integers, count: int) -> list[Rows]:
        """Return the rows of each group, ``code`` being the number of each row's; sorted already.

        Clusters are numbered anew in each group, in the order of its rows as they were given.
        """
        small = code.astype(np.uint16) if count <= 1 << 16 else code  # which NumPy deals out
        place = self.order[np.argsort(small[self.order], kind="stable")]
        start = prefix_sums(np.bincount(code, minlength=count))
        parts = []
        for first, last in pairwise(start.tolist()):
            rows = place[first:last]
            cluster, n_clusters = None, 0
            if self.cluster is not None:
                back = np.argsort(rows, kind="stable")
                numbers, n_clusters = cluster_codes(self.cluster[rows[back]], rows.size)
                cluster = np.empty_like(numbers)
                cluster[back] = numbers
            weight = None if self.weight is None else self.weight[rows]
            part = Rows(
                self.label[rows],
                self.prediction[rows],
                weight,
                cluster,
                n_clusters,
                library=self.library,
            )
            part.order, part.index = np.arange(rows.size), rows
            parts.append(part)
        return parts


_DISTRIBUTIONS = (Joint, Rows)


def _is_regular(values: NDArray[Any]) -> bool:
    """Return whether each value lies where numbers may, and a multiple of their size apart."""
    return values.flags.aligned and values.strides[0] % values.itemsize == 0


def _readable(
    label: NDArray[Any], prediction: NDArray[Any], weight: Vector | None
) -> Columns | None:
    """Return columns with the number of the type of labels, or None if they cannot be read."""
    kind, as_type = _KINDS.get(label.dtype, (-1, None))
    if (
        kind < 0
        or prediction.dtype not in _PREDICTIONS
        or not _is_regular(label)
        or not _is_regular(prediction)
        or not (weight is None or _is_regular(weight))
    ):
        return None
    return kind, label if as_type is None else label.view(as_type), prediction, weight


_NO_ROWS = (
    "a Joint says nothing of single rows, which this needs: pass labels and predictions instead."
)
_CANNOT = {
    "clusters": (
        "clusters was given with a Joint, which does not say which rows belong together: pass "
        "labels and predictions instead of the Joint."
    ),
    "sample_weight": (
        "sample_weight was given with a Joint, which has the weights of its rows in it already: "
        "leave it out."
    ),
    "pos_label": (
        "pos_label was given with a Joint, whose labels are 0 and 1 already: leave it out here and "
        "pass it where the Joint is made."
    ),
    "by": (
        "by was given with a Joint, which has no rows to divide: make a joint of each sub-group, "
        "for example with caldist.summarize(…, by=…), and pass them as {name: joint}."
    ),
}


def refuse_beside_joint(**given: object) -> None:
    """Raise for an argument that a joint in the place of the data leaves no room for."""
    for name, value in given.items():
        if value is not None:
            message = _CANNOT.get(
                name, f"{name} was given beside a Joint, which stands for both: pass it alone."
            )
            raise TypeError(message)


def _codes(clusters: ArrayLike | None, size: int) -> tuple[Integers | None, int]:
    return (None, 0) if clusters is None else cluster_codes(clusters, size)


def models_of(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    pos_label: object = None,
    name: str | None = None,
    default: str = "model",
) -> dict[str, Rows]:
    """Return the rows of each model, by name.

    Models are labels with one array of predictions or several under their names, on the same rows;
    or a joint, or several under their names, each of rows of its own. ``name`` is that of a single
    model.
    """
    if name is not None and not isinstance(name, str):
        message = f"name is {_validate.show(name)}; it must be a text."
        raise TypeError(message)
    several = y_true if isinstance(y_true, Mapping) else y_prob
    if isinstance(several, Mapping) and name is not None:
        argument = "y_true" if several is y_true else "y_prob"
        message = (
            f"name is {_validate.show(name)}, but {argument} is a dict, whose keys are the names."
        )
        raise ValueError(message)
    if isinstance(y_true, Mapping):
        refuse_beside_joint(
            y_prob=y_prob, sample_weight=sample_weight, clusters=clusters, pos_label=pos_label
        )
        return _summaries(y_true)
    if not isinstance(y_prob, Mapping):
        rows = Rows.of(
            y_true, y_prob, sample_weight=sample_weight, clusters=clusters, pos_label=pos_label
        )
        return {default if name is None else name: rows}
    called = _validate.called(y_prob)
    models = paired_rows(
        y_true, called, sample_weight=sample_weight, clusters=clusters, pos_label=pos_label
    )
    return dict(zip(y_prob, models, strict=True))


def paired_rows(
    y_true: ArrayLike,
    predictions: Mapping[str, Any],
    *,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    pos_label: object = None,
) -> list[Rows]:
    """Return the rows of models on the same labels, from predictions by what messages call them."""
    label, clean = _validate.named_inputs(y_true, predictions, pos_label=pos_label)
    weight = None if sample_weight is None else _validate.weights(sample_weight, label.size)
    code, number = _codes(clusters, label.size)
    return [
        Rows(label, prediction, weight, code, number, library=library_of(given))
        for prediction, given in zip(clean, predictions.values(), strict=True)
    ]


def _summaries(joints: Mapping[Any, Any]) -> dict[str, Rows]:
    if not joints:
        message = "y_true is empty: at least one joint is needed, {name: joint}."
        raise ValueError(message)
    for key, joint in joints.items():
        if not isinstance(key, str):
            message = f"y_true has the key {_validate.show(key)}; a name must be a text."
            raise TypeError(message)
        if not isinstance(joint, Joint | Rows):
            message = (
                f"y_true[{key!r}] is of type {type(joint).__name__}; a dict in place of the labels "
                "holds a caldist.Joint for each model."
            )
            raise TypeError(message)
        if isinstance(joint, Joint) and joint.prediction.size == 0:
            message = f"y_true[{key!r}] has no valid rows: leave this model out."
            raise ValueError(message)
    return {key: Rows.of(cast("Joint | Rows", joint)) for key, joint in joints.items()}
