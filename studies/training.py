"""What a calibration penalty does to a small network: ``python -m studies.training``.

The task: is a handwritten digit 5 or larger? The 1,797 images come with scikit-learn. A network
with one hidden layer is trained on 400 of them, long enough to fit them without a penalty, with
log-loss plus λ times the Laplace kCE² of the batch, for several λ and seeds; the other 1,397 images
are the test set and decide nothing. Each seed draws the split, the initial weights and the batches,
and is shared by all λ, so that differences are paired.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from tqdm import tqdm

import caldist
from studies.runs import write_bytes


@dataclass(frozen=True)
class Plan:
    """How much is computed."""

    weights: tuple[float, ...] = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0)
    seeds: int = 10
    epochs: int = 150
    batch: int = 100


QUICK = Plan(weights=(0.0, 10.0), seeds=2, epochs=20)


@dataclass(frozen=True)
class Run:
    """One trained network, judged on the test set."""

    weight: float
    seed: int
    accuracy: float
    smooth_ce: float
    lower_distance: float
    log_loss: float
    train_log_loss: float
    smooth_ce_by_chance: float


REDRAWS = 20
OUTCOMES = ("accuracy", "smooth_ce", "lower_distance", "log_loss")


def train(weight: float, seed: int, plan: Plan) -> Run:
    """Train one network and judge it."""
    import torch
    from sklearn.datasets import load_digits

    from caldist.torch import kernel_ce_loss

    images, digit = load_digits(return_X_y=True)
    label = (digit >= 5).astype(np.float32)
    order = np.random.default_rng(seed).permutation(label.size)
    pixels = torch.tensor(images[order] / 16, dtype=torch.float32)
    target = torch.tensor(label[order])
    torch.manual_seed(seed)
    network = torch.nn.Sequential(
        torch.nn.Linear(64, 100), torch.nn.ReLU(), torch.nn.Linear(100, 1), torch.nn.Flatten(0)
    )
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
    log_loss = torch.nn.BCEWithLogitsLoss()
    shuffle = torch.Generator().manual_seed(seed)
    for _ in range(plan.epochs):
        for rows in torch.randperm(400, generator=shuffle).split(plan.batch):
            optimiser.zero_grad()
            logit = network(pixels[rows])
            loss = log_loss(logit, target[rows])
            if weight:
                loss = loss + weight * kernel_ce_loss(torch.sigmoid(logit), target[rows])
            loss.backward()
            optimiser.step()
    with torch.no_grad():
        logit = network(pixels)
        train_loss, test_loss = (
            float(log_loss(logit[part], target[part])) for part in (slice(400), slice(400, None))
        )
        probability = torch.sigmoid(logit[400:].double()).numpy()
    truth = target[400:].numpy()
    redrawn = np.random.default_rng(seed).random((REDRAWS, truth.size)) < probability
    return Run(
        weight=weight,
        seed=seed,
        accuracy=float(np.mean((probability >= 0.5) == truth)),
        smooth_ce=caldist.smooth_ce(truth, probability),
        lower_distance=caldist.lower_distance(truth, probability),
        log_loss=test_loss,
        train_log_loss=train_loss,
        smooth_ce_by_chance=float(np.mean([caldist.smooth_ce(y, probability) for y in redrawn])),
    )


def study(plan: Plan) -> list[Run]:
    """Train all networks, in one thread so that the result does not depend on the machine's."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        cells = [(weight, seed) for seed in range(plan.seeds) for weight in plan.weights]
        return [train(*cell, plan) for cell in tqdm(cells, desc="networks", disable=None)]
    finally:
        torch.set_num_threads(threads)


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the half-width of its 95% interval over seeds (Student's t)."""
    from scipy.stats import t

    size = len(values)
    spread = float(np.std(values, ddof=1)) / math.sqrt(size)
    return float(np.mean(values)), float(t.ppf(0.975, size - 1)) * spread


def _by_weight(runs: Sequence[Run], outcome: str) -> dict[float, list[float]]:
    found: dict[float, list[float]] = {}
    for run in sorted(runs, key=lambda run: (run.weight, run.seed)):
        found.setdefault(run.weight, []).append(getattr(run, outcome))
    return found


def page(runs: Sequence[Run], plan: Plan, command: str) -> str:
    """Return the page with the table."""
    names = {
        "accuracy": "accuracy",
        "smooth_ce": "smCE",
        "lower_distance": "ldCE",
        "log_loss": "log-loss",
    }
    lines = [
        "<!-- Written by python -m studies.training. Do not edit. -->",
        "# A calibration penalty in training",
        "",
        *(__doc__ or "").split("\n\n", 1)[1].strip().splitlines(),
        "",
        f"Made by `{command}`: {plan.seeds} seeds, {plan.epochs} epochs, batches of {plan.batch}.",
        "Mean on the test set, ± half of the 95% interval over seeds.",
        "",
        "| λ | " + " | ".join(names.values()) + " | smCE by chance | training log-loss |",
        "| ---: | " + " | ".join(["---:"] * (len(names) + 2)) + " |",
    ]
    more = ("smooth_ce_by_chance", "train_log_loss")
    columns = {name: _by_weight(runs, name) for name in (*names, *more)}
    for weight in plan.weights:
        cells = (mean_and_error(column[weight]) for column in columns.values())
        lines.append(f"| {weight:g} | " + " | ".join(f"{m:.4f} ± {e:.4f}" for m, e in cells) + " |")
    lines += [
        "",
        "smCE by chance is what the same predictions show if they are the true probabilities: the",
        f"mean over {REDRAWS} draws of labels from them. What exceeds it speaks of miscalibration.",
        "",
        "Differences to λ = 0, paired by seed:",
        "",
    ]
    lines += ["| λ | " + " | ".join(names.values()) + " |"]
    lines += ["| ---: | " + " | ".join(["---:"] * len(names)) + " |"]
    for weight in plan.weights[1:]:
        cells = [
            mean_and_error(np.subtract(columns[name][weight], columns[name][0.0]).tolist())
            for name in names
        ]
        shown = (f"{m:+.4f} ± {e:.4f}{'' if abs(m) <= e else ' *'}" for m, e in cells)
        lines.append(f"| {weight:g} | " + " | ".join(shown) + " |")
    lines += [
        "",
        "\\* the interval excludes 0, as one in 20 does by chance.",
        "",
        "All seeds share the same images: the intervals are about the split and the initial",
        "weights, not about other data.",
        "",
    ]
    lines += ["![The four outcomes over the weight of the penalty.](training.svg)", ""]
    return "\n".join(lines)


def figure(runs: Sequence[Run]) -> bytes:
    """Draw every outcome over the weight of the penalty, single seeds in grey."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(7.2, 5.0), layout="constrained")
    titles = ("accuracy", "smCE", "ldCE", "log-loss")
    for axes, outcome, title in zip(
        drawing.subplots(2, 2, sharex=True).flat, OUTCOMES, titles, strict=True
    ):
        found = _by_weight(runs, outcome)
        places = np.arange(len(found))
        axes.plot(places, np.array(list(found.values())), color="0.8", linewidth=0.7)
        ends = np.array([mean_and_error(values) for values in found.values()])
        axes.errorbar(places, ends[:, 0], ends[:, 1], color="#0b5fa5", marker="o", capsize=3)
        axes.set_title(f"{title} on the test set", fontsize=9)
        axes.set_xticks(places, [f"{weight:g}" for weight in found])
        axes.spines[["top", "right"]].set_visible(False)
    drawing.supxlabel("weight λ of the penalty", fontsize=9)
    text = io.BytesIO()
    drawing.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study and write its page, figure and table."""
    parser = argparse.ArgumentParser(prog="python -m studies.training", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two seeds, few epochs")
    parser.add_argument("--out", type=Path, default=Path("docs/studies"))
    options = parser.parse_args(arguments)
    plan = QUICK if options.quick else Plan()
    runs = study(plan)
    options.out.mkdir(parents=True, exist_ok=True)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(field.name for field in fields(Run))
    writer.writerows([getattr(run, field.name) for field in fields(Run)] for run in runs)
    command = f"python -m studies.training{' --quick' if options.quick else ''}"
    write_bytes(options.out / "training.csv", table.getvalue().encode())
    write_bytes(options.out / "training.svg", figure(runs))
    write_bytes(options.out / "training.md", page(runs, plan, command).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
