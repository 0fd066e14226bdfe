"""``Measure``: a measure of calibration as one object, with everything that is true of it alone.

A measure is written as a function of labels and predictions, or of a joint in their place, and
decorated with its facts. Whatever goes over measures (:func:`caldist.evaluate`, intervals, tests,
comparisons, planning, certificates, reports, the command line, the documentation, the contract
tests) asks the object and never its name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import update_wrapper
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, ParamSpec, cast

import numpy as np

from caldist._util.cached import cached_property
from caldist._util.types import Vector
from caldist.data.joint import Joint
from caldist.data.rows import Rows
from caldist.errors import refuse_unknown
from caldist.measures.norms import Norm

if TYPE_CHECKING:
    from caldist.certificates import JointCertificate

P = ParamSpec("P")
Ends = tuple[float, float]
Recipe = Literal["distance", "partitions", "dyadic widths"]  # of an interval


class Lacking(NamedTuple):
    """Why a measure lacks an interval, a comparison or a test, and what has one."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason}. {self.remedy}"


NO_RECIPE = Lacking(
    "no recipe with proved or measured coverage at perfect calibration is known for it",
    "Use measure='smooth_ce', or caldist.calibration_test for a test.",
)
NO_LAW = Lacking(
    "has no interval that is known to hold near calibration",
    "Use 'smooth_ce', 'kernel_ce' or 'random_interval_ce'.",
)
NOT_A_NORM = Lacking(
    "is not a norm of the residuals, so the errors of two models do not cancel in a known way",
    "Use 'smooth_ce', which lies between half and twice the lower distance, or "
    "'random_interval_ce'.",
)
SMEARED = Lacking(
    "a population whose every prediction is split into many close ones, with their labels frozen, "
    "gives the same samples but another value, so no interval from a sample is valid",
    "Use measure='distance' or 'smooth_ce'.",
)
NO_POPULATION = Lacking(
    "has no valid interval for the population, because samples cannot tell its values apart",
    "Use 'smooth_ce', or 'random_interval_ce' for the error of bins.",
)
_DATA = ("y_true", "y_prob", "sample_weight", "pos_label")


@dataclass(frozen=True)
class Worst:
    """What is proved of a sample's value T_n against the population's T, for every population.

    The mean of T_n exceeds T by at most ``bias``/√n and is not below it, and one row of n changes
    T_n by at most ``reach``/n.
    """

    bias: float
    reach: float


@dataclass(frozen=True)
class Facts:
    """What is true of one measure. Functions take the measure's own options as keywords.

    Attributes
    ----------
    symbol
        What the literature calls it; ``{width:g}`` stands for an option.
    summary
        One line for tables.
    position
        Its place in lists: distances and what bounds them first.
    shown_in
        Where it is shown without being asked for: "evaluate", "measure" (the command line),
        "report", "report table" (beside the distance, for all models), "groups", "test",
        "recalibration" (losses that recalibration changes).
    called
        Its name within a sentence, where it is spoken of by one.
    encloses
        Joint to the value and what it certifies on these rows, below and above, or None where it
        certifies nothing; None for a value that is exact.
    above_distance
        Whether its value is never below the distance to calibration of the rows, whatever lies
        behind them: the least of these is the upper end of the bracket.
    rounding
        (joint, value) to what the value on the unrounded predictions lies between, or None where
        it moves without bound.
    flips
        Whether exchanging the labels (v -> 1 - v, y -> 1 - y) leaves it unchanged.
    floor, ceiling
        What it never leaves, with default options.
    norm
        Support to the norm of residual masses that the measure is.
    loss
        Label and prediction to the loss whose mean it is.
    statistic
        Residual masses to the statistic of a test, where it is neither a norm nor needs labels.
    tail
        The limit law of that statistic under calibration, of independent rows, in units of the
        standard deviation of their sum.
    dual
        (prediction, mass0, mass1) to what a row of label 0 and of label 1 at each prediction adds
        to a feasible dual that these masses suggest, where it is no norm: its mean over any
        population is at most the measure.
    noise
        (prediction, changes) to a bound on how far it moves when the masses of label 0, then those
        of label 1, change so, where it is no norm.
    interval
        What its confidence interval follows from, where it is neither a norm nor a mean.
    no_interval, no_comparison, no_test
        Why an interval, a comparison of two models, or a test of calibration is refused; the last
        is None where it is not.
    worst
        What is proved for every population, with default options.
    certify
        (joint, tol, progress) to a proof of its value.
    example
        Options with which it is shown, where it needs some.
    """

    symbol: str
    summary: str
    position: int = 1000
    shown_in: Collection[str] = ()
    called: str = ""
    encloses: Callable[..., tuple[float, float | None, float | None]] | None = None
    above_distance: bool = False
    rounding: Callable[..., Ends | None] | None = None
    flips: bool = True
    floor: float = 0.0
    ceiling: float = 1.0
    norm: Callable[..., Norm] | None = None
    loss: Callable[[Vector, Vector], Vector] | None = None
    statistic: Callable[[Vector], float] | None = None
    tail: Callable[[float], float] | None = None
    dual: Callable[..., tuple[Vector, Vector]] | None = None
    noise: Callable[[Vector, Vector], float] | None = None
    interval: Recipe | None = None
    no_interval: Lacking = NO_RECIPE
    no_comparison: Lacking = NO_LAW
    no_test: Lacking | None = None
    worst: Worst | None = None
    certify: Callable[..., JointCertificate] | None = None
    example: Mapping[str, Any] = field(default_factory=dict)


class Measure(Generic[P]):
    """A measure of calibration: called like a function, and asked for its facts.

    Attributes
    ----------
    name
        The public name.
    options
        The options that are bound to it, by :meth:`using`.
    facts
        What is true of it.

    Examples
    --------
    >>> import caldist
    >>> narrow = caldist.kernel_ce.using(bandwidth=0.1)
    >>> narrow
    caldist.measures.kernel_ce.using(bandwidth=0.1)
    >>> narrow([0, 1], [0.2, 0.7]) == caldist.kernel_ce([0, 1], [0.2, 0.7], bandwidth=0.1)
    True
    """

    def __init__(
        self, function: Callable[P, float], facts: Facts, options: Mapping[str, Any] | None = None
    ) -> None:
        update_wrapper(self, function)
        self._function = function
        self.name: str = function.__name__
        self.facts = facts
        self.options: Mapping[str, Any] = MappingProxyType(dict(options or {}))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> float:
        """Return the value on labels and predictions, or on a joint in their place."""
        given: dict[str, Any] = {**self.options, **kwargs} if self.options else kwargs
        try:
            return self._function(*args, **given)
        except TypeError:
            refuse_unknown(self._function, args, kwargs)
            raise

    def using(self, **options: Any) -> Measure[P]:
        """Bind options: ``kernel_ce.using(bandwidth=0.1)`` is a measure of its own."""
        known = self.option_names
        for name in options:
            if name not in known:
                listed = f"takes {', '.join(known)}" if known else "has none"
                message = f"{name} is not an option of {self.name}, which {listed}."
                raise TypeError(message)
        # It is gone through more than once.
        kept = {
            name: list(value) if isinstance(value, Iterator) else value
            for name, value in options.items()
        }
        return Measure(self._function, self.facts, {**self.options, **kept})

    # -- what it is ----------------------------------------------------------------------------

    @cached_property
    def option_names(self) -> tuple[str, ...]:
        """The names of its options."""
        parameters = inspect.signature(self._function).parameters
        return tuple(name for name in parameters if name not in _DATA)

    def option(self, name: str) -> Any:
        """Return an option's value: the bound one or the default."""
        if name in self.options:
            return self.options[name]
        return inspect.signature(self._function).parameters[name].default

    @property
    def symbol(self) -> str:
        """What the literature calls it, with its options where they matter."""
        values = {name: self.option(name) for name in self.option_names}
        return self.facts.symbol.format_map(values)

    @property
    def summary(self) -> str:
        """One line for tables."""
        values = {name: self.option(name) for name in self.option_names}
        return self.facts.summary.format_map(values)

    @property
    def missing_option(self) -> str | None:
        """An option without which it cannot be computed, and that is not bound."""
        unbound = (
            name for name in self.option_names if self.option(name) is inspect.Parameter.empty
        )
        return next(unbound, None)

    @property
    def shown(self) -> Measure[P]:
        """The measure as it is shown: with the options of its example, where it needs some."""
        return Measure(self._function, self.facts, {**self.facts.example, **self.options})

    # -- what is asked of it -------------------------------------------------------------------

    def of(self, data: Joint | Rows) -> float:
        """Return the value on the predictions that are listed, whatever lies behind them."""
        return cast("Callable[..., float]", self._function)(data, **self.options)

    def enclosed(self, joint: Joint) -> tuple[float, float | None, float | None]:
        """Return the value, and what is certain of it on the rows behind a joint."""
        if joint.radius == 0 and self.facts.encloses is not None:
            return self.facts.encloses(joint, **self.options)
        value = self.of(joint)
        if joint.radius == 0:
            return value, value, value  # a value that is exact may be negative
        ends = self.rounding(joint, value)
        if ends is None:
            return value, None, None
        lower, upper = ends
        # Bounds of second order may leave the value on the cells' means outside.
        return min(max(value, lower), upper), lower, upper

    def rounding(self, joint: Joint, value: float) -> Ends | None:
        """Return what the value on unrounded predictions lies between; None if that is unknown."""
        if joint.radius == 0:
            return value, value
        if self.facts.rounding is None:
            return None
        ends = self.facts.rounding(joint, value, **self.options)
        return None if ends is None else (max(self.facts.floor, ends[0]), ends[1])

    @property
    def is_norm(self) -> bool:
        """Whether it is a norm of the residual masses."""
        return self.facts.norm is not None

    def norm(self, prediction: Vector) -> Norm:
        """Return the norm that it is, on a support."""
        assert self.facts.norm is not None  # noqa: S101 -- only asked where it is one
        return self.facts.norm(prediction, **self.options)

    @property
    def has_interval(self) -> bool:
        """Whether a confidence interval can be had."""
        return any((self.facts.norm, self.facts.loss, self.facts.interval))

    @property
    def is_comparable(self) -> bool:
        """Whether two models can be compared by it."""
        return self.facts.norm is not None or self.facts.loss is not None

    @property
    def takes_clusters(self) -> bool:
        """Whether its statistic makes sense of residual masses that no labels have."""
        return self.facts.norm is not None or self.facts.statistic is not None

    @property
    def takes_tolerance(self) -> bool:
        """Whether it can be tested for being at most a given number."""
        return self.facts.norm is not None or self.facts.noise is not None

    def dual(self, v: Vector, mass0: Vector, mass1: Vector) -> tuple[Vector, Vector]:
        """Return what rows of label 0 and 1 add to a dual that these masses suggest.

        The mean over any population is at most the population's value, because the measure is a
        supremum over such duals.
        """
        if self.facts.dual is not None:
            return self.facts.dual(v, mass0, mass1, **self.options)
        residual = mass1 * (1 - v) - mass0 * v
        witness = self.norm(v).witness(residual) if residual.any() else np.zeros_like(v)
        return -v * witness, (1 - v) * witness

    # -- as an object --------------------------------------------------------------------------

    def __str__(self) -> str:
        if not self.options:
            return self.name
        return f"{self.name}({', '.join(f'{key}={_short(v)}' for key, v in self.options.items())})"

    def __repr__(self) -> str:
        if not self.options:
            return f"<measure caldist.measures.{self.name}>"
        bound = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f"caldist.measures.{self.name}.using({bound})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Measure):
            return NotImplemented
        return (
            self._function is other._function
            and self.options.keys() == other.options.keys()
            and all(_same(value, other.options[name]) for name, value in self.options.items())
        )

    def __hash__(self) -> int:
        return hash(self._function)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle like a function: by name. Bound options go along."""
        if not self.options:
            return self.name
        return _bound, (self.__module__, self.name, dict(self.options))


def _bound(module: str, name: str, options: dict[str, Any]) -> Measure[Any]:
    bare: Measure[Any] = getattr(import_module(module), name)
    return bare.using(**options)


def _same(first: Any, second: Any) -> bool:
    """Whether two values of an option are the same; arrays are, if all their values are."""
    if hasattr(first, "__array__") or hasattr(second, "__array__"):
        return np.array_equal(first, second)
    return bool(first == second)


def _short(value: object) -> str:
    name = getattr(value, "__name__", None)
    text = name if isinstance(name, str) else repr(value)
    return text if len(text) <= 30 else text[:29] + "…"


def measure(**facts: Any) -> Callable[[Callable[P, float]], Measure[P]]:
    """Make a measure of a function of (y_true, y_prob=None, *, options, sample_weight=None)."""
    return lambda function: Measure(function, Facts(**facts))
