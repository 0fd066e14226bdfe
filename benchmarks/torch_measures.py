"""Measures and the metric of ``caldist.torch``: ``python -m benchmarks.torch_measures``.

Against the binned error of torchmetrics on the same tensors, as Markdown. Times have the check of
the values in them, on both sides.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from benchmarks.tables import Table, machine, number, size_name, verdict
from benchmarks.timing import ONCE, THOROUGH, Effort, side_by_side
from benchmarks.torch_losses import PREDICTIONS, gpu_ms, rows
from caldist.torch import CalibrationDistance, binned_ece, brier_score, ece, kernel_ce_loss

Measured = Callable[[Tensor, Tensor], object]
ACCUMULATED = ("binned_ece", "ece", "brier_score", "kernel_ce")
_COMPUTED = "CalibrationDistance, update and compute"
_TARGET = 10.0  # times as fast as torchmetrics, on a GPU


def theirs(p: Tensor, y: Tensor) -> object:
    """Return the binned error of torchmetrics."""
    from torchmetrics.functional.classification import binary_calibration_error

    return binary_calibration_error(p, y, n_bins=20, norm="l1")


def cases(device: str) -> dict[str, Measured]:
    """Return what is timed, by name; metrics forget the rows of the run before."""
    metric = CalibrationDistance(ACCUMULATED).to(device)

    def update(p: Tensor, y: Tensor) -> None:
        metric.reset()
        metric.update(p, y)

    def compute(p: Tensor, y: Tensor) -> object:
        update(p, y)
        return metric.compute()

    return {
        "binned_ece": binned_ece,
        "binned_ece, bfloat16": lambda p, y: binned_ece(p.bfloat16(), y),
        "ece": ece,
        "brier_score": brier_score,
        "kernel_ce_loss": partial(kernel_ce_loss, squared=False),
        "CalibrationDistance, update": update,
        _COMPUTED: compute,
    }


def cpu_table(sizes: list[int], effort: Effort) -> Table:
    """Time them on one thread, in multiples of torchmetrics."""
    torch.set_num_threads(1)
    data = [tuple(part.detach() for part in rows(n)) for n in sizes]
    result = []
    for name, run in cases("cpu").items():
        timings = [side_by_side(partial(run, p, y), partial(theirs, p, y), effort) for p, y in data]
        result.append([name, *(number(timing.ratio) for timing in timings)])
    title = "Measures on the CPU, one thread, in multiples of torchmetrics"
    return Table(title, ["", *map(size_name, sizes)], result)


def gpu_table(sizes: list[int], repeats: int) -> Table:
    """Time them on the GPU, each kind of predictions in a column."""
    result = []
    for n in sizes:
        data = [tuple(part.detach() for part in rows(n, "cuda", kind=kind)) for kind in PREDICTIONS]
        reference = [gpu_ms(partial(theirs, p, y), repeats)[0] for p, y in data]
        result.append([size_name(n), "torchmetrics", *map(number, reference), "", ""])
        for name, run in cases("cuda").items():
            # What the CPU computes takes long, and is nothing to compare with.
            computed = name == _COMPUTED
            often = max(1, repeats // 10) if computed else repeats
            times = [gpu_ms(partial(run, p, y), often)[0] for p, y in data]
            pairs = zip(times, reference, strict=True)
            kept = verdict(all(_TARGET * ours <= other for ours, other in pairs))
            shown = ["", ""] if computed else [f"{_TARGET:g} times", kept]
            result.append([size_name(n), name, *map(number, times), *shown])
    header = ["rows", "", *(f"{kind}, ms" for kind in PREDICTIONS), "target", "verdict"]
    title = f"Measures on {torch.cuda.get_device_name()}, PyTorch {torch.__version__}"
    return Table(title, header, result, "The GPU is idle before: the launches are in the times.")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.torch_measures", description=__doc__
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, once each: does it run?")
    parser.add_argument("--gpu-only", action="store_true", help="leave the CPU out")
    options = parser.parse_args()
    tables = []
    if not options.gpu_only:
        sizes = [100] if options.quick else [10**4, 10**5, 10**6]
        tables.append(cpu_table(sizes, ONCE if options.quick else THOROUGH))
    if torch.cuda.is_available():
        sizes = [1000] if options.quick else [10**6, 10**7]
        tables.append(gpu_table(sizes, 1 if options.quick else 50))
    print(
        "\n".join(f"- {line}" for line in [*machine(), f"PyTorch {torch.__version__}"]), end="\n\n"
    )
    print("\n".join(table.as_markdown() for table in tables), end="")


if __name__ == "__main__":
    main()
