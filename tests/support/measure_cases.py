"""What tests over all measures ask of a measure, or of another function of rows."""

import inspect


def complete(measure):
    """Bind the options that a measure cannot do without."""
    return measure.using(**measure.facts.example) if measure.missing_option else measure


def counts_rows(function):
    """Whether it is for rows that count one each, so that it has no weighted form."""
    if "unbiased" in getattr(function, "option_names", ()):
        return function.option("unbiased")
    return inspect.signature(function).parameters["sample_weight"].annotation == "None"
