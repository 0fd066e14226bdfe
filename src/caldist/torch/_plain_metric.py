"""What the metrics of :mod:`caldist.torch` need of torchmetrics, where that is missing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Any, Self

import torch
from torch import Tensor, distributed, nn


class PlainMetric(nn.Module, ABC):
    """A metric whose states are sums of integers, with methods of ``torchmetrics.Metric``."""

    def __init__(self) -> None:
        super().__init__()
        self._sums: list[str] = []
        self._of_this_process = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Let ``compute`` see the states of all processes, as torchmetrics does."""
        super().__init_subclass__(**options)
        cls.compute = _of_all_processes(cls.compute)  # type: ignore[assignment, method-assign]

    def add_state(self, name: str, default: Tensor, dist_reduce_fx: str) -> None:
        """Register a state that starts at ``default``, which must be 0, and is summed.

        It is no buffer: ``DistributedDataParallel`` would overwrite it with that of process 0.
        """
        assert dist_reduce_fx == "sum"  # noqa: S101 -- the only reduction there is here
        self._sums.append(name)
        setattr(self, name, default)

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **options: Any) -> Self:
        """Move the states with the module."""
        super()._apply(fn, *args, **options)  # type: ignore[no-untyped-call]
        for name in self._sums:
            setattr(self, name, fn(getattr(self, name)))
        return self

    @abstractmethod
    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add rows."""

    @abstractmethod
    def compute(self) -> dict[str, Tensor]:
        """Return the values of all rows so far."""

    def reset(self) -> None:
        """Forget all rows."""
        for name in self._sums:
            getattr(self, name).zero_()

    def forward(self, preds: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Add rows and return the values of these rows alone."""
        before = {name: getattr(self, name).clone() for name in self._sums}
        self.reset()
        self._of_this_process = True
        try:
            self.update(preds, target)
            return self.compute()
        finally:
            self._of_this_process = False
            for name, state in before.items():
                getattr(self, name).add_(state)

    def merge_state(self, incoming_state: Self | dict[str, Tensor]) -> None:
        """Add the rows of another metric, or of its states by name."""
        for name in self._sums:
            if isinstance(incoming_state, dict):
                other = incoming_state[name]
            else:
                other = getattr(incoming_state, name)
            getattr(self, name).add_(other.to(self.device))

    @property
    def device(self) -> torch.device:
        """Where the states are."""
        state: Tensor = getattr(self, self._sums[0])
        return state.device

    @contextmanager
    def sync_context(self) -> Iterator[None]:
        """Sum the states over all processes of a distributed run, until the end of the block."""
        if not (distributed.is_available() and distributed.is_initialized()):
            yield
            return
        own: dict[str, Tensor] = {name: getattr(self, name) for name in self._sums}
        try:
            for name, state in own.items():
                total = state.clone()
                distributed.all_reduce(total)
                setattr(self, name, total)
            yield
        finally:
            for name, state in own.items():
                setattr(self, name, state)


def _of_all_processes(
    compute: Callable[[PlainMetric], dict[str, Tensor]],
) -> Callable[[PlainMetric], dict[str, Tensor]]:
    @wraps(compute)
    def wrapped(self: PlainMetric) -> dict[str, Tensor]:
        with nullcontext() if self._of_this_process else self.sync_context():
            return compute(self)

    return wrapped
