"""The losses of ``caldist.torch``: ``python -m benchmarks.torch_losses``, as Markdown.

Times are forward and backward pass together, checks included. On the CPU they are multiples of
``torch.sort`` of the same tensor, run in turn in one process.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec

import torch
from torch import Tensor

from benchmarks.tables import Table, machine, number, size_name, verdict
from benchmarks.timing import ONCE, THOROUGH, Effort, side_by_side
from caldist.torch import kernel_ce_loss, smooth_ce_loss

Loss = Callable[[Tensor, Tensor], Tensor]
DENSE_ROWS = 10_000


def rows(n: int, device: str = "cpu", dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Return predictions and their labels, as integers."""
    generator = torch.Generator(device).manual_seed(0)
    p = torch.rand(n, device=device, dtype=dtype, generator=generator)
    y = torch.rand(n, device=device, generator=generator) < p
    return p.requires_grad_(), y.long()


def step(loss: Loss, p: Tensor, y: Tensor) -> None:
    """Run forward and backward once."""
    p.grad = None
    loss(p, y).backward()


def dense(p: Tensor, y: Tensor) -> Tensor:
    """Return kCE² by the double sum, as it is usually written."""
    residual = (y - p) / p.numel()
    return residual @ torch.exp(-(p[:, None] - p[None, :]).abs()) @ residual


LOSSES: dict[str, Loss] = {
    "kernel_ce_loss": kernel_ce_loss,
    "kernel_ce_loss, gaussian": partial(kernel_ce_loss, kernel="gaussian"),
    "smooth_ce_loss": smooth_ce_loss,
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


def gpu_ms(function: Callable[[], object], repeats: int) -> float:
    """Return the median time of a run on an idle GPU, its launches included."""
    begun = time.perf_counter()
    warmed = 0
    # The first runs fill caches, and the host's clock takes a while to rise.
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
    return sorted(times)[repeats // 2]


# The loss, the most rows it is timed on, and the milliseconds it may take up to so many rows.
_ON_GPU: tuple[tuple[str, Loss, int, float | None, int], ...] = (
    ("kernel_ce_loss, bandwidth 1", kernel_ce_loss, 10**7, 1.0, 10**6),
    ("bandwidth 0.001", partial(kernel_ce_loss, bandwidth=1e-3), 10**7, 6.0, 10**6),
    ("bandwidth 0.0001", partial(kernel_ce_loss, bandwidth=1e-4), 10**7, None, 0),
    ("gaussian", partial(kernel_ce_loss, kernel="gaussian"), 10**6, 1.0, 4096),
    ("smooth_ce_loss", smooth_ce_loss, 10**6, None, 0),
)
_GPU_SIZES = (256, 4096, 65_536, 10**6, 10**7)


def gpu_table(sizes: Sequence[int], repeats: int) -> Table:
    """Time the losses of tensors on the GPU."""
    result = []
    for name, loss, most, target, upto in _ON_GPU:
        shown, kept = [], True
        for n in sizes:
            if n > most:
                shown.append("")
                continue
            p, y = rows(n, "cuda")
            found = gpu_ms(partial(step, loss, p, y), repeats)
            shown.append(number(found))
            if target is not None and n <= upto:
                kept &= found <= target
        wanted = "" if target is None else f"{target:g} ms up to {upto:,}"
        result.append([name, *shown, wanted, "" if target is None else verdict(kept)])
    header = ["ms", *(f"{n:,}" for n in sizes), "target", "verdict"]
    note = "float32, labels int64; the median of runs on an idle GPU, launches and checks included."
    return Table(
        f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}", header, result, note
    )


def resnet_table(batch: int, repeats: int) -> Table:
    """Time a training step of ResNet-50 with one output, without the loss and with it."""
    from torchvision.models import resnet50

    model = resnet50(num_classes=1).cuda()
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    images = torch.rand(batch, 3, 224, 224, device="cuda")
    label = (torch.rand(batch, device="cuda") < 0.5).float()

    def train(loss: Loss | None) -> None:
        optimiser.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            logit = model(images).squeeze(1).float()
        total = torch.nn.functional.binary_cross_entropy_with_logits(logit, label)
        if loss is not None:
            total = total + loss(logit.sigmoid(), label)
        total.backward()
        optimiser.step()

    bare = gpu_ms(partial(train, None), repeats)
    result = [["no", number(bare), "", "", ""]]
    for name, loss, *_ in _ON_GPU:
        found = gpu_ms(partial(train, loss), repeats)
        wanted = name.startswith("kernel")
        result.append(
            [name, number(found), f"{100 * (found / bare - 1):.1f}", "3" if wanted else "",
             verdict(found <= 1.03 * bare) if wanted else ""]
        )  # fmt: skip
    header = ["loss added", "ms", "more, %", "target", "verdict"]
    return Table(f"A training step of ResNet-50, {batch} images, bfloat16", header, result)


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
        repeats = 1 if options.quick else 200
        tables.append(gpu_table([1000] if options.quick else _GPU_SIZES, repeats))
        if find_spec("torchvision") is not None:
            tables.append(resnet_table(8 if options.quick else 256, 1 if options.quick else 30))
    print(
        "\n".join(f"- {line}" for line in [*machine(), f"PyTorch {torch.__version__}"]), end="\n\n"
    )
    print("\n".join(table.as_markdown() for table in tables), end="")


if __name__ == "__main__":
    main()
