"""A sign of life on stderr for what lasts: the time so far, on a terminal only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

DELAY = 2.0  # seconds before it shows


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show for how long something has been running, from two seconds on."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()

    def show() -> None:
        if done.wait(DELAY):
            return
        from tqdm import tqdm

        with tqdm(desc=what, bar_format="{desc}: {elapsed}", leave=False, file=sys.stderr) as bar:
            while not done.wait(0.5):
                bar.refresh()

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
