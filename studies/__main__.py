"""Measure coverage, power, recalibrations, monitors and penalties: ``python -m studies NAME``.

Run it from the root of the repository. Finished cells are kept in CSV files, so that a run that was
stopped goes on where it was. Those of ``docs/studies`` are part of the repository; the site draws
pages and figures from them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from studies import (
    coverage,
    figures,
    monitor,
    monitor_page,
    multiclass,
    pages,
    power,
    recalibration,
    recalibration_page,
    training,
    training_page,
)
from studies.runs import Cell, Row, read_rows, run_cells, write_bytes


@dataclass(frozen=True)
class Study:
    """What is computed, how much of it, and how it is shown.

    Attributes
    ----------
    cells
        Returns the cells of a plan.
    compute
        Returns the rows of one cell, with a plan.
    full, quick
        Plans: that of the stored table, and one that shows in a minute whether all of it runs.
    page, figure
        Return the page of rows, a plan and a command, and the figure of rows.
    sized
        Returns a full plan with another number of data sets.
    """

    cells: Callable[[Any], Sequence[Cell]]
    compute: Callable[..., list[Row]]
    full: Any
    quick: Any
    page: Callable[[list[Row], Any, str], str]
    figure: Callable[[list[Row]], bytes] | None = None
    sized: Callable[[int], Any] | None = None


_QUICK_COVERAGE = coverage.Plan(
    data_sets=2, n_resamples=59, bootstrap_sets=1, distance_sets=1, bootstrap_resamples=5
)
_QUICK_MULTICLASS = multiclass.Plan(data_sets=2, many_classes=1)
_QUICK_RECALIBRATION = recalibration.Plan(
    data_sets=(2, 2, 2), bound_sets=2, quality_sets=1, real_splits=1, few_sets=1
)
_QUICK_POWER = power.Plan(data_sets=(3, 2, 2), power_sets=2, n_resamples=19)


def _coverage_cells(plan: coverage.Plan) -> Sequence[Cell]:
    return coverage.cells(coverage.ROWS[:1] if plan is _QUICK_COVERAGE else coverage.ROWS)


def _multiclass_cells(plan: multiclass.Plan) -> Sequence[Cell]:
    return multiclass.cells((200,), (2, 3)) if plan is _QUICK_MULTICLASS else multiclass.cells()


STUDIES = {
    "coverage": Study(
        _coverage_cells, coverage.coverage_cell, coverage.FULL, _QUICK_COVERAGE,
        pages.coverage_page, figures.coverage_figure,
    ),
    "power": Study(
        lambda _: power.cells(), power.power_cell, power.FULL, _QUICK_POWER,
        pages.power_page, figures.power_figure,
    ),
    "recalibration": Study(
        lambda _: recalibration.cells(), recalibration.recalibration_cell, recalibration.FULL,
        _QUICK_RECALIBRATION, recalibration_page.recalibration_page,
        recalibration_page.recalibration_figure, lambda sets: replace(recalibration.FULL,
        data_sets=(sets,)
        * len(recalibration.ROWS)),
    ),
    "monitor": Study(
        monitor.cells, monitor.monitor_cell, monitor.FULL, monitor.QUICK,
        monitor_page.monitor_page, sized=monitor.of_size,
    ),
    "multiclass": Study(
        _multiclass_cells, multiclass.limits_cell, multiclass.FULL, _QUICK_MULTICLASS,
        multiclass.page,
    ),
    "training": Study(
        lambda _: training.cells(), training.training_cell, training.FULL, training.QUICK,
        training_page.training_page, training_page.training_figure,
    ),
}  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m studies", description=__doc__)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--quick", action="store_true", help="a few data sets: does it run?")
    parser.add_argument("--fresh", action="store_true", help="compute all cells again")
    parser.add_argument(
        "--sets",
        type=int,
        help="data sets in each cell of recalibration; of the monitor, streams of each calibrated "
        "law, "
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
    study = STUDIES[options.study]
    table = options.out / f"{options.study}.csv"
    options.out.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        table.unlink(missing_ok=True)
    command = f"python -m studies {options.study}{' --quick' if options.quick else ''}"
    plan, compute = study.quick if options.quick else study.full, study.compute
    if options.sets is not None and study.sized is not None:
        plan = study.sized(options.sets)
        command += f" --sets {options.sets}"
    if options.study == "training":
        compute = partial(compute, device=options.device or training.default_device())
    rows = run_cells(
        study.cells(plan), partial(compute, plan=plan), str(plan), table,
        jobs=options.jobs, title=options.study,
    )  # fmt: skip
    return int(pages.FAIL in write_page(options.study, options.out, rows, plan, command))


def write_page(name: str, folder: Path, rows: list[Row], plan: Any, command: str) -> str:
    """Write the page and the figure of some rows, and return the page."""
    study = STUDIES[name]
    page = study.page(rows, plan, command)
    write_bytes(folder / f"{name}.md", page.encode())
    if study.figure is not None:
        write_bytes(folder / f"{name}.svg", study.figure(rows))
    return page


def write_stored_page(name: str, folder: Path) -> str:
    """Write the page and the figure of the table in a folder, which follows the full plan."""
    rows = read_rows(folder / f"{name}.csv")
    return write_page(name, folder, rows, STUDIES[name].full, f"python -m studies {name}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on with what is missing")
