"""How many threads to use: one setting for sorting, searching and resampling."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import pairwise
from threading import Thread
from typing import TypeVar

from caldist._util.invalid import InvalidInput

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")

_VARIABLE = "CALDIST_NUM_THREADS"


def thread_count() -> int:
    """Return how many threads a computation may use.

    That is the environment variable ``CALDIST_NUM_THREADS`` where it is set, and otherwise the
    number of cores that this process may use. It changes no result.
    """
    wanted = os.environ.get(_VARIABLE, "").strip()
    if wanted:
        if not wanted.isdecimal() or int(wanted) == 0:
            reason = "it must be a positive number of threads"
            raise InvalidInput(argument=_VARIABLE, value=wanted, reason=reason)
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Helper(Thread):
    """A thread that works on what others work on too; ``failed`` is what was raised in any."""

    def __init__(self, work: Callable[[], None], failed: list[BaseException]) -> None:
        super().__init__(target=work)
        self.failed = failed  # where kernels look whether the work was given up


def in_threads(
    task: Callable[[_Given], _Found], given: Iterable[_Given], threads: int | None = None
) -> list[_Found]:
    """Return what a task, which lets go of the interpreter's lock, makes of each thing given.

    The thread that asks works too. An executor would do the same and take five times as long to
    start as its threads do.
    """
    things = list(given)
    threads = min(len(things), thread_count() if threads is None else threads)
    if threads <= 1:
        return [task(thing) for thing in things]
    found: dict[int, _Found] = {}
    failed: list[BaseException] = []
    left = list(enumerate(things))[::-1]  # which threads take from the end

    def work() -> None:
        while left and not failed:
            try:
                at, thing = left.pop()
            except IndexError:  # another was quicker
                return
            found[at] = task(thing)

    def help_out() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 -- raised below
            failed.append(error)

    others = [_Helper(help_out, failed) for _ in range(threads - 1)]
    for other in others:
        other.start()
    try:
        work()
        for other in others:
            other.join()
    except BaseException as error:  # noqa: BLE001 -- raised below; Ctrl-C comes here
        failed.append(error)
    for other in others:
        other.join()
    if failed:
        raise failed[0]
    return [found[at] for at in range(len(things))]


def even_parts(size: int, count: int) -> list[tuple[int, int]]:
    """Return where each of some parts of about the same size begins and ends."""
    return list(pairwise(size * k // count for k in range(count + 1)))
