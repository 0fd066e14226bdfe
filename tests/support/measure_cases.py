"""What tests over all measures ask of a measure, or of another function of rows."""

import inspect
import re
import sys


def complete(measure):
    """Bind the options that a measure cannot do without."""
    return measure.using(**measure.facts.example) if measure.missing_option else measure


def counts_rows(function):
    """Whether it is for rows that count one each, so that it has no weighted form."""
    if "unbiased" in getattr(function, "option_names", ()):
        return function.option("unbiased")
    return inspect.signature(function).parameters["sample_weight"].annotation == "None"


def sums_over_rows(measure):
    """Whether it is a sum over rows as they come, whose last bits depend on their order."""
    source = inspect.getsource(sys.modules[measure.__module__])
    return re.search(r"\.(blocks|mean)\(", source) is not None
