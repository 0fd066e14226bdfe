"""Many groups, many models, and reports on many rows: processor time and memory, a process each."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import dataclass

from benchmarks.tables import Table, number, size_name, verdict

__all__ = ["LARGE", "QUICK", "Sizes", "many_table"]

# What every process begins and ends with; a report's libraries are loaded before the clock runs.
_BEFORE = """
import json, resource, sys, tempfile, time, warnings
import numpy as np
import caldist
warnings.simplefilter("ignore")
rng = np.random.default_rng(1)
def rows(n):
    p = rng.beta(2, 3, n)
    return (rng.random(n) < np.clip(p + 0.03 * np.sin(7 * p), 0, 1)).astype(np.uint8), p
def models(p, number):
    return {f"m{at}": np.clip(p + 0.02 * rng.standard_normal(p.size), 0, 1) for at in range(number)}
def page(found):
    with tempfile.TemporaryDirectory() as folder:
        found.to_html(folder + "/report.html")
"""
_WARM = "page(caldist.report(*rows(400), n_resamples=99))"
_AFTER = """
spent = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([spent, peak * (1 if sys.platform == "darwin" else 1024)]))
"""


@dataclass(frozen=True)
class Sizes:
    """How many rows a report has, how many groups, and how often a summary is added to itself.

    ``models`` is how many models there are, and ``few`` and ``paired`` how many rows they have.
    """

    rows: int
    groups: tuple[int, int]
    doublings: int
    models: int
    few: int
    paired: int


LARGE = Sizes(rows=10**6, groups=(1_000, 10_000), doublings=7, models=100, few=10**4, paired=10**5)
QUICK = Sizes(rows=600, groups=(3, 4), doublings=1, models=3, few=200, paired=300)


@dataclass(frozen=True)
class _Task:
    name: str
    data: str
    call: str
    seconds: float | None = None
    megabytes: float | None = None


def _tasks(sizes: Sizes) -> list[_Task]:
    n, (few, many) = sizes.rows, sizes.groups
    data = f"y, p = rows({n})"
    grouped = f"{data}\nby = np.arange({n}) % "
    summary = f"{data}\nj = caldist.Joint.from_arrays(y, p).coarsen(16)" + (
        "\nj = j + j" * sizes.doublings
    )
    size = size_name(n)
    groups = "caldist.evaluate_groups(y, p, by=by, rng=0"
    several = [
        f"y, p = rows({rows})\nm = models(p, {sizes.models})" for rows in (sizes.few, sizes.paired)
    ]
    each = "[caldist.evaluate(y, q) for q in m.values()]"
    pairs = f"compare_all, {sizes.models} models, {size_name(sizes.paired)} rows"
    split = "rng=0, method='cross_fit'"
    return [
        _Task(f"evaluate_groups, {few:,} groups, {size} rows", f"{grouped}{few}", f"{groups})", 10),
        _Task(
            f"the same, {many:,} groups, smooth_ce alone",
            f"{grouped}{many}",
            f"{groups}, measures=['smooth_ce'])",
        ),
        _Task(f"report with HTML, {size} rows", data, "page(caldist.report(y, p))", 10, 300),
        _Task(
            f"the same by {few:,} groups",
            f"{grouped}{few}",
            "page(caldist.report(y, p, by=by.astype(str)))",
            10,
        ),
        _Task(
            f"report with HTML, a summary of {size_name(n * 2**sizes.doublings)} rows",
            summary,
            "page(caldist.report(j))",
            10,
            1000,
        ),
        *(
            _Task(f"evaluate, {sizes.models} models one by one, {size_name(rows)} rows", data, each)
            for rows, data in zip((sizes.few, sizes.paired), several, strict=True)
        ),
        _Task(
            f"{pairs}: {math.comb(sizes.models, 2):,} pairs",
            several[1],
            f"caldist.inference.compare_all(y, m, {split})",
        ),
        _Task(
            "compare, ten of these pairs one by one",
            several[1],
            f"[caldist.compare(y, p, q, {split}) for q in list(m.values())[:10]]",
        ),
    ]


def many_table(sizes: Sizes) -> Table:
    """Lay out what many groups and many rows cost."""
    rows = []
    for task in _tasks(sizes):
        warm = _WARM if sizes is LARGE and task.call.startswith("page") else ""
        script = (
            f"{_BEFORE}\n{warm}\n{task.data}\nstart = time.process_time()\n{task.call}\n{_AFTER}"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, check=True, text=True
        )
        spent, peak = json.loads(done.stdout)
        peak /= 1e6
        kept = (task.seconds is None or spent <= task.seconds) and (
            task.megabytes is None or peak <= task.megabytes
        )
        judged = sizes is LARGE and task.seconds is not None
        most = [] if task.seconds is None else [f"{task.seconds:g} s"]
        most += [] if task.megabytes is None else [f"{task.megabytes:g} MB"]
        rows.append(
            [
                task.name,
                number(spent),
                f"{peak:.0f}",
                ", ".join(most),
                verdict(kept) if judged else "",
            ]
        )
    note = (
        "Processor time of all threads, once, from raw unsorted arrays; peak memory of the process,"
        " of which NumPy, matplotlib and the data take about 110 MB. The summary is made before "
        "the clock runs. Models on the same rows share labels, whose check is a thousandth of an "
        "evaluation, so that there is nothing to gain from evaluating them together; pairs share "
        "far more."
    )
    header = ["task", "processor, s", "peak, MB", "target", "verdict"]
    return Table("Many groups, many models, and reports on many rows", header, rows, note)
