"""Names of array types."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
