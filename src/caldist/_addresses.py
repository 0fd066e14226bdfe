"""Answer who asks ``caldist`` for a name that is somewhere else, or has another name now."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

import caldist
from caldist.errors import KNOWN_AS

# Names that are gone, and what does the same.
_RENAMED = {
    "Estimate": "caldist.inference.Interval",
    "MonotoneCalibrator": "caldist.sklearn.MonotoneCalibrator",
    "PopulationBracket": 'caldist.confidence_interval(…, measure="distance")',
    "RecalibratedClassifier": "caldist.sklearn.RecalibratedClassifier",
    "Repair": "caldist.recalibration.Recalibration",
    "RepairBounds": "caldist.inference.Interval",
    "RepairedClassifier": "caldist.sklearn.RecalibratedClassifier",
    "SlopeCalibrator": "caldist.sklearn.MonotoneCalibrator",
    "certify_map": "caldist.recalibration.evaluate_map",
    "interval_width": "caldist.inference.guaranteed_width",
    "repair": "caldist.recalibrate",
    "repairing": "caldist.recalibration",
    "weights": "caldist.measures, which has polynomials and region",
}


def unknown(name: str) -> AttributeError:
    """Return the error for a name that the front page does not have, with its address if any."""
    message = f"module 'caldist' has no attribute {name!r}"
    if name.startswith("__"):  # what tools ask of every module
        return AttributeError(message, name=name, obj=caldist)
    if name in _RENAMED:
        message += f": it is {_RENAMED[name]} now"
    elif name in KNOWN_AS:
        message += f": the same number is {KNOWN_AS[name][1]}"
    elif (place := _submodule_of(name)) is not None:
        message += f": it is caldist.{place}.{name}"
    elif near := get_close_matches(name, dir(caldist), n=1):
        message += f": did you mean {near[0]!r}?"
    return AttributeError(message, name=name, obj=caldist)


def _submodule_of(name: str) -> str | None:
    """Return the public submodule that has a name; without those whose packages are missing."""
    for module in dir(caldist):
        try:
            listed = getattr(import_module(f"caldist.{module}"), "__all__", ())
        except ImportError:  # a name of the front page, or a package is missing
            continue
        if name in listed:
            return module
    return None
