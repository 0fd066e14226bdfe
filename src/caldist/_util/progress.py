"""Progress bars: on stderr, only where asked for and only after two seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TypeVar

_DELAY = 2  # seconds

Report = Callable[[float, float], None]
Item = TypeVar("Item")


@contextmanager
def bounds_bar(name: str, *, show: bool) -> Iterator[Report | None]:
    """Give a function that shows a lower and an upper bound closing in, or None."""
    if not show:
        yield None
        return
    from tqdm.auto import tqdm  # not needed otherwise

    with tqdm(desc=name, unit=" levels", delay=_DELAY) as bar:

        def report(lower: float, upper: float) -> None:
            bar.set_postfix_str(f"{lower:.9f} to {upper:.9f}", refresh=False)
            bar.update()

        yield report


@contextmanager
def phases(name: str, count: int, *, show: bool) -> Iterator[Callable[[str], None]]:
    """Give a function to be told what is begun, and show it among so many phases."""
    if not show:
        yield lambda _phase: None
        return
    from tqdm.auto import tqdm  # not needed otherwise

    start = monotonic()
    with tqdm(desc=name, total=count, unit=" phases", delay=_DELAY) as bar:

        def begin(phase: str) -> None:
            bar.update(bool(bar.postfix))  # what was begun before is done
            bar.set_postfix_str(phase, refresh=monotonic() - start >= _DELAY)

        yield begin
        bar.update()


def counted(items: Sequence[Item], name: str, unit: str, *, show: bool) -> Iterator[Item]:
    """Go over items, and show how many are done."""
    if not show:
        yield from items
        return
    from tqdm.auto import tqdm  # not needed otherwise

    yield from tqdm(items, desc=name, unit=unit, delay=_DELAY)
