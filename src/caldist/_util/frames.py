"""Named columns as a data frame of pandas or polars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist._util.invalid import InvalidInput

_LIBRARIES = ("pandas", "polars")


def frame(columns: Mapping[str, NDArray[Any] | Sequence[Any]], library: str = "pandas") -> Any:
    """Return named columns as a data frame.

    Parameters
    ----------
    columns : mapping from str to array or list
        Columns of equal length. Lists hold text.
    library : "pandas" or "polars"

    Examples
    --------
    >>> from caldist._util.frames import frame
    >>> frame({"model": ["a", "b"], "value": [0.25, 0.5]}, "polars").shape
    (2, 2)
    """
    if library not in _LIBRARIES:
        reason = f"it must be one of {', '.join(map(repr, _LIBRARIES))}"
        raise InvalidInput(argument="library", value=library, reason=reason)
    if find_spec(library) is None:
        message = f"a frame needs {library}, which is not installed: pip install {library}"
        raise ImportError(message)
    make = import_module(library).DataFrame
    return make({key: _writable(column) for key, column in columns.items()})


def _writable(column: NDArray[Any] | Sequence[Any]) -> NDArray[Any] | Sequence[Any]:
    """Copy arrays, so that a frame that is changed does not change what it was made from."""
    return column.copy() if isinstance(column, np.ndarray) else column
