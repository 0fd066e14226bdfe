"""Many small networks trained at once: every seed times every way of training.

All weights of one layer are one tensor (seeds, ways, inputs, outputs), so that one product serves
all networks, on a CPU and on a GPU. Networks of one seed see the same rows in the same order and
begin with the same weights, so that their differences are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, relu

from caldist.torch._kernel_loss import kernel_losses
from caldist.torch._smooth import smooth_losses
from studies.ways import Way

__all__ = ["Networks", "Schedule", "Way", "device_name", "train"]

Numbers = NDArray[np.float32]
Values = NDArray[np.float64]

LEARNING_RATE = 2e-3
HELD_BATCH = 500  # rows that a penalty on rows held out looks at in each step
_CHUNK = 2**21  # predictions made at once, which bounds the memory


@dataclass(frozen=True)
class Schedule:
    """How long is trained, and with what."""

    epochs: int
    batch: int
    hidden: int = 100


class Networks:
    """Two hidden layers, for each seed and way."""

    def __init__(self, layers: Sequence[tuple[Tensor, Tensor]]) -> None:
        self.layers = [(weight, bias) for weight, bias in layers]

    @classmethod
    def drawn(cls, seeds: Sequence[int], ways: int, inputs: int, hidden: int) -> Networks:
        """Draw initial weights, as ``torch.nn.Linear`` does, one set for each seed."""
        layers = []
        for at, (rows, columns) in enumerate(((inputs, hidden), (hidden, hidden), (hidden, 1))):
            drawn = []
            for seed in seeds:
                generator = torch.Generator().manual_seed(10 * seed + at)
                drawn.append(torch.rand((rows + 1, columns), generator=generator) * 2 - 1)
            first = torch.stack(drawn)[:, None] / rows**0.5
            both = first.expand(-1, ways, -1, -1).clone()
            layers.append((both[:, :, :-1].contiguous(), both[:, :, -1:].contiguous()))
        return cls(layers)

    def to(self, device: str) -> Networks:
        """Return the networks on another device."""
        return Networks([(weight.to(device), bias.to(device)) for weight, bias in self.layers])

    def parameters(self) -> list[Tensor]:
        """Return weights and biases of all layers."""
        return [part for layer in self.layers for part in layer]

    def logits(self, x: Tensor, ways: Tensor | slice = slice(None)) -> Tensor:
        """Return (seeds, ways, rows) from features (seeds, rows, inputs)."""
        value = x[:, None]
        for at, (weight, bias) in enumerate(self.layers):
            value = torch.matmul(relu(value) if at else value, weight[:, ways]) + bias[:, ways]
        return value.squeeze(-1)

    @torch.no_grad()
    def predict(self, x: Numbers) -> Values:
        """Return the probabilities of label 1, of shape (seeds, ways, rows)."""
        weight = self.layers[0][0]
        seeds, ways = weight.shape[:2]
        step = max(1, _CHUNK // (seeds * ways))
        parts = []
        for start in range(0, x.shape[1], step):
            rows = torch.from_numpy(x[:, start : start + step]).to(weight.device)
            parts.append(torch.sigmoid(self.logits(rows).double()).cpu().numpy())
        return np.concatenate(parts, axis=-1)


def device_name(device: str) -> str:
    """Return what computed: a GPU's name, or "CPU", with PyTorch's version."""
    name = torch.cuda.get_device_name() if device.startswith("cuda") else "CPU"
    return f"{name}, PyTorch {torch.__version__}"


def train(
    seeds: Sequence[int],
    ways: Sequence[Way],
    rows: tuple[Numbers, Numbers],
    held: tuple[Numbers, Numbers] | None,
    schedule: Schedule,
    device: str,
) -> dict[str, Networks]:
    """Train all networks; return them as they end, "last", and at their best epoch, "early".

    The best epoch is the one with the least log loss of the rows held out; without such rows there
    is none. Features have the shape (seeds, rows, inputs), labels (seeds, rows).
    """
    (x, y), ways = _to(rows, device), tuple(ways)
    networks = Networks.drawn(seeds, len(ways), x.shape[-1], schedule.hidden).to(device)
    parameters = [part.requires_grad_() for part in networks.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=LEARNING_RATE, fused=True)
    losses = _Losses(ways, device, None if held is None else _to(held, device))
    shuffle = torch.Generator().manual_seed(seeds[0])
    best = _Best(networks) if losses.held is not None else None
    seed_at = torch.arange(len(seeds), device=device)[:, None]
    for _ in range(schedule.epochs):
        order = torch.rand(x.shape[:2], generator=shuffle).argsort(-1).to(device)
        for chosen in torch.split(order, schedule.batch, dim=-1):
            if chosen.shape[-1] < schedule.batch:
                continue  # a small rest would be a noisy step
            optimiser.zero_grad()
            loss = losses(networks, x[seed_at, chosen], y[seed_at, chosen], shuffle)
            torch.autograd.backward(loss)
            losses.decay(networks)
            optimiser.step()
        if best is not None and losses.held is not None:
            best.update(networks, *losses.held)
    found = {"last": networks}
    if best is not None:
        found["early"] = best.networks
    return found


def _to(rows: tuple[Numbers, Numbers], device: str) -> tuple[Tensor, Tensor]:
    x, y = (torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in rows)
    return x, y


class _Losses:
    """The sum of the losses of all networks, each of which has a gradient of its own."""

    def __init__(
        self, ways: Sequence[Way], device: str, held: tuple[Tensor, Tensor] | None
    ) -> None:
        self.held = held
        self.kernel, self.smooth, self.held_out = (
            _Penalised.of([getattr(way, name) for way in ways], device)
            for name in ("kernel", "smooth", "held_out")
        )
        self.smoothing = torch.tensor([way.smoothing for way in ways], device=device)[:, None]
        decay = torch.tensor([way.decay for way in ways], device=device)
        self.shrink = 1 - LEARNING_RATE * decay[:, None, None]

    def __call__(
        self, networks: Networks, x: Tensor, y: Tensor, shuffle: torch.Generator
    ) -> Tensor:
        logits = networks.logits(x)
        target = y[:, None] * (1 - self.smoothing) + 0.5 * self.smoothing
        total = binary_cross_entropy_with_logits(logits, target, reduction="sum") / y.shape[1]
        if self.kernel is not None:
            total = total + self.kernel.total(_kernel_losses, logits[:, self.kernel.places], y)
        if self.smooth is not None:
            total = total + self.smooth.total(_smooth_losses, logits[:, self.smooth.places], y)
        if self.held_out is not None and self.held is not None:
            x, y = self.held
            if y.shape[1] > HELD_BATCH:
                some = torch.randperm(y.shape[1], generator=shuffle)[:HELD_BATCH].to(x.device)
                x, y = x[:, some], y[:, some]
            logits = networks.logits(x, self.held_out.places)
            total = total + self.held_out.total(_kernel_losses, logits, y)
        return total

    @torch.no_grad()
    def decay(self, networks: Networks) -> None:
        """Shrink the weights of those that decay."""
        for weight, _ in networks.layers:
            weight.mul_(self.shrink)


@dataclass(frozen=True)
class _Penalised:
    """Which ways have a penalty, and its weights."""

    places: Tensor
    weight: Tensor

    @classmethod
    def of(cls, weights: Sequence[float], device: str) -> _Penalised | None:
        """Return None where no way has one."""
        every = torch.tensor(weights, device=device)
        places = every.nonzero().squeeze(-1)
        return cls(places, every[places]) if len(places) else None

    def total(
        self, losses: Callable[[Tensor, Tensor], Tensor], logits: Tensor, y: Tensor
    ) -> Tensor:
        """Return the weighted sum of the penalties of these networks."""
        labels = y[:, None].expand_as(logits).flatten(0, 1)
        found = losses(torch.sigmoid(logits).flatten(0, 1), labels)
        return (found.view(logits.shape[:2]) * self.weight).sum()


def _kernel_losses(p: Tensor, y: Tensor) -> Tensor:
    return kernel_losses(p, y, None, kernel="laplace", bandwidth=1.0, unbiased=False)


def _smooth_losses(p: Tensor, y: Tensor) -> Tensor:
    return smooth_losses(p, y, None)


class _Best:
    """The weights of each network at its epoch of least held-out log loss."""

    def __init__(self, networks: Networks) -> None:
        self.networks = Networks(
            [(weight.detach().clone(), bias.detach().clone()) for weight, bias in networks.layers]
        )
        self.loss: Tensor | None = None

    @torch.no_grad()
    def update(self, networks: Networks, x: Tensor, y: Tensor) -> None:
        logits = networks.logits(x)
        target = y[:, None].expand_as(logits)
        loss = binary_cross_entropy_with_logits(logits, target, reduction="none").mean(-1)
        better = torch.ones_like(loss, dtype=torch.bool) if self.loss is None else loss < self.loss
        self.loss = loss if self.loss is None else torch.minimum(loss, self.loss)
        for kept, now in zip(self.networks.parameters(), networks.parameters(), strict=True):
            kept.copy_(torch.where(better[:, :, None, None], now, kept))
