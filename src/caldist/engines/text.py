"""Text files of rows: compression, encoding, delimiter and header; rows with their lines.

What a file is shows in its first bytes and its first line, not in its name alone:

- gzip, bzip2, xz and Zstandard are unpacked;
- a byte order mark says the encoding; without one it is UTF-8, and Windows-1252 where the bytes are
  no UTF-8, which changes names and never a number;
- commas, semicolons, tabs or bars separate cells, whichever makes most of the header; ``sep=;``
  in a line before it is believed. Cells may be in double quotes;
- the header is the first line that is not empty. Blanks around its names do not count. A name that
  stands there twice stands for neither column;
- empty lines are no rows. Cells that a line lacks are missing; more than the header has names are
  an error, unless they are empty.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, cast

from caldist._util.cached import cached_property
from caldist.engines.cells import BLANKS
from caldist.errors import InvalidInput, InvalidType

KINDS: dict[str, Literal["csv", "json"]] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
}
_PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_NO_TEXT = {
    b"PAR1": ("Parquet", "Let its name end in .parquet."),
    b"PK\x03\x04": ("a workbook or a zip archive", "Export it as CSV."),
    b"\xd0\xcf\x11\xe0": ("a workbook", "Export it as CSV."),
}
_DELIMITERS = ",;\t|"
_BLOCK = 1 << 20  # bytes
_LOOKED_AT = 1000  # lines of JSON whose keys are the columns

Row = list[str] | dict[str, Any]


def suffix_of(name: str) -> str:
    """Return the end of a file's name, without that of its compression."""
    path = Path(name.lower())
    return path.with_suffix("").suffix if path.suffix in _PACKED.values() else path.suffix


class TextFile:
    """A CSV file or one of JSON lines.

    Attributes
    ----------
    path
        Where it is.
    kind
        "csv" or "json", by its name.
    header
        What its first line says.
    columns
        The names of its columns, each once.
    twice
        Those that several columns have.
    delimiter, decimal
        What separates cells, and what may be in numbers beside the point.
    is_plain
        Whether every reader of CSV would see the same in it.
    """

    def __init__(self, path: Path, kind: Literal["csv", "json"]) -> None:
        self.path, self.kind = path, kind
        self.delimiter, self._before = ",", 0
        with _failing(path), self._bytes() as file:
            head = file.read(_BLOCK)
        self._mark = next((mark for mark in _MARKS if head.startswith(mark)), b"")
        self._head_encoding = _MARKS.get(self._mark) or _encoding_of([head], whole=False)
        self.header: list[str] = []
        if kind == "json":
            self.columns = self._keys()
            self.twice: set[str] = set()
            self.is_plain = self.is_utf8 and self._is_unpacked_by_all
            return
        lines = io.StringIO(head.decode(self._head_encoding, "replace"), newline="")
        self.delimiter, self._before = self._dialect(lines)
        header = self._header()
        self.header = [name.strip(BLANKS) for name in header]
        counted = Counter(self.header)
        self.columns = [name for name in counted if name]
        self.twice = {name for name, times in counted.items() if times > 1 and name}
        folded = Counter(name.casefold() for name in self.columns)
        self.is_plain = (
            self._mark in {b"", codecs.BOM_UTF8}
            and self.is_utf8
            and self._before == 0
            and self.header == header
            and not self.twice
            and max(folded.values(), default=0) == 1
            and self._is_unpacked_by_all
        )

    @property
    def _is_unpacked_by_all(self) -> bool:
        """Whether every reader unpacks the file: its name says how it is packed, if it is."""
        named = self.path.suffix.lower() if self._is_packed_by_name else ""
        return self._packing == named and named in {"", ".gz", ".zst"}

    @property
    def is_utf8(self) -> bool:
        """Whether the file begins as UTF-8."""
        return self._head_encoding.startswith("utf-8")

    @property
    def decimal(self) -> str:
        """What numbers may have beside a point."""
        return "." if self.delimiter == "," else ","

    # -- bytes ---------------------------------------------------------------------------------

    @cached_property
    def _packing(self) -> str:
        """How the file is compressed, by its first bytes."""
        with self.path.open("rb") as file:
            head = file.read(8)
        for magic, why in _NO_TEXT.items():
            if head.startswith(magic):
                reason = f"cannot be read as text, since it is {why[0]} by its content"
                raise InvalidInput(argument=str(self.path), reason=reason, remedy=why[1])
        return next((name for magic, name in _PACKED.items() if head.startswith(magic)), "")

    @property
    def _is_packed_by_name(self) -> bool:
        return self.path.suffix.lower() in _PACKED.values()

    def _bytes(self) -> IO[bytes]:
        """Open the file, unpacked."""
        openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
        if self._packing in openers:
            return cast("IO[bytes]", openers[self._packing](self.path, "rb"))
        if self._packing == ".zst":
            from caldist._util.optional import require

            arrow = require("pyarrow", extra="engines")
            return cast("IO[bytes]", arrow.input_stream(str(self.path), compression="zstd"))
        return self.path.open("rb")

    @cached_property
    def encoding(self) -> str:
        """How the bytes are text, by all of them."""
        if self._mark:
            return _MARKS[self._mark]
        with _failing(self.path), self._bytes() as file:
            return _encoding_of(iter(lambda: file.read(_BLOCK), b""), whole=True)

    def _text(self) -> IO[str]:
        return io.TextIOWrapper(self._bytes(), self.encoding, "replace", newline="")

    # -- the header ------------------------------------------------------------------------------

    def _dialect(self, lines: IO[str]) -> tuple[str, int]:
        """Return the delimiter and how many lines come before the header."""
        order = "\t,;|" if suffix_of(self.path.name) == ".tsv" else _DELIMITERS
        start = 0
        for number, line in enumerate(lines):
            clean = line.strip(BLANKS)
            if clean.lower().startswith("sep=") and len(clean) <= 5:
                return (clean[4:] or "\t"), number + 1
            if clean:
                break
            start += len(line)
        lines.seek(start)
        content = lines.read()

        def width(delimiter: str) -> int:
            reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter)
            try:
                return len(next(reader, []))
            except csv.Error:
                return 0

        return max(order, key=width), 0

    def _header(self) -> list[str]:
        with _failing(self.path), self._text_of_head() as file:
            row: list[str]
            for row in self._reader(file):
                if not _is_empty(row):
                    while len(row) > 1 and not row[-1].strip(BLANKS):
                        row.pop()  # a delimiter at the end of the line
                    return row
        remedy = "A header and rows are needed."
        raise InvalidInput(argument=str(self.path), reason="is empty", remedy=remedy)

    def _text_of_head(self) -> IO[str]:
        return io.TextIOWrapper(self._bytes(), self._head_encoding, "replace", newline="")

    def _keys(self) -> list[str]:
        found: dict[str, None] = {}
        for _, row in islice(self.rows(), _LOOKED_AT):
            found |= dict.fromkeys(cast("dict[str, Any]", row))
        if not found:
            raise InvalidInput(argument=str(self.path), reason="has no rows")
        return list(found)

    # -- rows ------------------------------------------------------------------------------------

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Give the line on which each row begins, counted from 1, and its cells."""
        yield from (self._json_rows() if self.kind == "json" else self._csv_rows())

    def _reader(self, file: IO[str]) -> Any:
        for _ in range(self._before):
            file.readline()
        return csv.reader(file, delimiter=self.delimiter, skipinitialspace=True, strict=True)

    def _csv_rows(self) -> Iterator[tuple[int, Row]]:
        with _failing(self.path) as at, self._text() as file:
            reader = self._reader(file)
            width, is_header, last = len(self.header), True, self._before
            for row in reader:
                at[0], last = last + 1, reader.line_num + self._before
                if _is_empty(row):
                    continue
                if is_header:
                    is_header = False
                    continue
                if len(row) > width and any(cell.strip(BLANKS) for cell in row[width:]):
                    mark = _SPOKEN.get(self.delimiter, self.delimiter)
                    raise InvalidInput(
                        argument=f"{self.path}, line {at[0]},",
                        reason=f"has {len(row)} values, more than the header has names ({width})",
                        remedy=f"Put those that hold a {mark} in quotes, or name all columns.",
                    )
                yield at[0], row
                at[0] = last + 1

    def _json_rows(self) -> Iterator[tuple[int, Row]]:
        with _failing(self.path) as at, self._text() as file:
            for at[0], line in enumerate(file, start=1):
                if not line.strip(BLANKS):
                    continue
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise InvalidType(
                        argument=f"{self.path}, line {at[0]},",
                        reason="is no JSON object",
                        remedy='One a line is needed, as {"label": 1, "score": 0.75}.',
                    )
                yield at[0], row

    def position(self, name: str) -> int | str | None:
        """Return what a row is asked for a cell of a column; None if there is no such column."""
        if self.kind == "json":
            return name
        return self.header.index(name) if name in self.header else None

    def cells(self, names: Sequence[str], limit: int | None = None) -> list[list[object]]:
        """Return columns as they stand in the file, None where a line has no such cell."""
        found: list[list[object]] = [[] for _ in names]
        places = [(column, self.position(name)) for column, name in zip(found, names, strict=True)]
        for _, row in islice(self.rows(), limit):
            for column, place in places:
                column.append(cell_of(row, place))
        return found


@contextmanager
def _failing(path: Path) -> Iterator[list[int]]:
    """Say the file, and the line that is kept in a list, in errors of CSV, JSON and compression."""
    at = [1]
    try:
        with unpacking(path):
            yield at
    except (csv.Error, json.JSONDecodeError) as error:
        place = f"{path}, line {at[0]},"
        raise InvalidInput(argument=place, reason=f"cannot be read: {error}") from error


@contextmanager
def unpacking(name: object) -> Iterator[None]:
    """Say the name of a compressed file that is damaged."""
    try:
        yield
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the system, not of bz2
            raise
        reason = f"cannot be unpacked, it is damaged or cut off: {error}"
        raise InvalidInput(argument=str(name), reason=reason) from error


_SPOKEN = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


def cell_of(row: Row, place: int | str | None) -> object:
    """Return a cell of a row, None if it has none."""
    if isinstance(row, dict):
        return row.get(cast("str", place))
    return row[place] if isinstance(place, int) and place < len(row) else None


def _is_empty(row: Sequence[str]) -> bool:
    return not row or (len(row) == 1 and not row[0].strip(BLANKS))


def _encoding_of(blocks: Any, *, whole: bool) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for block in blocks:
            decoder.decode(block)
        if whole:
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"
