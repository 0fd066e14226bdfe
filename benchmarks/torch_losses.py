"""The losses of ``caldist.torch``: ``python -m benchmarks.torch_losses``, as Markdown.

Times are forward and backward pass together, checks included. On the CPU they are multiples of
``torch.sort`` of the same tensor, run in turn in one process.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from benchmarks.tables import Table, machine, number, size_name, verdict
from benchmarks.timing import ONCE, THOROUGH, Effort, side_by_side
from caldist.torch import _kernel_cells, kernel_ce_loss, smooth_ce_loss

Loss = Callable[[Tensor, Tensor], Tensor]
DENSE_ROWS = 10_000


PREDICTIONS = ("spread", "polarised", "constant")


def rows(
    n: int,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    kind: str = "spread",
    *,
    calibrated: bool = True,
) -> tuple[Tensor, Tensor]:
    """Return predictions and their labels, as integers; if not calibrated, too sure and too low."""
    generator = torch.Generator(device).manual_seed(0)
    p = torch.rand(n, device=device, dtype=dtype, generator=generator)
    if kind == "polarised":
        p = torch.sigmoid(8 * torch.logit(p, eps=1e-6))
    elif kind == "constant":
        p = torch.full_like(p, 0.3)
    chance = p if calibrated else 0.8 * p + 0.15
    y = torch.rand(n, device=device, generator=generator) < chance
    return p.requires_grad_(), y.long()


def step(loss: Loss, p: Tensor, y: Tensor) -> None:
    """Run forward and backward once."""
    p.grad = None
    loss(p, y).backward()


def dense(p: Tensor, y: Tensor) -> Tensor:
    """Return kCE² by the double sum, as it is usually written."""
    residual = (y - p) / p.numel()
    return residual @ torch.exp(-(p[:, None] - p[None, :]).abs()) @ residual


def straightforward(p: Tensor, y: Tensor) -> Tensor:
    """Return kCE² by cumulative sums, with automatic gradients, which are wrong at ties."""
    v, order = p.sort()
    v = v.double()
    c = (y[order] - v) / p.numel()
    before = (c * v.exp()).cumsum(0) - c * v.exp()
    return (c * c + 2 * c * (-v).exp() * before).sum().to(p.dtype)


LOSSES: dict[str, Loss] = {
    "kernel_ce_loss": kernel_ce_loss,
    "kernel_ce_loss, gaussian": partial(kernel_ce_loss, kernel="gaussian"),
    "smooth_ce_loss": smooth_ce_loss,
    "smooth_ce_loss, tol=1e-6": partial(smooth_ce_loss, tol=1e-6),
}
_CPU_TARGETS = {"kernel_ce_loss": 4.0, "kernel_ce_loss, gaussian": 4.0}


def cpu_table(sizes: list[int], effort: Effort) -> Table:
    """Time the losses against torch.sort, which uses one thread."""
    torch.set_num_threads(1)
    result = []
    for name, loss in LOSSES.items():
        for dtype in (torch.float32, torch.float64):
            ratios = []
            for n in sizes:
                p, y = rows(n, dtype=dtype)
                timing = side_by_side(
                    partial(step, loss, p, y), partial(torch.sort, p.detach()), effort
                )
                ratios.append(timing.ratio)
            target = _CPU_TARGETS.get(name)
            kept = "" if target is None else verdict(ratios[-1] <= target)
            shown = "" if target is None else f"{target:g} at {size_name(sizes[-1])}"
            result.append([name, str(dtype)[6:], *map(number, ratios), shown, kept])
    header = ["loss", "type", *map(size_name, sizes), "target", "verdict"]
    return Table("CPU, one thread, in multiples of torch.sort", header, result)


_MEMORY = """
from benchmarks import torch_losses
def peak():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))
loss = torch_losses.{name}
torch_losses.step(loss, *torch_losses.rows(10))
rows = torch_losses.rows({n})
before = peak()
torch_losses.step(loss, *rows)
print((peak() - before) / 1e6)
"""


def _memory(name: str, n: int) -> float:
    """Return by how many megabytes a step lifts the peak memory of a fresh process."""
    code = _MEMORY.format(name=name, n=n)
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    return float(output.stdout)


def dense_table(n: int, effort: Effort) -> Table:
    """Compare with the double sum."""
    p, y = rows(n)
    timing = side_by_side(partial(step, kernel_ce_loss, p, y), partial(step, dense, p, y), effort)
    ours, theirs = _memory("kernel_ce_loss", n), _memory("dense", n)
    kept = verdict(timing.ratio <= 1 / 100 and ours <= 50)
    result = [
        ["double sum", number(1e3 * timing.reference), number(theirs), "", ""],
        ["kernel_ce_loss", number(1e3 * timing.seconds), number(ours), "100 times, 50 MB", kept],
    ]
    note = f"{number(1 / timing.ratio)} times faster."
    header = ["", "ms", "MB", "target", "verdict"]
    return Table(f"CPU, {size_name(n)} rows, float32", header, result, note)


def gpu_ms(function: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Return the time of one run on an idle GPU, and of one of many runs in a row.

    The first is the median between two events and has the launches in it; the second is what a
    training loop sees, which launches while the GPU still works.
    """
    begun = time.perf_counter()
    warmed = 0
    # The first ones compile and fill caches, and the host's clock takes a while to rise.
    while warmed < 3 or time.perf_counter() < begun + min(0.2, 0.01 * repeats):
        function()
        torch.cuda.synchronize()
        warmed += 1
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        function()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    begin.record()
    for _ in range(repeats):
        function()
    end.record()
    torch.cuda.synchronize()
    return sorted(times)[repeats // 2], begin.elapsed_time(end) / repeats


_GPU_SIZES = (10**7, 10**8)  # with targets
_GPU_TARGET = 2.5  # times torch.sort


def gpu_table(sizes: list[int], repeats: int) -> Table:
    """Time the Laplace loss on the GPU."""
    result = []
    for n in sizes:
        p, y = rows(n, "cuda")
        cases: dict[str, Callable[[], object]] = {
            "torch.sort": partial(torch.sort, p.detach()),
            "straightforward": partial(step, straightforward, p, y),
            "kernel_ce_loss": partial(step, kernel_ce_loss, p, y),
        }
        sorting = 0.0
        for name, run in cases.items():
            torch.cuda.empty_cache()
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            alone, in_a_row = gpu_ms(run, repeats)
            megabytes = (torch.cuda.max_memory_allocated() - before) / 1e6
            sorting = sorting or alone  # which comes first
            shown = ["", ""]
            if name == "kernel_ce_loss" and n in _GPU_SIZES:
                shown = [f"{_GPU_TARGET:g}", verdict(alone <= _GPU_TARGET * sorting)]
            times = [number(alone), number(in_a_row), number(alone / sorting), number(megabytes)]
            result.append([size_name(n), name, *times, *shown])
            p.grad = None
    header = [
        "rows", "", "ms, GPU idle before", "ms, in a row", "of torch.sort", "MB", "target",
        "verdict",
    ]  # fmt: skip
    note = (
        "float32, labels int64. The first time has the launches in it; the second is per run of "
        "many without waiting in between. Memory is the peak beyond the inputs. "
        "`straightforward` is two cumulative sums in float64 under autograd, "
        "whose gradients are wrong at ties."
    )
    name = f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}"
    return Table(name, header, result, note)


_TOLERANCE = 1e-4
_TOLERANCE_TARGET = 1.0  # times torch.sort, of miscalibrated predictions


def gpu_tolerance_table(sizes: list[int], repeats: int) -> Table:
    """Time the Laplace loss within a tolerance, and say whether cells could prove it."""
    result = []
    for n in sizes:
        for calibrated in (False, True):
            for kind in PREDICTIONS:
                p, y = rows(n, "cuda", kind=kind, calibrated=calibrated)
                within = partial(kernel_ce_loss, tol=_TOLERANCE)
                found = _kernel_cells.pay(p[None], None) and _kernel_cells.squared_in_cells(
                    p.detach(), y, 1.0, _TOLERANCE, unbiased=False, with_gradient=False
                )
                cases = (
                    partial(torch.sort, p.detach()),
                    partial(step, kernel_ce_loss, p, y),
                    partial(step, within, p, y),
                )
                times = [gpu_ms(run, repeats)[0] for run in cases]
                ratio = times[2] / times[0]
                shown = ["", ""]
                if not calibrated and n in _GPU_SIZES:
                    shown = [f"{_TOLERANCE_TARGET:g}", verdict(ratio <= _TOLERANCE_TARGET)]
                labels = "calibrated" if calibrated else "off"
                way = "cells" if found else "sorted"
                result.append(
                    [size_name(n), kind, labels, *map(number, times), number(ratio), way, *shown]
                )
                p.grad = None
    header = [
        "rows", "predictions", "labels", "torch.sort, ms", "exact, ms", f"tol={_TOLERANCE:g}, ms",
        "of torch.sort", "way", "target", "verdict",
    ]  # fmt: skip
    return Table(f"kernel_ce_loss within {_TOLERANCE:g}", header, result)


_GPU_SMOOTH_TARGETS = {10**7: 5.0}
_SMOOTH_EXACT = 10**6  # more rows are not sorted and solved exactly here, which takes seconds


def gpu_smooth_table(sizes: list[int], repeats: int) -> Table:
    """Time smooth_ce_loss from the GPU: within a tolerance, exactly, or moved to the CPU first."""

    def moved(p: Tensor, y: Tensor) -> Tensor:
        return smooth_ce_loss(p.cpu(), y.cpu())

    result = []
    for n in sizes:
        for kind in PREDICTIONS:
            p, y = rows(n, "cuda", kind=kind)
            cases: list[Loss] = [partial(smooth_ce_loss, tol=1e-6)]
            if n <= _SMOOTH_EXACT and kind == "spread":
                cases += [smooth_ce_loss, moved]
            times = [gpu_ms(partial(step, loss, p, y), repeats)[0] for loss in cases]
            target = _GPU_SMOOTH_TARGETS.get(n)
            shown = ["", ""] if target is None else [f"{target:g} ms", verdict(times[0] <= target)]
            times_shown = [*map(number, times), *[""] * (3 - len(times))]
            result.append([size_name(n), kind, *times_shown, *shown])
    header = [
        "rows", "predictions", "tol=1e-6, ms", "exact, ms", "moved to the CPU first, ms",
        "target", "verdict",
    ]  # fmt: skip
    return Table("smooth_ce_loss of tensors on the GPU", header, result)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_losses", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, once each: does it run?")
    parser.add_argument("--gpu-only", action="store_true", help="leave the CPU out")
    options = parser.parse_args()
    tables = []
    if not options.gpu_only:
        effort = ONCE if options.quick else THOROUGH
        tables.append(cpu_table([100] if options.quick else [10**4, 10**5, 10**6], effort))
        tables.append(dense_table(100 if options.quick else DENSE_ROWS, effort))
    if torch.cuda.is_available():
        repeats = 1 if options.quick else 30
        tables.append(gpu_table([1000] if options.quick else [10**6, 10**7, 10**8], repeats))
        tables.append(
            gpu_tolerance_table([1000] if options.quick else [10**6, *_GPU_SIZES], repeats)
        )
        tables.append(
            gpu_smooth_table([1000] if options.quick else [10**4, 10**6, 10**7, 10**8], repeats)
        )
    print(
        "\n".join(f"- {line}" for line in [*machine(), f"PyTorch {torch.__version__}"]), end="\n\n"
    )
    print("\n".join(table.as_markdown() for table in tables), end="")


if __name__ == "__main__":
    main()
