"""Units: rows on their sorted support, from which replicates and standard errors are made.

A replicate is a vector of new residual masses on the support, made in O(n) without a sort.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from caldist._util.cached import cached_property
from caldist._util.invalid import InvalidInput
from caldist._util.types import Integers, Vector
from caldist.data import validate
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.inference.random_labels import RandomLabels, random_bytes
from caldist.kernels.loader import replicates

Draw = Callable[[np.random.Generator], Vector]  # residual masses of a replicate

FLIPS, LABELS = 0, 1  # families of replicates: random signs, and labels drawn from predictions

_ROWS_PER_UNIT = 32  # from which one binomial draw is cheaper than a random number for each row
_MANY_ROWS = 20_000  # from which a random byte for each is cheaper than a uniform number
_PART = 1 << 16  # units that are looked at together
FEW = 10  # rows, or clusters, of a label below which no recipe is dependable
_FEW_CLUSTERS = 100  # of a label, below which signs of clusters alone say too little
_ERRORS = 2.0  # standard errors, by which labels may depend more than they seem to
_FEW = 256  # random signs below which bits are counted, and from which sums are normal numbers


@dataclass(frozen=True, eq=False)
class Units:
    """Rows as units on the sorted support: the rows that share prediction, label and weight.

    Attributes
    ----------
    prediction
        The distinct predictions, increasing: the support.
    residual
        The residual masses on it, E[(y - v) 1(v = v_i)].
    place, label, count
        For each unit its index in the support, its label and its number of rows.
    share
        The weight of one row of the unit, divided by the total weight of all rows.
    mass
        The weight of all rows of the unit, divided by the total weight.
    cluster
        The cluster of each unit, numbered from 0, or None for independent rows. With clusters each
        unit is one row.
    n_clusters
        The number of clusters; 0 for independent rows.
    heaviest
        For rows with weights of which only sums are known, a bound on the largest share of one;
        ``count`` is then of effective rows. None where shares are those of rows.
    """

    prediction: Vector
    residual: Vector
    place: Integers
    label: Integers
    count: Integers
    share: Vector
    mass: Vector
    cluster: Integers | None = None
    n_clusters: int = 0
    heaviest: float | None = None

    @classmethod
    def of_joint(cls, joint: Joint) -> Units:
        """Take the rows behind a joint distribution.

        Of rows with weights w only Σw and Σw² are known at each prediction and label. They become
        as many rows of equal weight as have the same standard error, (Σw)²/Σw², rounded, with a
        weight that makes Σw² right. Weights whose squares are too small for numbers become one row.
        """
        ones, zeros = np.flatnonzero(joint.mass1), np.flatnonzero(joint.mass0)
        place = np.concatenate((ones, zeros))
        label = np.repeat(np.array([1, 0]), (ones.size, zeros.size))
        total = joint.total
        weight = np.concatenate((joint.mass1[ones], joint.mass0[zeros]))
        mass, heaviest = weight / total, None
        if joint.counts_rows:
            share = np.broadcast_to(np.float64(1 / total), weight.shape)
            count = weight.astype(np.int64)
            if total == weight.size:  # what all rows have in common is not written out
                count, mass = np.broadcast_to(np.int64(1), weight.shape), share
        else:
            square0, square1 = _known_squares(joint)
            square = np.concatenate((square1[ones], square0[zeros])) / total / total
            square = np.where(square > 0, square, mass**2)
            count = _effective_rows(mass, square)
            share = np.sqrt(square / count)
            heaviest = _heaviest(square, joint.n_rows)
        return cls(
            prediction=joint.prediction,
            residual=joint.residual(),
            place=place,
            label=label,
            count=count,
            share=share,
            mass=mass,
            heaviest=heaviest,
        )

    @cached_property
    def n_rows(self) -> int:
        """The number of rows, of equal weight where they come from a weighted summary."""
        return int(self.count.sum())

    @cached_property
    def error(self) -> Vector:
        """The residual y - v of a row of each unit."""
        return np.asarray(self.label - self.prediction[self.place])

    @cached_property
    def _signed_share(self) -> Vector:
        return self.share * self.error

    @cached_property
    def drawn_units(self) -> tuple[Integers, Vector, Integers]:
        """The place, share and count of units that need not share a label."""
        if self.heaviest is not None:  # what is drawn must not depend on the labels that were seen
            # No more rows than have the standard error, and all of the mass: labels that come out
            # as they were seen give the statistic that was seen.
            mass = self.at_predictions(self.mass)
            rows = whole_rows(_effective(mass, self.squares))
            return np.arange(mass.size), mass / rows, rows
        if self.cluster is None and (self.share == self.share[0]).all():
            rows = np.bincount(self.place, weights=self.count, minlength=self.prediction.size)
            everywhere = np.arange(self.prediction.size)
            return everywhere, np.full(rows.size, self.share[0]), rows.astype(np.int64)
        return self.place, self.share, self.count

    @cached_property
    def _random_labels(self) -> RandomLabels:
        place, _, count = self.drawn_units
        return RandomLabels(self.prediction[place], count)

    @cached_property
    def _counts(self) -> Integers:
        """The numbers of rows as kernels take them, one after the other."""
        return np.ascontiguousarray(self.count)

    def parts(self) -> Iterator[Units]:
        """Give the units some at a time, on the same support, where rows are independent."""
        if self.cluster is not None:
            yield self
            return
        for first in range(0, self.place.size, _PART):
            yield self.chosen(slice(first, first + _PART))

    def chosen(self, which: slice | Integers, cluster: Integers | None = None) -> Units:
        """Return some units, or all in another order, on the same support; clusters if given."""
        return replace(
            self,
            place=self.place[which],
            label=self.label[which],
            count=self.count[which],
            share=self.share[which],
            mass=self.mass[which],
            cluster=None if cluster is None else cluster[which],
        )

    def at_predictions(self, values: Vector) -> Vector:
        """Return the sum over each prediction of one value for each unit."""
        added = np.bincount(self.place, weights=values, minlength=self.prediction.size)
        return added.astype(np.float64, copy=False)

    @cached_property
    def squares(self) -> Vector:
        """The sum of the squared shares of the rows at each prediction."""
        return self.at_predictions(self.count * self.share**2)

    def cluster_sums(self, values: Vector) -> Vector:
        """Return the sum over each cluster of one value for each unit."""
        assert self.cluster is not None  # noqa: S101 -- only called with clusters
        return np.asarray(np.bincount(self.cluster, values, self.n_clusters), np.float64)

    def part_shares(self) -> Vector:
        """Return the share of each independent part: of each cluster, or of a row of each unit."""
        return self.share if self.cluster is None else self.cluster_sums(self.share)

    @property
    def largest_share(self) -> float:
        """The largest share of a row, or a bound on it; of clusters what comes at once of one."""
        if self.heaviest is not None:
            return self.heaviest
        largest = float(self.share.max())
        if self.cluster is None:
            return largest
        return max(largest, math.sqrt(self.dependence) * float(self.part_shares().max()))

    @property
    def are_alike(self) -> bool:
        """Whether rows are independent and of equal weight, for which more is proved."""
        equal = self.cluster is None and bool((self.share == self.share[0]).all())
        return equal and self.heaviest is None  # sums hide how unequal weights are

    def effective_size(self, label: int | None = None) -> tuple[int, float]:
        """Return how many rows or clusters have a label, or any, and what they are worth.

        With m the mass that each has of it, that is (Σm)²/Σm² equal ones, as for errors.
        """
        some = np.ones(self.label.size, np.bool_) if label is None else self.label == label
        if self.cluster is None:
            number = int(self.count[some].sum())
            if self.are_alike or number == 0:
                return number, number
            mass, square = self.mass[some], (self.count * self.share**2)[some]
        else:
            mass = self.cluster_sums(np.where(some, self.share, 0.0))
            number, square = int(np.count_nonzero(mass)), mass**2
        most, total = float(mass.max(initial=0.0)), float(mass.sum())
        if most == 0:
            return number, 0.0
        # Squares of weights that are tiny all over would vanish.
        return number, min(number, (total / most) ** 2 / float((square / most**2).sum()))

    @cached_property
    def draws_labels(self) -> bool:
        """Whether labels drawn from the predictions stand for the noise, beside random signs.

        Where few clusters have one of the labels, those that happened to come show too little of
        it: more of them may come at once elsewhere.
        """
        return (
            self.cluster is None or min(self.effective_size(k)[1] for k in (0, 1)) < _FEW_CLUSTERS
        )

    @cached_property
    def dependence(self) -> float:
        """How much labels of a cluster depend: 0 if not at all, 1 as much as they can.

        It is the correlation of residuals of two rows of a cluster, in units of its largest value,
        raised by what it may be missed by. Each cluster counts once, however large: what rarely
        happens is seen in small ones, which are many. Very few cannot show it, and may do anything.
        """
        if self.effective_size()[1] < FEW:
            return 1.0
        v = self.prediction[self.place]
        error = self.error - float((self.share * self.error).sum())
        deviation = np.sqrt(v * (1 - v))
        square, largest = (float((self.share * x**2).sum()) for x in (error, deviation))
        whole = self.cluster_sums(self.share)
        some = whole > 0

        def of_pairs(x: Vector) -> Vector:
            x = self.share / np.where(some, whole, 1.0)[self.cluster] * x
            return np.asarray(self.cluster_sums(x) ** 2 - self.cluster_sums(x**2))

        seen, most = of_pairs(error), of_pairs(deviation)
        pairs = float(most.sum())
        if pairs <= 0 or square == 0:  # no two rows that could depend
            return 0.0
        share = float(seen.sum()) / pairs
        missed = math.sqrt(float(((seen - share * most) ** 2).sum())) / pairs
        return min(1.0, (max(0.0, share) + _ERRORS * missed) * largest / square)

    def standard_error(self, function: Vector) -> float:
        """Return the standard error of the mean of a function with one value for each unit.

        The mean is the weighted one, and rows of one cluster may depend on each other in any way.
        """
        mean = float((self.mass * function).sum())
        deviation = function - mean
        deviation *= self.share
        if self.cluster is None:
            deviation **= 2
            deviation *= self.count
            return math.sqrt(float(deviation.sum()))
        return math.sqrt(float((self.cluster_sums(deviation) ** 2).sum()))

    def label_error(self, slope: Vector, rate: Vector) -> float:
        """Return that of a mean if labels had the frequency ``rate`` nearby.

        ``slope`` is what label 1 adds to the value of each unit, ``rate`` stands at predictions.
        Where labels are rare, the error that they happen to show is too small. Those of a cluster
        depend as :attr:`dependence` says, and are as frequent as predicted if that is more.
        """
        deviation = self.share * slope * self.label_deviation(rate)
        if self.cluster is not None:
            deviation = np.abs(deviation)
            alone = float((deviation**2).sum())
            together = float((self.cluster_sums(deviation) ** 2).sum())
            return math.sqrt(alone + self.dependence * max(0.0, together - alone))
        deviation **= 2
        deviation *= self.count
        return math.sqrt(float(deviation.sum()))

    def label_deviation(self, rate: Vector) -> Vector:
        """Return for each unit the standard deviation of a label of the frequency ``rate`` nearby.

        Of clusters it is that of a label as frequent as predicted if that is more.
        """
        variance, v = rate * (1 - rate), self.prediction
        if self.cluster is not None:
            variance = np.maximum(variance, v * (1 - v))
        return np.asarray(np.sqrt(variance)[self.place])

    @property
    def largest_error(self) -> float:
        """A number above the standard error of every mean of e·w(v) with |w| ≤ 1."""
        absolute = self.share * np.abs(self.error)
        if self.cluster is None:
            return math.sqrt(float((self.count * absolute**2).sum()))
        return math.sqrt(float((self.cluster_sums(absolute) ** 2).sum()))

    # -- replicates ----------------------------------------------------------------------------

    def flip(self, rng: np.random.Generator) -> Vector:
        """Return residual masses after a random sign for each row, or for each cluster of rows.

        They are distributed like the error of the residual masses, c* - c.
        """
        return self._flip(rng, self.place, self._signed_share, self.prediction.size)

    def flip_clusters(self, bits: NDArray[np.uint8]) -> Vector:
        """Return residual masses after the given signs of the clusters, see :func:`random_bits`."""
        out = np.empty(self.prediction.size)
        replicates.flip_clusters(bits, self.place, self._signed_share, self.cluster, out)
        return out

    def flip_masses(self, rng: np.random.Generator) -> Vector:
        """Return changes of the masses of label 0 on the support, then of label 1, by signs.

        The signs are centred: the changes add up to 0, like those of a probability distribution.
        """
        place, share, mass = self._masses
        change = self._flip(rng, place, share, mass.size)
        change -= change.sum() * mass
        return change

    @cached_property
    def _masses(self) -> tuple[Integers, Vector, Vector]:
        place = self.place + self.label * self.prediction.size
        mass = np.bincount(place, self.mass, 2 * self.prediction.size)
        return place, np.ascontiguousarray(self.share), mass.astype(np.float64)

    def _flip(self, rng: np.random.Generator, place: Integers, size: Vector, length: int) -> Vector:
        out = np.empty(length)
        if self.cluster is not None:
            bits = random_bits(rng, self.n_clusters)
            replicates.flip_clusters(bits, place, size, self.cluster, out)
        elif self.n_rows > _ROWS_PER_UNIT * self.count.size:
            replicates.collect(_sums_of_signs(rng, self.count), place, size, out)
        else:
            bits = random_bits(rng, self.n_rows)
            replicates.flip_rows(bits, place, size, self._counts, out)
        return out

    def draw(self, rng: np.random.Generator) -> Vector:
        """Return the residual masses of new labels, each 1 with its prediction as probability.

        They are what perfectly calibrated rows would show, independent ones or those of clusters
        that depend as much as they seem to.
        """
        if self.cluster is not None:
            return self._draw_clusters(rng)
        place, share, count = self.drawn_units
        out = np.empty(self.prediction.size)
        total = int(count.sum())
        if total > _ROWS_PER_UNIT * count.size:
            v = self.prediction[place]
            replicates.collect(rng.binomial(count, v) - count * v, place, share, out)
        elif total >= _MANY_ROWS:
            ones = self._random_labels.ones(rng, self._random_labels.start)
            replicates.collect(ones - count * self.prediction[place], place, share, out)
        else:
            uniform = rng.random(total)
            replicates.draw_labels(uniform, place, share, count, self.prediction, out)
        return out

    @cached_property
    def _draw_clusters(self) -> Draw:
        return self.drawing_in(np.arange(self.prediction.size), self.dependence)

    # -- replicates in cells -------------------------------------------------------------------

    def sum_over_cells(self, cell: Integers) -> Units:
        """Return the same rows with the mean predictions of cells, their residuals added up.

        ``cell`` numbers the cell of each prediction from 0 on, without gaps, and increases.
        """
        mass = self.at_predictions(self.mass)
        start = np.flatnonzero(np.diff(cell, prepend=-1))
        total, moment = (
            np.add.reduceat(values, start) for values in (mass, mass * self.prediction)
        )
        first, last = self.prediction[start], self.prediction[np.append(start[1:], cell.size) - 1]
        mean = np.divide(moment, total, out=first.copy(), where=total > 0)
        return replace(
            self,
            prediction=np.clip(mean, first, last),
            residual=np.add.reduceat(self.residual, start),
            place=cell[self.place],
        )

    def drawing_in(self, cell: Integers, dependence: float | Vector = 1.0) -> Draw:
        """Return what draws like :meth:`draw` and adds up in cells.

        Labels follow the rows' own predictions: they are exact whatever the cells. A row has label
        1 where a random number is below its prediction. Each takes that of its cluster with
        probability √dependence, so that the labels of two rows have as large a share of the
        covariance that is possible. The dependence is one number, or one for each cell. Flipped
        signs would not do in a narrow range near 0 or 1, where residuals are far from symmetric.
        """
        if self.cluster is not None:
            order, start = _in_cells(cell, self.place)
            share, cluster = self.share[order], self.cluster[order]
            v = self.prediction[self.place[order]]
            together = np.full(start.size - 1, np.sqrt(dependence))
            needed = share.size if together.min() < 1 else 0

            def draw_clusters(rng: np.random.Generator) -> Vector:
                out = np.empty(start.size - 1)
                uniform, own = rng.random(self.n_clusters), rng.random(needed)
                replicates.draw_clusters_in(uniform, own, together, share, v, cluster, start, out)
                return out

            return draw_clusters
        place, share, count = self.drawn_units
        order, start = _in_cells(cell, place)
        place, share, count = place[order], share[order], count[order]
        v = self.prediction[place]
        labels, weight = RandomLabels(v, count), np.repeat(share, count)
        start = labels.start[start]
        expected = np.bincount(cell[place], share * count * v, start.size - 1)

        def draw(rng: np.random.Generator) -> Vector:
            out = np.empty(expected.size)
            replicates.weigh_ones(labels.draw(rng), weight, start, out)
            out -= expected
            return out

        return draw

    def flipping_in(self, cell: Integers) -> Draw:
        """Return what flips signs of clusters like :meth:`flip` and adds up in cells."""
        assert self.cluster is not None  # noqa: S101 -- only called with clusters
        order, start = _in_cells(cell, self.place)
        size, cluster = self._signed_share[order], self.cluster[order]

        def flip(rng: np.random.Generator) -> Vector:
            out = np.empty(start.size - 1)
            bits = random_bits(rng, self.n_clusters)
            replicates.flip_clusters_in(bits, size, cluster, start, out)
            return out

        return flip


def _in_cells(cell: Integers, place: Integers) -> tuple[Integers, Integers]:
    """Return the units in the order of their cells, and where each cell begins in it, and ends."""
    inside = cell[place]
    order = np.argsort(inside, kind="stable")
    return order, np.searchsorted(inside[order], np.arange(int(cell[-1]) + 2))


def units_of(rows: Rows) -> Units:
    """Return the rows on their sorted support, made once; those without weight are left out."""
    if Units not in rows.cache:
        if rows.is_summary or (rows.weight is None and rows.cluster is None):
            made = Units.of_joint(rows.joint)
        else:
            made = row_units(rows, rows.cluster, rows.n_clusters)
        rows.cache.setdefault(Units, made)
    return cast("Units", rows.cache[Units])


def row_units(rows: Rows, cluster: Integers | None, n_clusters: int) -> Units:
    """Return a unit for each row that has weight, with clusters of its own."""
    order, joint = rows.order, rows.joint
    if rows.weight is not None:
        order = order[rows.weight[order] > 0]
    share = np.ones(order.size) if rows.weight is None else rows.weight[order]
    share = share / joint.total
    if cluster is not None:
        cluster = cluster[order]
        n_clusters = min(n_clusters, int(cluster.max()) + 1)  # the last may have no weight
    return Units(
        prediction=joint.prediction,
        residual=joint.residual(),
        place=validate.positions(joint.prediction, rows.prediction[order]),
        label=rows.label[order].astype(np.int64),
        count=np.ones(order.size, dtype=np.int64),
        share=share,
        mass=share,
        cluster=cluster,
        n_clusters=n_clusters,
    )


def one_after_the_other(units: Sequence[Units]) -> Units:
    """Return the units of many samples, on their supports one after the other.

    Nothing is known of the largest share of a row, nor is the whole a sample: each adds up to 1.
    """
    names = ["prediction", "residual", "place", "label", "count", "share", "mass"]
    if units[0].cluster is not None:
        names.append("cluster")
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in units]) for name in names
    }
    sizes = [part.prediction.size for part in units]
    first = np.cumsum(sizes) - sizes
    columns["place"] += np.repeat(first, [part.place.size for part in units])
    n_clusters = max(part.n_clusters for part in units)  # those of one sample may end earlier
    return Units(**columns, n_clusters=n_clusters)


def _known_squares(joint: Joint) -> tuple[Vector, Vector]:
    if joint.weight_square0 is None or joint.weight_square1 is None:
        raise InvalidInput(
            argument="joint",
            reason="has masses that do not say how many rows there are, nor of which weight, so "
            "that nothing is known of the population",
            remedy="Pass n_rows to Joint.from_masses (and weight_square0, weight_square1 where "
            "rows have weights, as they have if n_rows is not the sum of the masses), or pass the "
            "rows themselves.",
        )
    return joint.weight_square0, joint.weight_square1


def _heaviest(square: Vector, n_rows: int | None) -> float:
    """Bound the largest share of a row from sums of squared shares.

    It is at most the root of its own sum and, of n shares that add up to 1, at most one standard
    deviation times √(n − 1) above their mean (Samuelson).
    """
    bound = math.sqrt(float(square.max()))
    if n_rows is None:
        return bound
    variance = max(0.0, float(square.sum()) / n_rows - 1 / n_rows**2)
    return min(bound, 1 / n_rows + math.sqrt((n_rows - 1) * variance))


def whole_rows(rows: Vector) -> Integers:
    """Return no more rows than these, of which rounding shall not lose one, and at least one."""
    return np.maximum(1, np.floor(rows * (1 + 1e-9))).astype(np.int64)


def _effective_rows(mass: Vector, square: Vector) -> Integers:
    """Return (Σw)²/Σw², rounded."""
    return np.maximum(1, np.rint(_effective(mass, square))).astype(np.int64)


def _effective(mass: Vector, square: Vector) -> Vector:
    """Return (Σw)²/Σw²; 1 where the weights are too small for squares to be numbers."""
    return np.divide(mass**2, square, out=np.ones_like(mass), where=square > 0)


def _sums_of_signs(rng: np.random.Generator, count: Integers) -> Vector:
    """Return sums of so many random signs.

    Of few of them bits are counted. Those of many are normal, which costs a tenth: a sum of signs
    can be had from a normal number by moving it by less than a row or so (Tusnády), where its
    standard deviation is 16 rows. Flipped signs are like the noise of the rows in the limit only;
    labels that are drawn stay exact.
    """
    drawn = np.sqrt(count, dtype=np.float64)
    few = count < _FEW
    drawn[~few] *= rng.standard_normal(int(np.count_nonzero(~few)))
    if few.any():
        part = count[few]
        words = random_bytes(rng, 4 * int(((part + 31) // 32).sum()))
        signs = np.empty(part.size)
        replicates.sums_of_signs(words.view("<u4").astype(np.uint32, copy=False), part, signs)
        drawn[few] = signs
    return drawn


def random_bits(rng: np.random.Generator, size: int) -> NDArray[np.uint8]:
    """Return at least ``size`` random bits, bit i being ``bits[i >> 3] >> (i & 7) & 1``."""
    return np.frombuffer(rng.bytes((size + 7) // 8), dtype=np.uint8)
