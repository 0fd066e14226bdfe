"""Replicates: rows resampled on their sorted support, many times, on all cores, reproducibly.

A :class:`Sample` holds rows as units on the sorted support, so that a replicate is a vector of new
residual masses, made in O(n) without a sort. A :class:`Resampler` runs replicates; a replicate is
any function of a random generator::

    sample = Sample.from_arrays(y_true, y_prob)
    norm = make_norm("smooth_ce", sample.prediction)
    resampler = Resampler.of(rng, n_resamples=999)
    values = resampler.run(lambda rng: norm(sample.flip(rng)), family=0, size=sample.n_rows)
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caldist import _validate
from caldist._kernels import replicates
from caldist.data.categories import group_codes
from caldist.data.joint import Joint

__all__ = [
    "Replicate",
    "Resampler",
    "Sample",
    "group_codes",
    "order_rank",
    "order_statistic",
    "random_bits",
]

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
# To a number, or to an array of one shape. Text, as numpy.random loads slowly.
Replicate: TypeAlias = "Callable[[np.random.Generator], Any]"

_MOST = 10**8  # replicates; their values alone fill gigabytes
_BLOCK = 16  # replicates to a random stream, since making a stream costs some 10 microseconds
_THREADED = 2_000  # rows from which a second thread repays the passing of the interpreter's lock
_ROWS_PER_UNIT = 32  # from which one binomial draw is cheaper than a random number for each row


@dataclass(frozen=True, eq=False)
class Sample:
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
    group
        The cluster of each unit, numbered from 0, or None for independent rows. With clusters each
        unit is one row.
    n_groups
        The number of clusters; 0 for independent rows.
    """

    prediction: Vector
    residual: Vector
    place: Integers
    label: Integers
    count: Integers
    share: Vector
    group: Integers | None = None
    n_groups: int = 0

    @classmethod
    def from_arrays(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: object = None,
    ) -> Sample:
        """Sort rows, once. Rows without weight are left out.

        With ``groups``, the cluster of each row, signs flip for whole clusters. Clusters of one row
        each, ``groups=np.arange(n)``, number the signs by the rows as given, so that samples of
        several models on the same rows can share them through :meth:`flip_groups`.
        """
        label, prediction, weight = _validate.binary_inputs(y_true, y_prob, sample_weight)
        code, n_groups = (None, 0) if groups is None else group_codes(groups, label.size)
        joint = Joint.from_arrays(label, prediction, sample_weight=weight)
        if weight is None and code is None:
            return cls.from_joint(joint)
        order = np.argsort(prediction, kind="stable")
        if weight is not None:
            order = order[weight[order] > 0]
        return cls(
            prediction=joint.prediction,
            residual=joint.residual(),
            place=np.searchsorted(joint.prediction, prediction[order]),
            label=label[order].astype(np.int64),
            count=np.ones(order.size, dtype=np.int64),
            share=(np.ones(order.size) if weight is None else weight[order]) / joint.total,
            group=None if code is None else code[order],
            n_groups=n_groups,
        )

    @classmethod
    def from_joint(cls, joint: Joint) -> Sample:
        """Take a joint distribution whose masses are row counts."""
        ones, zeros = np.flatnonzero(joint.mass1), np.flatnonzero(joint.mass0)
        count = np.concatenate((joint.mass1[ones], joint.mass0[zeros])).astype(np.int64)
        return cls(
            prediction=joint.prediction,
            residual=joint.residual(),
            place=np.concatenate((ones, zeros)),
            label=np.repeat(np.array([1, 0]), (ones.size, zeros.size)),
            count=count,
            share=np.full(count.size, 1 / joint.total),
        )

    # -- what follows from the units -----------------------------------------------------------

    @cached_property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.count.sum())

    @cached_property
    def error(self) -> Vector:
        """The residual y - v of a row of each unit."""
        return np.asarray(self.label - self.prediction[self.place])

    @cached_property
    def _signed_share(self) -> Vector:
        return self.share * self.error

    @cached_property
    def _drawn_units(self) -> tuple[Integers, Vector, Integers]:
        """The place, share and count of units that need not share a label."""
        if self.group is None and (self.share == self.share[0]).all():
            rows = np.bincount(self.place, weights=self.count, minlength=self.prediction.size)
            everywhere = np.arange(self.prediction.size)
            return everywhere, np.full(rows.size, self.share[0]), rows.astype(np.int64)
        return self.place, self.share, self.count

    def group_sums(self, values: Vector) -> Vector:
        """Return the sum over each cluster of one value for each unit."""
        assert self.group is not None  # noqa: S101 -- only called with clusters
        return np.asarray(np.bincount(self.group, values, self.n_groups), np.float64)

    def group_shares(self) -> Vector:
        """Return the share of each independent part: of each cluster, or of a row of each unit."""
        return self.share if self.group is None else self.group_sums(self.share)

    def standard_error(self, function: Vector) -> float:
        """Return the standard error of the mean of a function with one value for each unit.

        The mean is the weighted one, and rows of one cluster may depend on each other in any way.
        """
        mean = float((self.count * self.share) @ function)
        deviation = self.share * (function - mean)
        if self.group is None:
            return math.sqrt(float(self.count @ deviation**2))
        return math.sqrt(float((self.group_sums(deviation) ** 2).sum()))

    # -- replicates ----------------------------------------------------------------------------

    def flip(self, rng: np.random.Generator) -> Vector:
        """Return residual masses after a random sign for each row, or for each cluster of rows.

        They are distributed like the error of the residual masses, c* - c.
        """
        return self._flip(rng, self.place, self._signed_share, self.prediction.size)

    def flip_groups(self, bits: NDArray[np.uint8]) -> Vector:
        """Return residual masses after the given signs of the clusters, see :func:`random_bits`."""
        out = np.empty(self.prediction.size)
        replicates.flip_groups(bits, self.place, self._signed_share, self.group, out)
        return out

    def flip_masses(self, rng: np.random.Generator) -> Vector:
        """Return changes of the masses of label 0 on the support, then of label 1, by signs.

        The signs are centred: the changes add up to 0, like those of a probability distribution.
        """
        place, mass = self._masses
        change = self._flip(rng, place, self.share, mass.size)
        change -= change.sum() * mass
        return change

    @cached_property
    def _masses(self) -> tuple[Integers, Vector]:
        place = self.place + self.label * self.prediction.size
        mass = np.bincount(place, self.count * self.share, 2 * self.prediction.size)
        return place, mass.astype(np.float64)

    def _flip(self, rng: np.random.Generator, place: Integers, size: Vector, length: int) -> Vector:
        out = np.empty(length)
        if self.group is not None:
            bits = random_bits(rng, self.n_groups)
            replicates.flip_groups(bits, place, size, self.group, out)
        elif self.n_rows > _ROWS_PER_UNIT * self.count.size:
            signs = 2.0 * rng.binomial(self.count, 0.5) - self.count
            replicates.collect(signs, place, size, out)
        else:
            bits = random_bits(rng, self.n_rows)
            replicates.flip_rows(bits, place, size, self.count, out)
        return out

    def draw(self, rng: np.random.Generator) -> Vector:
        """Return the residual masses of new labels, each 1 with its prediction as probability.

        They are what perfectly calibrated, independent rows would show.
        """
        place, share, count = self._drawn_units
        out = np.empty(self.prediction.size)
        if self.n_rows > _ROWS_PER_UNIT * count.size:
            v = self.prediction[place]
            replicates.collect(rng.binomial(count, v) - count * v, place, share, out)
        else:
            uniform = rng.random(self.n_rows)
            replicates.draw_labels(uniform, place, share, count, self.prediction, out)
        return out


def random_bits(rng: np.random.Generator, size: int) -> NDArray[np.uint8]:
    """Return at least ``size`` random bits, bit i being ``bits[i >> 3] >> (i & 7) & 1``."""
    return np.frombuffer(rng.bytes((size + 7) // 8), dtype=np.uint8)


@dataclass(frozen=True)
class Resampler:
    """Runs replicates: the same seed gives the same values, whatever the number of threads.

    Attributes
    ----------
    entropy
        What all random streams derive from.
    n_resamples
        The number of replicates.
    progress
        Whether to show a progress bar, after two seconds.
    threads
        How many threads to use; by default as many as there are cores for this process.
    """

    entropy: int
    n_resamples: int
    progress: bool = False
    threads: int | None = None

    @classmethod
    def of(cls, rng: _validate.Rng, *, n_resamples: int, progress: bool = False) -> Resampler:
        """Check the options. A generator is advanced; the seed 5 and ``default_rng(5)`` agree."""
        n_resamples = _validate.check_count("n_resamples", n_resamples, maximum=_MOST)
        progress = _validate.check_flag("progress", progress)
        words = _validate.generator(rng).integers(2**32, size=4)
        entropy = sum(int(word) << (32 * at) for at, word in enumerate(words))
        return cls(entropy, n_resamples, progress)

    def run(self, replicate: Replicate, *, family: int, size: int) -> NDArray[np.float64]:
        """Return the values of all replicates, first axis the replicates.

        Each replicate gets a generator that is at a place determined by the seed, the ``family``
        and its number. Use a family of its own for each set of replicates that shall be
        independent of the others; ``size`` is the rows a replicate goes over.
        """
        threads = self.threads
        if threads is None:
            threads = _cores() if size >= _THREADED else 1
        stop = threading.Event()

        def block(first: int) -> list[Any]:
            seed = np.random.SeedSequence(self.entropy, spawn_key=(family, first // _BLOCK))
            rng = np.random.Generator(np.random.PCG64(seed))
            values = []
            try:
                for _ in range(first, min(first + _BLOCK, self.n_resamples)):
                    if stop.is_set():
                        break
                    values.append(replicate(rng))
            except BaseException:
                stop.set()  # the other threads need not go on
                raise
            return values

        starts = range(0, self.n_resamples, _BLOCK)
        with self._bar() as advance:
            if threads == 1:
                results = []
                for first in starts:
                    results.append(block(first))
                    advance(len(results[-1]))
            else:
                from concurrent.futures import (  # slow to import
                    ThreadPoolExecutor,
                    as_completed,
                )

                with ThreadPoolExecutor(threads) as pool:
                    futures = [pool.submit(block, first) for first in starts]
                    try:
                        for future in as_completed(futures):
                            advance(len(future.result()))
                    except BaseException:  # Ctrl-C comes here: stop within one replicate
                        stop.set()
                        pool.shutdown(wait=True, cancel_futures=True)
                        raise
                results = [future.result() for future in futures]
        return np.array([value for values in results for value in values], dtype=np.float64)

    @contextmanager
    def _bar(self) -> Iterator[Callable[[int], object]]:
        if not self.progress:
            yield lambda _done: None
            return
        from tqdm.auto import tqdm  # not needed otherwise

        with tqdm(
            total=self.n_resamples, desc="resampling", unit=" replicates", delay=2, file=sys.stderr
        ) as bar:
            yield bar.update


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def order_statistic(values: Vector, level: float) -> Any:
    """Return the ⌈(B + 1) level⌉-th smallest of B values, along the first axis.

    A value drawn like the others is at most this one with probability at least ``level``.
    """
    return np.sort(values, axis=0)[order_rank(values.shape[0], level) - 1]


def order_rank(count: int, level: float) -> int:
    """Return ⌈(B + 1) level⌉, or raise if that is more than B."""
    rank = math.ceil((count + 1) * level - 1e-9)  # 1000 * 0.975 is 975, and an ulp is not one more
    if rank > count:
        if level < 1:
            remedy = f"it must be at least {math.ceil(1 / (1 - level) - 1e-9) - 1}"
        else:
            remedy = "no number is enough: lower confidence_level"
        message = (
            f"n_resamples is {count}; at this confidence level {remedy}, or no replicate is large "
            "enough to be the limit."
        )
        raise ValueError(message)
    return rank
