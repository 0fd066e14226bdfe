"""Named columns as a data frame of whichever library is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist import _validate

_MAKERS = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}  # the first that is


def frame(columns: Mapping[str, NDArray[Any] | Sequence[Any]], library: str | None = None) -> Any:
    """Return named columns as a pandas or polars data frame or a pyarrow table.

    Parameters
    ----------
    columns : mapping from str to array or list
        Columns of equal length. Lists hold text.
    library : "pandas", "polars" or "pyarrow", optional
        By default the first of the three that is installed.

    Examples
    --------
    >>> from caldist._util.frames import frame
    >>> frame({"model": ["a", "b"], "value": [0.25, 0.5]}, "polars").shape
    (2, 2)
    """
    if library is not None:
        _validate.check_choice("library", library, tuple(_MAKERS))
    for name in _MAKERS if library is None else (library,):
        if find_spec(name) is not None:
            make = getattr(import_module(name), _MAKERS[name])
            return make({key: _writable(column) for key, column in columns.items()})
    wanted = "one of pandas, polars and pyarrow" if library is None else library
    message = f"a frame needs {wanted}, which is not installed: pip install {library or 'pandas'}"
    raise ImportError(message)


def library_of(values: object) -> str | None:
    """Return which of the libraries an object comes from; None for others."""
    name = type(values).__module__.partition(".")[0]
    return name if name in _MAKERS else None


def _writable(column: NDArray[Any] | Sequence[Any]) -> NDArray[Any] | Sequence[Any]:
    """Copy arrays, so that a frame that is changed does not change what it was made from."""
    return column.copy() if isinstance(column, np.ndarray) else column
