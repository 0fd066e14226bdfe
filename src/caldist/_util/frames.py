"""Named columns as a data frame of whichever library is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["frame"]

_MAKERS = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}  # the first that is


def frame(columns: Mapping[str, NDArray[Any] | Sequence[Any]]) -> Any:
    """Return named columns as a pandas or polars data frame or a pyarrow table.

    The first of the three that is installed is taken.

    Parameters
    ----------
    columns : mapping from str to array or list
        Columns of equal length. Lists hold text.

    Examples
    --------
    >>> from caldist._util.frames import frame
    >>> frame({"model": ["a", "b"], "value": [0.25, 0.5]}).shape
    (2, 2)
    """
    for library, maker in _MAKERS.items():
        if find_spec(library) is not None:
            make = getattr(import_module(library), maker)
            return make({name: _writable(column) for name, column in columns.items()})
    message = (
        "a frame needs one of pandas, polars and pyarrow, and none of them is installed: "
        "pip install pandas"
    )
    raise ImportError(message)


def _writable(column: NDArray[Any] | Sequence[Any]) -> NDArray[Any] | Sequence[Any]:
    """Copy arrays, so that a frame that is changed does not change what it was made from."""
    return column.copy() if isinstance(column, np.ndarray) else column
