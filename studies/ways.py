"""How networks are trained: without PyTorch, which pages of results need not load."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Way"]


@dataclass(frozen=True)
class Way:
    """How a network is trained: by its log loss, and what else.

    Attributes
    ----------
    family
        Ways of one kind, of which the rows held out choose one.
    kernel, smooth
        The weights of ``kernel_ce_loss`` and of ``smooth_ce_loss`` of the batch.
    held_out
        The weight of ``kernel_ce_loss`` of the rows held out.
    smoothing
        The share of a label that is spread over both.
    decay
        The rate at which weights shrink, decoupled from the gradient as AdamW has it.
    """

    family: str
    kernel: float = 0.0
    smooth: float = 0.0
    held_out: float = 0.0
    smoothing: float = 0.0
    decay: float = 0.0

    def __str__(self) -> str:
        values = (self.kernel, self.smooth, self.held_out, self.smoothing, self.decay)
        return " ".join([self.family, *(f"{value:g}" for value in values if value)])
