"""Errors that say more than a wrong argument."""

from __future__ import annotations


class ToleranceError(ArithmeticError):
    """A value could not be enclosed as closely as was asked.

    ``lower`` and ``upper`` are valid bounds all the same.
    """

    def __init__(self, message: str, lower: float, upper: float) -> None:
        super().__init__(message, lower, upper)  # all of them, so that it can be pickled
        self.lower = lower
        self.upper = upper

    def __str__(self) -> str:
        return str(self.args[0])
