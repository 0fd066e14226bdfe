"""Replicates: many random repetitions, on all cores, reproducibly.

A replicate is any function of a random generator::

    units = units_of(Rows.of(y_true, y_prob))
    norm = smooth_ce.norm(units.prediction)
    resampler = Resampler.of(rng, n_resamples=999)
    values = resampler.run(lambda rng: norm(units.flip(rng)), family=0, size=units.n_rows)
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caldist._util.threads import thread_count
from caldist._util.types import Vector
from caldist.data import validate
from caldist.errors import InvalidInput

# To a number, or to an array of one shape. Text, as numpy.random loads slowly.
Replicate: TypeAlias = "Callable[[np.random.Generator], Any]"

_MOST = 10**8  # replicates; their values alone fill gigabytes
_BLOCK = 16  # replicates to a random stream, since making a stream costs some 10 microseconds
_THREADED = 2_000  # rows from which a second thread repays the passing of the interpreter's lock


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
        How many threads to use; by default as many as :func:`thread_count` allows.
    """

    entropy: int
    n_resamples: int
    progress: bool = False
    threads: int | None = None

    @classmethod
    def of(cls, rng: validate.Rng, *, n_resamples: int, progress: bool = False) -> Resampler:
        """Check the options. A generator is advanced; the seed 5 and ``default_rng(5)`` agree."""
        n_resamples = validate.check_count("n_resamples", n_resamples, maximum=_MOST)
        progress = validate.check_flag("progress", progress)
        words = validate.generator(rng).integers(2**32, size=4)
        entropy = sum(int(word) << (32 * at) for at, word in enumerate(words))
        return cls(entropy, n_resamples, progress)

    def stream(self, family: int) -> np.random.Generator:
        """Return a random stream of its own, for what is drawn once."""
        seed = np.random.SeedSequence(self.entropy, spawn_key=(family,))
        return np.random.Generator(np.random.PCG64(seed))

    def run(self, replicate: Replicate, *, family: int, size: int) -> NDArray[np.float64]:
        """Return the values of all replicates, first axis the replicates.

        Each replicate gets a generator that is at a place determined by the seed, the ``family``
        and its number. Use a family of its own for each set of replicates that shall be
        independent of the others; ``size`` is the rows a replicate goes over.
        """
        threads = self.threads
        if threads is None:
            threads = thread_count() if size >= _THREADED else 1
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


def order_statistic(values: Vector, level: float) -> Any:
    """Return the ⌈(B + 1) level⌉-th smallest of B values, along the first axis.

    A value drawn like the others is at most this one with probability at least ``level``.
    """
    return np.sort(values, axis=0)[order_rank(values.shape[0], level) - 1]


def order_rank(count: int, level: float) -> int:
    """Return ⌈(B + 1) level⌉, or raise if that is more than B."""
    rank = math.ceil((count + 1) * level - 1e-9)  # 1000 * 0.975 is 975, and an ulp is not one more
    if rank > count:
        remedy = "Lower confidence_level."
        if level < 1:
            remedy = f"Pass at least {math.ceil(1 / (1 - level) - 1e-9) - 1}."
        reason = "at this confidence level no replicate is large enough to be the limit"
        raise InvalidInput(argument="n_resamples", value=count, reason=reason, remedy=remedy)
    return rank
