"""Progress bars: on stderr, only where asked for and only after two seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["bounds_bar"]

Report = Callable[[float, float], None]


@contextmanager
def bounds_bar(name: str, *, show: bool) -> Iterator[Report | None]:
    """Give a function that shows a lower and an upper bound closing in, or None."""
    if not show:
        yield None
        return
    from tqdm.auto import tqdm  # not needed otherwise

    with tqdm(desc=name, unit=" levels", delay=2) as bar:

        def report(lower: float, upper: float) -> None:
            bar.set_postfix_str(f"{lower:.9f} to {upper:.9f}", refresh=False)
            bar.update()

        yield report
