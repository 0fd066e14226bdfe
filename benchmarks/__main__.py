"""Run the benchmarks and print them: ``python -m benchmarks``, from the root of the repository."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from benchmarks import cores, diagrams, growth, many, peers, recalibration
from benchmarks.digits import digits_table
from benchmarks.families import FAMILIES
from benchmarks.intervals import LARGE as MANY_ROWS
from benchmarks.intervals import SIZES, interval_table, limits_table, statistics_table
from benchmarks.measures import MEASURES
from benchmarks.monitor import DAYS, LARGE, YEAR, monitor_table, year_table
from benchmarks.multiclass import multiclass_table
from benchmarks.ratios import cells, measure_cells, ratio_table
from benchmarks.startup import startup_table
from benchmarks.sums import MEMORY_ROWS, sums_memory_table, sums_table
from benchmarks.sums import SIZES as SUMS_SIZES
from benchmarks.tables import Table, machine, page
from benchmarks.timing import ONCE, THOROUGH
from caldist._util.atomic_files import write_atomically

_SIZES = (10**4, 10**5, 10**6, 10**7)
_QUICK_SIZES = (100, 200)
_QUICK_PEER_ROWS = 200


def _sizes(text: str) -> list[int]:
    sizes = sorted({int(float(part)) for part in text.split(",")})
    if sizes[0] < 1:
        message = f"{text!r} has a size below 1"
        raise argparse.ArgumentTypeError(message)
    return sizes


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--sizes", type=_sizes, help="numbers of rows, such as 1e4,1e6")
    parser.add_argument("--families", type=_names, help=f"out of {', '.join(FAMILIES)}")
    parser.add_argument("--measures", type=_names, help=f"out of {', '.join(MEASURES)}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, once each: does it run?")
    parser.add_argument("--peers", action="store_true", help="other libraries and solvers too")
    parser.add_argument(
        "--peers-large", action="store_true", help="and Clarabel on a million rows, for minutes"
    )
    parser.add_argument(
        "--intervals", action="store_true", help="only confidence intervals and limits"
    )
    parser.add_argument(
        "--monitor", action="store_true", help="only the monitor: batches, years, a year of files"
    )
    parser.add_argument(
        "--sums",
        action="store_true",
        help="only sums over rows, smECE and diagrams, beside their peers",
    )
    parser.add_argument(
        "--growth", action="store_true", help="only the growth of each measure beside np.sort"
    )
    parser.add_argument(
        "--cores", action="store_true", help="only sorted measures by the clock, beside np.sort"
    )
    parser.add_argument("--multiclass", action="store_true", help="only several classes")
    parser.add_argument(
        "--recalibration",
        action="store_true",
        help="only recalibration: maps, statements, summaries, files",
    )
    parser.add_argument(
        "--many", action="store_true", help="only many groups, and reports on many rows"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables as a page")
    return parser


def _tables(options: argparse.Namespace) -> list[Table]:
    effort = ONCE if options.quick else THOROUGH
    sizes = options.sizes or (_QUICK_SIZES if options.quick else _SIZES)
    if options.intervals:
        chosen = sizes if options.quick or options.sizes else SIZES
        largest = max(sizes) if options.quick or options.sizes else MANY_ROWS
        return [
            interval_table(chosen, effort),
            limits_table(largest, effort),
            statistics_table(largest, effort),
        ]
    if options.monitor:
        days, large = ((3, 5), 10_000) if options.quick else (DAYS, LARGE)
        tables = [monitor_table(days, large, effort)]
        if find_spec("duckdb") is not None:
            tables.append(year_table(3 if options.quick else YEAR, large))
        return tables
    several = sizes if options.quick or options.sizes else SUMS_SIZES
    if options.sums:
        largest = min(max(several), MEMORY_ROWS)
        tables = [sums_table(several, effort), sums_memory_table(largest)]
        return [*tables, diagrams.diagram_table(several, effort)] if diagrams.CAN_RUN else tables
    if options.growth:
        measures = [MEASURES[name] for name in options.measures or MEASURES]
        wanted = sizes if options.quick or options.sizes else growth.SIZES
        effort = ONCE if options.quick else growth.EFFORT
        ratios, sorting = growth.measure_growth(measures, wanted, effort)
        return [growth.growth_table(ratios, sorting, effort)]
    if options.cores:
        chosen = sizes if options.quick or options.sizes else cores.SIZES
        return [cores.cores_table(chosen, ONCE if options.quick else cores.EFFORT)]
    if options.multiclass:
        quick = options.quick
        return [multiclass_table(effort, quick=quick), digits_table(quick=quick)]
    if options.recalibration:
        return [
            recalibration.recalibration_table(
                recalibration.QUICK if options.quick else recalibration.LARGE, effort
            )
        ]
    if options.many:
        return [many.many_table(many.QUICK if options.quick else many.LARGE)]
    measures = [MEASURES[name] for name in options.measures or MEASURES]
    families = [FAMILIES[name] for name in options.families or FAMILIES]
    wanted = cells(
        measures,
        families,
        sizes,
        every_family=options.families is not None,
        every_size=options.measures is not None,
    )
    timings = measure_cells(wanted, measures, families, effort)
    tables = [ratio_table(measures, families, sizes, timings, effort)]
    if options.measures is None or "smooth_ce" in options.measures:
        tables.append(startup_table(sizes[-1], repeats=1 if options.quick else 7))
    if options.peers or options.peers_large:
        n = _QUICK_PEER_ROWS if options.quick else peers.ROWS
        large = peers.LARGE_ROWS if options.peers_large else None
        tables.append(peers.peer_table(n, large, effort))
        tables.append(sums_table(several, effort))
    return tables


def _write(path: Path, text: str) -> None:
    def fill(file: IO[bytes]) -> None:
        file.write(text.encode())

    write_atomically(path, fill)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    options = parser.parse_args(given)
    for kind, known in (("families", FAMILIES), ("measures", MEASURES)):
        unknown = [name for name in getattr(options, kind) or () if name not in known]
        if unknown:
            parser.error(f"unknown {kind}: {', '.join(unknown)}; known: {', '.join(known)}")
    tables = _tables(options)
    print("\n".join(machine()), end="\n\n")
    print("\n".join(table.as_text() for table in tables), end="")
    if options.markdown is not None:
        _write(options.markdown, page(tables, given))
    return 0


if __name__ == "__main__":
    sys.exit(main())
