"""``Result``: what everything that is returned with structure can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from caldist._util.escaping import for_html
from caldist._util.frames import frame


class Result:
    """A frozen dataclass that can be read as a dict and as a frame.

    A result of several lines says so in :meth:`_lines`; any other is one line of its numbers and
    texts.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain Python values, ready for JSON."""
        return {
            item.name: plain(getattr(self, item.name))
            for item in fields(self)  # type: ignore[arg-type]
            if item.repr
        }

    def to_frame(self, library: str | None = None) -> Any:
        """Return the result as a data frame, a line for each part.

        Parameters
        ----------
        library : "pandas", "polars" or "pyarrow", optional
            By default that of the data it was made from, or else the first that is installed.
        """
        lines = self._lines()
        columns = {name: [line[name] for line in lines] for name in lines[0]} if lines else {}
        return frame(columns, library or getattr(self, "library", None))

    def _lines(self) -> list[dict[str, Any]]:
        """Return the lines of the frame, all with the same columns."""
        content = self.to_dict()
        return [{key: v for key, v in content.items() if not isinstance(v, list | dict)}]

    def _repr_html_(self) -> str:
        """Show the lines as a table in a notebook."""
        lines = self._lines()
        head = "".join(f"<th>{for_html(str(name))}</th>" for name in (lines[0] if lines else ()))
        body = "".join(
            "<tr>" + "".join(f"<td>{for_html(_cell(v))}</td>" for v in line.values()) + "</tr>"
            for line in lines
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


def plain(value: Any) -> Any:
    """Return a value in terms of dicts, lists, numbers, texts and None."""
    if isinstance(value, Result):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else str(key): plain(item) for key, item in value.items()
        }
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
