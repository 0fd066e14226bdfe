"""The exceptions of the package, and calls that almost work, answered with the call that does."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar

from caldist._util.invalid import InvalidInput, InvalidType

__all__ = ["CertificateError", "InvalidInput", "InvalidType", "ToleranceError"]

P = ParamSpec("P")
Value = TypeVar("Value")


class ToleranceError(ArithmeticError):
    """A value could not be enclosed as closely as was asked.

    ``lower`` and ``upper`` are valid bounds all the same.
    """

    def __init__(self, message: str, lower: float, upper: float) -> None:
        super().__init__(message, lower, upper)  # all of them, so that it can be pickled
        self.lower = lower
        self.upper = upper

    def __str__(self) -> str:
        return str(self.args[0])


class CertificateError(ValueError):
    """A certificate that does not prove what it says.

    A file that is no certificate at all is an :class:`InvalidInput`.
    """


# -- calls that almost work ------------------------------------------------------------------------

# What others call an argument, and what it may be called here.
_MEANT = {
    **dict.fromkeys(("bins", "nbins", "num_bins", "nb_bins"), ("n_bins",)),
    **dict.fromkeys(("weights", "weight", "sample_weights", "w"), ("sample_weight",)),
    **dict.fromkeys(
        ("alpha", "significance", "delta", "error"), ("confidence_level", "false_alarm_rate")
    ),
    **dict.fromkeys(("level", "confidence", "conf_level", "ci"), ("confidence_level",)),
    **dict.fromkeys(("groups", "group", "subgroups", "sensitive_features"), ("by", "clusters")),
    **dict.fromkeys(("cluster", "cluster_id", "cluster_ids"), ("clusters",)),
    **dict.fromkeys(("seed", "random_state", "random_seed", "rng"), ("rng", "random_state")),
    **dict.fromkeys(
        ("n_boot", "n_bootstrap", "n_bootstraps", "n_permutations", "n_draws", "n_samples"),
        ("n_resamples",),
    ),
    **dict.fromkeys(
        (
            "y_pred",
            "y_score",
            "y_proba",
            "y_hat",
            "prob",
            "probs",
            "score",
            "scores",
            "predictions",
            "preds",
        ),
        ("y_prob", "y_prob_a", "preds"),
    ),
    **dict.fromkeys(("y_prob", "input", "inputs"), ("preds", "y_prob")),
    **dict.fromkeys(("y", "y_label", "labels", "target", "targets"), ("y_true", "target")),
    **dict.fromkeys(("y_true", "label"), ("target", "batch", "y_true", "y")),
    **dict.fromkeys(("guarantee",), ("method",)),
    **dict.fromkeys(("logits", "is_logits", "with_logits"), ("from_logits", "y_prob")),
    **dict.fromkeys(("sigma", "h", "length_scale", "gamma"), ("bandwidth",)),
    **dict.fromkeys(("num_classes", "n_class", "k"), ("n_classes",)),
    **dict.fromkeys(("base_estimator", "model", "clf", "classifier"), ("estimator",)),
    **dict.fromkeys(("positive", "positive_label"), ("pos_label",)),
    **dict.fromkeys(("metric", "metrics"), ("measure", "measures")),
    **dict.fromkeys(("threshold", "limit", "at_most"), ("tolerance", "thresholds")),
    **dict.fromkeys(("tol", "epsilon", "tolerance"), ("tolerance", "tol")),
    **dict.fromkeys(("n", "n_samples", "size"), ("n_rows", "n_resamples")),
    **dict.fromkeys(("class_names", "labels", "target_names"), ("classes", "y_true")),
}
_SHOWN = 5  # models that are named

# Measures that the literature has under a second name: the measure here, and the same number.
KNOWN_AS = {
    "ks_error": ("ecce_mad", "caldist.measures.ecce_mad(y_true, y_prob)"),
    "skce": (
        "kernel_ce",
        "2 * caldist.kernel_ce(y_true, y_prob, squared=True, unbiased=True)",
    ),
}


def answering(function: Callable[P, Value]) -> Callable[P, Value]:
    """Make a function answer arguments that it does not have with those that were meant."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Value:
        try:
            return function(*args, **kwargs)
        except TypeError:
            refuse_unknown(function, args, kwargs)
            raise

    return call


def refuse_unknown(
    function: Callable[..., Any], args: Sequence[Any], given: Mapping[str, Any]
) -> None:
    """Raise for the first argument that a function does not have, and say what was meant."""
    parameters = inspect.signature(function).parameters
    kinds = {name: parameter.kind for name, parameter in parameters.items()}
    if inspect.Parameter.VAR_KEYWORD in kinds.values():
        return
    options = [name for name, kind in kinds.items() if kind is inspect.Parameter.KEYWORD_ONLY]
    data = [name for name in kinds if name not in options]
    if data[:1] in (["self"], ["cls"]):
        data, args = data[1:], args[1:]
    if len(args) > len(data):
        if not options:
            message = f"{_called(function)} got {len(args)} values, and takes {', '.join(data)}."
            raise TypeError(message) from None
        takes = f"{', '.join(data)} by position, the rest" if data else "everything"
        message = (
            f"{_called(function)} got {len(args)} values without a name, and takes {takes} by "
            f"name: {', '.join(f'{name}=' for name in options)}."
        )
        raise TypeError(message) from None
    for name in given:
        if name not in parameters:
            refuse_option(function, name, given[name])


def refuse_option(function: Callable[..., Any], name: str, value: object) -> NoReturn:
    """Raise for an argument that a function does not have, and say what was meant."""
    parameters = inspect.signature(function).parameters.values()
    named = [item for item in parameters if item.kind is not inspect.Parameter.VAR_KEYWORD]
    known = [item.name for item in named if item.name not in {"self", "cls"}]
    options = [item.name for item in named if item.kind is inspect.Parameter.KEYWORD_ONLY]
    message = f"{_called(function)} has no argument {name!r}: "
    raise TypeError(message + _answer(name, value, known, options or known)) from None


def _called(function: Callable[..., Any]) -> str:
    """Return how a function is called: a class by its name, a method with that of its class."""
    name = getattr(function, "__qualname__", function.__name__).rpartition("<locals>.")[2]
    return f"{name.removesuffix('.__init__')}()"


def _answer(name: str, value: object, known: list[str], options: list[str]) -> str:
    """Say what an argument is called, or what there is."""
    meant = [other for other in _MEANT.get(name.lower(), ()) if other in known]
    if meant == ["clusters"] and "by" in _MEANT[name.lower()]:
        return (
            "clusters= is for rows that depend on each other; caldist.evaluate_groups takes "
            "sub-groups, as by=."
        )
    if {"by", "clusters"} <= {*meant}:
        return "by= is for sub-groups, clusters= for rows that depend on each other."
    if meant == ["confidence_level"] and "false_alarm_rate" in _MEANT[name.lower()]:
        risk = float(value) if isinstance(value, numbers.Real) else 0.0
        return f"pass confidence_level={f'{1 - risk:g}' if 0 < risk < 1 else f'1 - {name}'}."
    if name == "confidence_level" and not meant:
        return "limits for the population are those of caldist.confidence_interval."
    meant = meant[:1] or get_close_matches(name, known, n=1)
    if meant:
        return f"it is called {meant[0]}."
    return f"its options are {', '.join(options)}."


# -- several models where one is meant -------------------------------------------------------------


def refuse_several(values: object, name: str) -> None:
    """Raise for a dict, a frame or a list of models in the place of one model's predictions."""
    if name == "y_true" and len(column_names(values)) > 1:
        refuse_table(values)
    what, keys = _models(values)
    if not keys or not name.startswith("y_prob"):
        return
    error = InvalidType if isinstance(values, Mapping) else InvalidInput
    raise error(
        argument=name,
        reason=f"is {what}, but the predictions of one model are needed",
        remedy=f"Pass the probabilities of label 1, {name}[{keys[0]}]. Several models go by their "
        "names, {'a': …, 'b': …}, to caldist.inference.compare_all, caldist.report and figures; "
        "several classes to caldist.multiclass, or reduce them with multiclass.top_label or "
        "multiclass.one_vs_rest.",
    )


def refuse_one_of_a_pair(
    y_prob_a: object, y_prob_b: object, all_pairs: str, *, matrices: bool = False
) -> None:
    """Raise where two models are to be compared and they come as one argument, or one comes.

    ``matrices`` says that a frame, or a list of lists, may be one model.
    """
    what, keys = _models(y_prob_a)
    several = isinstance(y_prob_a, Mapping) or (y_prob_b is None and not matrices)
    if len(keys) > 1 and several:
        raise InvalidType(
            argument="y_prob_a",
            reason=f"is {what}, but the predictions of one model are needed",
            remedy=f"{all_pairs} compares all pairs of models, which go by their names. Two of "
            f"them are compare(y_true, models[{keys[0]}], models[{keys[1]}]).",
        )
    if y_prob_b is None:
        raise InvalidType(
            argument="y_prob_b",
            value=None,
            reason="two models are compared",
            remedy="Call compare(y_true, y_prob_a, y_prob_b). For one model there is "
            "confidence_interval.",
        )


def refuse_unnamed(y_prob: object) -> NoReturn:
    """Raise for models without a dict that names them."""
    example = ""
    if column_names(y_prob):
        example = ", {name: y_prob[name] for name in y_prob.columns}"
    elif is_list_of_models(y_prob):
        example = ", {'a': y_prob[0], 'b': y_prob[1]}"
    raise InvalidType(
        argument="y_prob",
        reason=f"is of type {type(y_prob).__name__}, but models go by their names",
        remedy=f"Pass a dict from the name of each model to its predictions{example}.",
    )


def refuse_table(table: object) -> NoReturn:
    """Raise for a table, or the name of a file, in the place of labels."""
    names = column_names(table)
    if names:
        first, last = names[0], names[-1]
        what = f"is a {type(table).__name__} of {len(names)} columns"
        remedy = f"Pass its columns, (table[{first!r}], table[{last!r}]), or a summary of it, "
        source = "table"
    else:
        first, last, source = "label", "score", repr(table)
        what, remedy = f"is {source}", "Pass labels and predictions, or a summary of the file, "
    raise InvalidType(
        argument="y_true",
        reason=f"{what}, but labels are needed",
        remedy=f"{remedy}caldist.summarize({source}, y_true={first!r}, y_prob={last!r}).",
    )


def _models(values: object) -> tuple[str, list[str]]:
    """Return what a collection of models is, and the key of each; none where it is none."""
    if isinstance(values, Mapping):
        what, keys = f"a dict of {len(values)} models", [repr(key) for key in values]
    elif names := column_names(values):
        shape = getattr(values, "shape", None)
        what = f"a {type(values).__name__} of shape {shape}"
        keys = [repr(key) for key in names]
    elif is_list_of_models(values):
        keys = [str(at) for at in range(len(values))]  # type: ignore[arg-type]
        return f"a list of {len(keys)} arrays", keys
    else:
        return "", []
    listed = ", ".join(keys[:_SHOWN]) + (", …" if len(keys) > _SHOWN else "")
    return f"{what} ({listed})", keys


def column_names(values: object) -> list[Any]:
    """Return the names of a frame's columns; none of what is no frame."""
    columns = getattr(values, "columns", None)
    if columns is None or not hasattr(values, "shape") or not hasattr(values, "__getitem__"):
        return []
    names = getattr(values, "column_names", columns)  # of pyarrow columns are the data
    return list(names)


def is_list_of_models(values: object) -> bool:
    """Return whether values are a few long arrays: no matrix of probabilities is so wide."""
    return (
        isinstance(values, list | tuple)
        and len(values) >= 2
        and all(hasattr(item, "__len__") and not isinstance(item, str | bytes) for item in values)
        and all(len(item) > max(2, len(values)) for item in values)
    )
