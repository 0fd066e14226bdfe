"""Dealing rows into folds, at random and without regard to labels or to the order of rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from caldist._util.cached import cached_property
from caldist.data.rows import Rows
from caldist.inference.sample import Units, units_of

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
Part = tuple[Units, float]

# A function from one fold is evaluated on the others. docs/theory/statistics.md says why that is
# valid for any number; ``python -m studies coverage`` measures the intervals with five.
FOLDS = 5
_ROWS_PER_UNIT = 32  # up to which rows are dealt one by one


@dataclass(frozen=True, eq=False)
class Folds:
    """Units, cut where their rows are in different folds.

    Attributes
    ----------
    units
        The rows, each unit's in one fold.
    fold
        The fold of each unit, a row for each dealing.
    """

    units: Units
    fold: Integers | NDArray[np.int8]

    @cached_property
    def masses(self) -> Vector:
        """The share of the rows in each fold, a row for each dealing."""
        return np.array([np.bincount(fold, self.units.mass, FOLDS) for fold in self.fold])

    def halves(self, folds: Collection[int]) -> tuple[Part | None, Part | None]:
        """Return the rows of some folds of the first dealing, and those of the others.

        Each with shares that add up to 1, and what they were; None where there are none.
        """
        if self._counts is None:
            inside = np.isin(self.fold[0], list(folds))
            return self._part(inside), self._part(~inside)
        inside = self._counts[list(folds)].sum(axis=0)
        return self._rows(inside), self._rows(self._counts.sum(axis=0) - inside)

    @cached_property
    def _counts(self) -> NDArray[np.int64] | None:
        """How many rows of each label and prediction a fold has; None unless rows are alike."""
        units = self.units
        if not units.are_alike:
            return None
        size = 2 * units.prediction.size
        key = self.fold[0] * np.int64(size) + units.label * units.prediction.size + units.place
        rows = np.bincount(key, units.count, FOLDS * size)
        return rows.astype(np.int64).reshape(FOLDS, size)

    def _rows(self, count: Integers) -> Part | None:
        """Return so many rows of each label and prediction."""
        some, total = np.flatnonzero(count), int(count.sum())
        if total == 0:
            return None
        label, place = np.divmod(some, self.units.prediction.size)
        chosen = replace(
            self.units,
            place=place,
            label=label,
            count=count[some],
            share=np.full(some.size, 1 / total),
            mass=count[some] / total,
        )
        return chosen, total * float(self.units.share[0])

    def _part(self, inside: NDArray[np.bool_]) -> Part | None:
        """Return some of the units."""
        units = self.units
        total = float(units.mass[inside].sum())
        if total <= 0:
            return None
        chosen = replace(
            units,
            place=units.place[inside],
            label=units.label[inside],
            count=units.count[inside],
            share=units.share[inside] / total,
            mass=units.mass[inside] / total,
            cluster=None if units.cluster is None else units.cluster[inside],
        )
        return chosen, total


def ordered_units(rows: Rows) -> Units:
    """Return the units in an order of their content, so that the order of rows does not matter.

    So are clusters: their numbers say nothing of which row came first.
    """
    units = units_of(rows)
    if rows.is_summary or (rows.weight is None and rows.cluster is None):
        return units  # made from the joint, which has no order of rows
    cluster = units.cluster
    keys: list[Vector | Integers] = [units.share, units.label, units.place]
    if cluster is not None:
        cluster = np.argsort(np.argsort(_signatures(units), kind="stable"), kind="stable")[cluster]
        keys.insert(0, cluster)
    return units.chosen(np.lexsort(keys), cluster)


def deal(units: Units, rng: np.random.Generator, times: int = 2) -> Folds:
    """Deal the rows, or whole clusters, into five folds, as often as asked for.

    Each goes to any fold with the same chance, and the labels have no part in it.
    """
    if units.cluster is not None:
        return Folds(units, rng.integers(0, FOLDS, (times, units.n_clusters))[:, units.cluster])
    index, count = np.arange(units.place.size), units.count
    if are_dealt_one_by_one(units):
        if units.n_rows > count.size:
            index = np.repeat(index, count)
        return Folds(_rows_of(units, index), deal_rows(rng, index.size, times))
    fold = np.empty((0, count.size), dtype=np.int64)
    for _ in range(times):
        # A unit of many rows parts into up to five.
        parts = rng.multinomial(count, np.full(FOLDS, 1 / FOLDS))
        some = np.flatnonzero(parts)
        at, new = np.divmod(some, FOLDS)
        index, count, fold = index[at], parts.ravel()[some], np.vstack((fold[:, at], new))
    return Folds(_cut(units, index, count), fold)


def are_dealt_one_by_one(units: Units) -> bool:
    """Whether independent rows are few enough for their units to be dealt row by row."""
    return units.n_rows <= _ROWS_PER_UNIT * units.count.size


def deal_rows(rng: np.random.Generator, size: int, times: int = 2) -> NDArray[np.int8]:
    """Return the fold of each of so many rows, in a byte as soon as a dealing is drawn."""
    return np.array([_one_dealing(rng, size) for _ in range(times)])


def deal_evenly(units: Units, rng: np.random.Generator) -> Folds:
    """Deal the rows, or whole clusters, into five folds that are alike in size and in labels."""
    if units.cluster is not None:
        has_one = np.zeros(units.n_clusters, dtype=np.int64)
        has_one[units.cluster[units.label == 1]] = 1
        return Folds(units, _even(has_one, rng)[units.cluster][None, :])
    count = units.count
    if (count == 1).all():
        return Folds(units, _even(units.label, rng)[None, :])
    if units.n_rows <= _ROWS_PER_UNIT * count.size:
        row = np.repeat(np.arange(count.size), count)
        fold = _even(units.label[row], rng)
        parts = np.bincount(row * FOLDS + fold, minlength=count.size * FOLDS)
        parts = parts.reshape(count.size, FOLDS)
    else:  # so many that chance makes them even
        parts = rng.multinomial(count, np.full(FOLDS, 1 / FOLDS))
    at, fold = np.nonzero(parts)
    return Folds(_cut(units, at, parts[at, fold]), fold[None, :])


def _even(kind: Integers, rng: np.random.Generator) -> Integers:
    """Return a fold for each, as many of a kind in one as in another."""
    fold = np.empty(kind.size, dtype=np.int64)
    first = 0
    for k in (0, 1):
        own = np.flatnonzero(kind == k)
        fold[rng.permutation(own)] = (first + np.arange(own.size)) % FOLDS
        first += own.size  # where the other kind left off, or small folds would be so twice
    return fold


def _one_dealing(rng: np.random.Generator, size: int) -> NDArray[np.int8]:
    return rng.integers(0, FOLDS, size).astype(np.int8)


def _rows_of(units: Units, index: Integers) -> Units:
    """Return single rows of the units ``index``; what all have in common is not written out."""
    if not units.are_alike:
        return _cut(units, index, np.ones_like(index))
    share = np.broadcast_to(units.share[0], index.shape)
    return replace(
        units,
        place=units.place[index],
        label=units.label[index],
        count=np.broadcast_to(np.int64(1), index.shape),
        share=share,
        mass=share,
    )


def _cut(units: Units, index: Integers, count: Integers) -> Units:
    """Return parts of units: ``count`` rows of the unit ``index``."""
    return replace(
        units,
        place=units.place[index],
        label=units.label[index],
        count=count,
        share=units.share[index],
        mass=units.mass[index] * (count / units.count[index]),
    )


def _signatures(units: Units) -> NDArray[np.uint64]:
    """Return a number for each cluster that depends on what is in it, not on the order of rows.

    Sums of whole numbers do not depend on their order; equal clusters may change places.
    """
    assert units.cluster is not None  # noqa: S101 -- only called with clusters
    mixed = np.zeros(units.place.size, dtype=np.uint64)
    for part in (units.prediction[units.place], units.share, units.label.astype(np.float64)):
        mixed = (mixed ^ (part + 0.0).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    signature = np.zeros(units.n_clusters, dtype=np.uint64)
    np.add.at(signature, units.cluster, mixed)
    return signature
