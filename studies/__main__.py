"""Measure the coverage of intervals and repairs, the power of tests: ``python -m studies NAME``.

Run it from the root of the repository. Finished cells are kept in CSV files, so that a run that was
stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from studies import coverage, figures, pages, power, repair, repair_page
from studies.runs import Row, run_cells, write_bytes

_QUICK_COVERAGE = coverage.Plan(
    data_sets=(2, 2, 2), n_resamples=59, longest=1, means=1, bootstrap_sets=1, distance_sets=1,
    bootstrap_resamples=5,
)  # fmt: skip
_QUICK_REPAIR = repair.Plan(data_sets=(2, 2, 2), bound_sets=2, quality_sets=1, real_splits=1)
_QUICK_POWER = power.Plan(data_sets=(3, 2, 2), power_sets=2, n_resamples=19)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m studies", description=__doc__)
    parser.add_argument("study", choices=("coverage", "power", "repair"))
    parser.add_argument("--quick", action="store_true", help="a few data sets: does it run?")
    parser.add_argument("--fresh", action="store_true", help="compute all cells again")
    parser.add_argument(
        "--sets",
        type=int,
        help="data sets in each cell of limits by splitting, or of coverage of repair",
    )
    parser.add_argument(
        "--jobs", "--workers", dest="jobs", type=int, default=2, help="number of processes"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("docs/studies"), help="folder for pages and figures"
    )
    return parser


def _coverage_cell(
    plan: Callable[[tuple[str | int, ...]], coverage.Plan], name: str, n: int, measure: str
) -> list[Row]:
    return coverage.coverage_cell(name, n, measure, plan=plan((name, n, measure)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; 1 if a cell does not hold what is promised."""
    options = _parser().parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    table = options.out / f"{options.study}.csv"
    if options.fresh:
        table.unlink(missing_ok=True)
    command = f"python -m studies {options.study}{' --quick' if options.quick else ''}"
    if options.study == "coverage":
        plan = _QUICK_COVERAGE if options.quick else coverage.FULL
        splitting = _QUICK_COVERAGE if options.quick else coverage.SPLITTING
        if options.sets is not None:
            sets = (options.sets,) * len(coverage.ROWS)
            splitting = replace(splitting, data_sets=sets, longest=1)
            command += f" --sets {options.sets}"
        chosen = partial(coverage.plan_of, plan, splitting)
        cells = coverage.cells(coverage.ROWS[:1] if options.quick else coverage.ROWS)
        rows = run_cells(
            cells, partial(_coverage_cell, chosen), lambda cell: str(chosen(cell)), table,
            jobs=options.jobs, title="coverage",
        )  # fmt: skip
        page = pages.coverage_page(rows, plan, splitting, command)
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
    else:
        tests = _QUICK_POWER if options.quick else power.FULL
        rows = run_cells(
            power.cells(), partial(power.power_cell, plan=tests), str(tests), table,
            jobs=options.jobs, title="size and power",
        )  # fmt: skip
        page, figure = pages.power_page(rows, tests, command), figures.power_figure(rows)
    write_bytes(options.out / f"{options.study}.md", page.encode())
    write_bytes(options.out / f"{options.study}.svg", figure)
    return int(pages.FAIL in page)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on with what is missing")
