"""``Rows``: what users pass, checked once and sorted once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist._util.cached import cached_property
from caldist._util.invalid import InvalidInput, InvalidType, show
from caldist._util.types import Integers, Vector
from caldist.data import validate
from caldist.data.categories import cluster_codes
from caldist.data.joint import Joint
from caldist.data.residuals import Residuals
from caldist.data.sorting import sort_residuals, sorting_order
from caldist.kernels.arrays import prefix_sums

Labels = NDArray[np.uint8]
BLOCK = 2**14  # rows whose intermediate arrays stay in the processor's cache


class Rows:
    """A sample: labels and predictions in the order given, or a joint that stands for them.

    Every public function begins with :meth:`of` and passes the result on, which :meth:`of` takes
    in place of the data too. Measures that are sums over rows go over their :meth:`blocks`, which
    needs no sort. What follows from the rows is made when it is first asked for, and once:
    :attr:`joint`, their distribution; :attr:`order`, how they are sorted.

    Attributes
    ----------
    label, prediction, weight
        The columns as clean arrays; weight is None where none was given. A joint has no columns.
    cluster, n_clusters
        The number of each row's cluster, and how many there are; None and 0 for independent rows.
    cache
        What statements about the rows have in common, put there by those who make them.
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
    ) -> None:
        self._label, self._prediction, self.weight = label, prediction, weight
        self.cluster, self.n_clusters = cluster, n_clusters
        self.cache: dict[Any, Any] = {}
        self.index: Integers | None = None  # of the rows this is a part of
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
            reason = "is a Joint, which stands for labels and predictions"
            raise InvalidType(argument="y_prob", reason=reason, remedy="Pass the Joint alone.")
        label, prediction, weight = validate.binary_inputs(
            y_true, y_prob, sample_weight, pos_label=pos_label
        )
        code, number = _codes(clusters, label.size)
        return cls(label, prediction, weight, code, number)

    # -- what there is -------------------------------------------------------------------------

    @property
    def label(self) -> Labels:
        """The labels, in the order of the rows."""
        if self._label is None:
            _refuse_joint()
        return self._label

    @property
    def prediction(self) -> Vector:
        """The predictions, in the order of the rows."""
        if self._prediction is None:
            _refuse_joint()
        return self._prediction

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

    def round_to_grid(self, bits: int) -> Joint:
        """Return the joint on a grid, without sorting rows."""
        from caldist.data import grid

        if self.is_summary:
            return self.joint.coarsen(bits)
        return Joint._from_grid(  # noqa: SLF001 -- of rows that were checked
            grid.from_rows(self.label, self.prediction, self.weight, bits)
        )

    # -- sums over rows ------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """How many rows there are; predictions of a joint where these have other weights."""
        if not self.is_summary:
            return self.label.size
        rows = self.joint.n_rows if self.joint.counts_rows else None
        return self.joint.prediction.size if rows is None else rows

    @cached_property
    def total(self) -> float:
        """The weight of all rows."""
        if self.is_summary:
            return self.joint.total
        return float(self.size if self.weight is None else self.weight.sum())

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[Vector, Vector, Vector | None]]:
        """Yield labels, predictions and weights of some rows at a time, in their order.

        Weights are in a unit of their own, see :attr:`total`; None where rows have none. A joint
        has each prediction once for each label. The array of labels may be written to.
        """
        columns = self.joint if self.is_summary else self
        for start in range(0, columns.prediction.size, size):
            block = slice(start, start + size)
            v = columns.prediction[block]
            if self.is_summary:
                yield np.zeros(v.size), v, self.joint.mass0[block]
                yield np.ones(v.size), v, self.joint.mass1[block]
            else:
                weight = None if self.weight is None else self.weight[block]
                yield self.label[block].astype(np.float64), v, weight

    def mean(self, of: Callable[[Vector, Vector], Vector]) -> float:
        """Return the weighted mean of a function of labels and predictions."""
        sums = []
        for label, prediction, weight in self.blocks():
            term = of(label, prediction)
            if weight is not None:
                term[weight == 0] = 0.0  # whatever it is, it does not count
                term = term * weight
            sums.append(float(term.sum()))
        found = math.fsum(sums) / self.total
        if math.isnan(found):
            validate.refuse_changed()
        return found

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
            )
            part.order, part.index = np.arange(rows.size), rows
            parts.append(part)
        return parts


_CANNOT = {  # why an argument does not go with a joint, and the remedy
    "clusters": (
        "which does not say which rows belong together",
        "Pass labels and predictions instead of the Joint.",
    ),
    "sample_weight": ("which has the weights of its rows in it already", "Leave it out."),
    "pos_label": (
        "whose labels are 0 and 1 already",
        "Leave it out here and pass it where the Joint is made.",
    ),
    "by": (
        "which has no rows to divide",
        "Make a joint of each sub-group, as caldist.summarize(…, by=…) does: {name: joint}.",
    ),
}


def _refuse_joint() -> NoReturn:
    raise InvalidType(
        argument="y_true",
        reason="is a Joint, which does not hold the single rows that this needs",
        remedy="Pass labels and predictions instead.",
    )


def refuse_beside_joint(**given: object) -> None:
    """Raise for an argument that a joint in the place of the data leaves no room for."""
    for name, value in given.items():
        if value is not None:
            usual = ("which stands for labels and predictions", "Pass the Joint alone.")
            why, remedy = _CANNOT.get(name, usual)
            reason = f"was given with a Joint, {why}"
            raise InvalidType(argument=name, reason=reason, remedy=remedy)


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
        raise InvalidType(argument="name", value=name, reason="it must be a string")
    several = y_true if isinstance(y_true, Mapping) else y_prob
    if isinstance(several, Mapping) and name is not None:
        argument = "y_true" if several is y_true else "y_prob"
        reason = f"{argument} is a dict, whose keys are the names"
        raise InvalidInput(argument="name", value=name, reason=reason, remedy="Leave name out.")
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
    called = validate.called(y_prob)
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
    label, clean = validate.named_inputs(y_true, predictions, pos_label=pos_label)
    weight = None if sample_weight is None else validate.weights(sample_weight, label.size)
    code, number = _codes(clusters, label.size)
    return [
        Rows(label, prediction, weight, code, number)
        for prediction, given in zip(clean, predictions.values(), strict=True)
    ]


def _summaries(joints: Mapping[Any, Any]) -> dict[str, Rows]:
    if not joints:
        remedy = "Pass at least one joint, {name: joint}."
        raise InvalidInput(argument="y_true", reason="is empty", remedy=remedy)
    for key, joint in joints.items():
        if not isinstance(key, str):
            reason = f"has the key {show(key)}, but a name must be a string"
            raise InvalidType(argument="y_true", reason=reason)
        if not isinstance(joint, Joint | Rows):
            raise InvalidType(
                argument=f"y_true[{key!r}]",
                reason=f"is of type {type(joint).__name__}, but a dict in place of the labels "
                "holds a caldist.Joint for each model",
            )
        if isinstance(joint, Joint) and joint.prediction.size == 0:
            raise InvalidInput(
                argument=f"y_true[{key!r}]",
                reason="has no valid rows",
                remedy="Leave this model out.",
            )
    return {key: Rows.of(cast("Joint | Rows", joint)) for key, joint in joints.items()}
