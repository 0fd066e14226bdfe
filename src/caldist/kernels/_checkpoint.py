"""Where long loops of kernels look whether anybody still waits for them."""

from __future__ import annotations

from threading import current_thread


class GivenUpError(Exception):
    """Raised in a thread whose result nobody waits for."""


def checkpoint() -> None:
    """End here if the work was given up. Loops that may take seconds call this many times a second.

    In the main thread any call of a Python function lets a pending signal through, such as Ctrl-C.
    Threads of ``_util.threads`` that work together end when one of them failed.
    """
    if getattr(current_thread(), "failed", None):
        raise GivenUpError
