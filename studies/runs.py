"""Run the cells of a study in several processes, and keep what is finished.

Each cell draws from random streams named after it, so its result depends on neither the other
cells nor the number of processes. Finished cells are rows of a CSV file; a run that was stopped
goes on from there. What is the same in all rows stands once, in lines above the table.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import IO

from tqdm import tqdm

from caldist._util.atomic_files import write_atomically

__all__ = ["Cell", "Row", "read_rows", "run_cells", "write_bytes"]

Cell = tuple[str | int, ...]
Row = dict[str, str]
Work = Callable[..., list[Row]]


def run_cells(
    cells: Sequence[Cell],
    work: Work,
    plan: str,
    path: Path,
    *,
    jobs: int,
    title: str,
) -> list[Row]:
    """Return the rows of all cells, in their order; compute those that ``path`` does not have.

    ``plan`` says with which settings rows are computed. Rows of another plan are not reused.
    """
    done: dict[str, list[Row]] = {}
    for row in read_rows(path):
        if row["plan"] == plan:
            done.setdefault(row["cell"], []).append(row)
    missing = [cell for cell in cells if _name(cell) not in done]
    with tqdm(
        total=len(cells), initial=len(cells) - len(missing), desc=title, unit=" cells"
    ) as bar:
        for cell, rows in _results(missing, work, jobs):
            name = _name(cell)
            done[name] = [{"cell": name, "plan": plan, **row} for row in rows]
            _save(path, (row for c in cells for row in done.get(_name(c), ())))
            bar.update()
    return [row for cell in cells for row in done[_name(cell)]]


def _name(cell: Cell) -> str:
    return " / ".join(map(str, cell))


def _results(cells: Sequence[Cell], work: Work, jobs: int) -> Iterator[tuple[Cell, list[Row]]]:
    if jobs == 1:
        for cell in cells:
            yield cell, work(*cell)
        return
    # Fresh processes: forks of one that has threads may hang.
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        waiting: dict[Future[list[Row]], Cell] = {pool.submit(work, *cell): cell for cell in cells}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV file, none if there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        lines = file.readlines()
    above = [line[2:].rstrip("\n").partition(": ") for line in lines if line.startswith("# ")]
    same = {column: value for column, _, value in above}
    return [same | row for row in csv.DictReader(lines[len(above) :])]


def _save(path: Path, rows: Iterable[Row]) -> None:
    listed = list(rows)
    same = {
        column: value
        for column, value in listed[0].items()
        if column != "cell" and all(row[column] == value for row in listed)
    }
    text = io.StringIO()
    text.writelines(f"# {column}: {value}\n" for column, value in same.items())
    columns = [column for column in listed[0] if column not in same]
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    write_bytes(path, text.getvalue().encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""

    def fill(file: IO[bytes]) -> None:
        file.write(content)

    write_atomically(path, fill)
