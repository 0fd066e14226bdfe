"""Measure coverage, power, and what repairs, monitors and penalties do: ``python -m studies NAME``.

Run it from the root of the repository. Finished cells are kept in CSV files, so that a run that was
stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from studies import (
    coverage,
    figures,
    monitor,
    monitor_page,
    multiclass,
    pages,
    power,
    repair,
    repair_page,
    training,
    training_page,
)
from studies.runs import run_cells, write_bytes

_QUICK_COVERAGE = coverage.Plan(
    data_sets=2, n_resamples=59, bootstrap_sets=1, distance_sets=1, bootstrap_resamples=5
)
_QUICK_MULTICLASS = multiclass.Plan(data_sets=2, many_classes=1)
_QUICK_REPAIR = repair.Plan(
    data_sets=(2, 2, 2), bound_sets=2, quality_sets=1, real_splits=1, few_sets=1
)
_QUICK_POWER = power.Plan(data_sets=(3, 2, 2), power_sets=2, n_resamples=19)
_STUDIES = ("coverage", "power", "repair", "monitor", "multiclass", "training")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m studies", description=__doc__)
    parser.add_argument("study", choices=_STUDIES)
    parser.add_argument("--quick", action="store_true", help="a few data sets: does it run?")
    parser.add_argument("--fresh", action="store_true", help="compute all cells again")
    parser.add_argument(
        "--sets",
        type=int,
        help="data sets in each cell of repair; of the monitor, streams of each calibrated law, "
        "and a tenth as many of the others",
    )
    parser.add_argument(
        "--jobs", "--workers", dest="jobs", type=int, default=2, help="number of processes"
    )
    parser.add_argument(
        "--device", help="where training computes: cpu or cuda; by default a GPU if there is one"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("docs/studies"), help="folder for pages and figures"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; 1 if a cell does not hold what is promised."""
    options = _parser().parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    table = options.out / f"{options.study}.csv"
    if options.fresh:
        table.unlink(missing_ok=True)
    command = f"python -m studies {options.study}{' --quick' if options.quick else ''}"
    if options.study == "multiclass":
        limits = _QUICK_MULTICLASS if options.quick else multiclass.FULL
        tried = multiclass.cells((200,), (2, 3)) if options.quick else multiclass.cells()
        rows = run_cells(
            tried, partial(multiclass.limits_cell, plan=limits), str(limits), table,
            jobs=options.jobs, title="several classes",
        )  # fmt: skip
        page = multiclass.page(rows, limits, command)
        write_bytes(options.out / "multiclass.md", page.encode())
        return int(pages.FAIL in page)
    if options.study == "coverage":
        plan = _QUICK_COVERAGE if options.quick else coverage.FULL
        cells = coverage.cells(coverage.ROWS[:1] if options.quick else coverage.ROWS)
        rows = run_cells(
            cells, partial(coverage.coverage_cell, plan=plan), str(plan), table,
            jobs=options.jobs, title="coverage",
        )  # fmt: skip
        page = pages.coverage_page(rows, plan, command)
        figure = figures.coverage_figure(rows)
    elif options.study == "repair":
        maps = _QUICK_REPAIR if options.quick else repair.FULL
        if options.sets is not None:
            maps = replace(maps, data_sets=(options.sets,) * len(repair.ROWS))
            command += f" --sets {options.sets}"
        rows = run_cells(
            repair.cells(), partial(repair.repair_cell, plan=maps), str(maps), table,
            jobs=options.jobs, title="repair",
        )  # fmt: skip
        page = repair_page.repair_page(rows, maps, command)
        figure = repair_page.repair_figure(rows)
    elif options.study == "monitor":
        streams = monitor.QUICK if options.quick else monitor.FULL
        if options.sets is not None:
            streams = monitor.of_size(options.sets)
            command += f" --sets {options.sets}"
        rows = run_cells(
            monitor.cells(streams), partial(monitor.monitor_cell, plan=streams), str(streams),
            table, jobs=options.jobs, title="monitor",
        )  # fmt: skip
        page, figure = monitor_page.monitor_page(rows, streams, command), None
    elif options.study == "training":
        networks = training.QUICK if options.quick else training.FULL
        device = options.device or training.default_device()
        rows = run_cells(
            training.cells(), partial(training.training_cell, plan=networks, device=device),
            str(networks), table, jobs=options.jobs, title="training",
        )  # fmt: skip
        page = training_page.training_page(rows, networks, command)
        figure = training_page.training_figure(rows)
    else:
        tests = _QUICK_POWER if options.quick else power.FULL
        rows = run_cells(
            power.cells(), partial(power.power_cell, plan=tests), str(tests), table,
            jobs=options.jobs, title="size and power",
        )  # fmt: skip
        page, figure = pages.power_page(rows, tests, command), figures.power_figure(rows)
    write_bytes(options.out / f"{options.study}.md", page.encode())
    if figure is not None:
        write_bytes(options.out / f"{options.study}.svg", figure)
    return int(pages.FAIL in page)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on with what is missing")
