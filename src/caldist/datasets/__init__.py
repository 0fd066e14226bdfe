"""Data sets that ship with the package."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caldist._util.brief import Brief
from caldist._util.frames import frame
from caldist._util.types import Vector

__all__ = ["Demo", "load_demo"]


@dataclass(frozen=True, eq=False)
class Demo(Brief):
    """The predictions of six classifiers, and the labels.

    Attributes
    ----------
    y_true
        Whether a handwritten digit is 5 or larger, for 1,797 images.
    y_prob
        From the name of each model to its predicted probabilities.
    """

    y_true: NDArray[np.int64]
    y_prob: dict[str, Vector]

    def to_frame(self, library: str = "pandas") -> Any:
        """Return a data frame with the column ``label`` and one for each model.

        Parameters
        ----------
        library : "pandas" or "polars"
            What the data frame is made by.
        """
        return frame({"label": self.y_true, **self.y_prob}, library)


def load_demo() -> Demo:
    """Load the data of ``caldist demo``: labels, and the predictions of six models.

    They are out-of-fold predictions (10 folds) of classifiers with default settings on the test
    set of Optical Recognition of Handwritten Digits (E. Alpaydin and C. Kaynak, UCI 1998,
    https://doi.org/10.24432/C50P49, licence CC BY 4.0).

    Returns
    -------
    Demo

    Examples
    --------
    >>> import caldist
    >>> demo = caldist.datasets.load_demo()
    >>> demo.y_true.size, list(demo.y_prob)[:2]
    (1797, ['logistic_regression', 'naive_Bayes'])
    >>> round(caldist.smooth_ce(demo.y_true, demo.y_prob["naive_Bayes"]), 4)
    0.1024
    """
    text = files("caldist.datasets").joinpath("demo.csv").read_text(encoding="ascii")
    header, *rows = text.splitlines()
    columns = np.loadtxt(rows, delimiter=",").T.copy()  # contiguous columns
    names = header.split(",")[1:]
    return Demo(columns[0].astype(np.int64), dict(zip(names, columns[1:], strict=True)))
