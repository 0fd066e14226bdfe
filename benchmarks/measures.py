"""What is timed: one call of the public API for each measure, and the most it may cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import caldist
from benchmarks.families import Family, Sample
from caldist.measures.registry import all_measures


@dataclass(frozen=True)
class Measure:
    """A function of (y_true, y_prob, sample_weight=...) and its targets.

    ``targets`` and ``weighted_targets`` give the largest ratio to ``np.argsort`` by number of rows,
    without and with weights. ``growth`` is the most by which the ratio may grow from a million rows
    to ten million. Above ``largest`` rows it is timed only if asked for by name.
    """

    name: str
    function: Callable[..., Any]
    targets: Mapping[int, float] = field(default_factory=dict)
    weighted_targets: Mapping[int, float] = field(default_factory=dict)
    growth: float | None = None
    largest: int | None = None

    def __call__(self, sample: Sample) -> Any:
        """Measure raw arrays."""
        if sample.sample_weight is None:
            return self.function(sample.y_true, sample.y_prob)
        return self.function(sample.y_true, sample.y_prob, sample_weight=sample.sample_weight)

    def targets_on(self, family: Family) -> Mapping[int, float]:
        """Return the targets that hold on a family."""
        return self.weighted_targets if family.weighted else self.targets


_MILLION = 10**6

_APART = (  # targets of their own, or none
    Measure("smooth_ce", caldist.smooth_ce, {10**6: 2, 10**7: 2}, growth=1.3),
    Measure("kernel_ce:laplace", caldist.kernel_ce, {10**6: 2, 10**7: 2}, growth=1.3),
    Measure("random_interval_ce", caldist.random_interval_ce, {10**6: 2, 10**7: 2}, growth=1.3),
    Measure("surrogate_interval_ce", caldist.surrogate_interval_ce, {10**6: 4, 10**7: 4}),
    Measure(
        "interval_ce",
        caldist.interval_ce,
        {10**5: 10, 10**6: 10},
        weighted_targets={10**5: 150, 10**6: 150},
        largest=_MILLION,
    ),
    Measure("lower_distance", caldist.lower_distance, {10**6: 6}, largest=_MILLION),
    Measure("upper_distance", caldist.upper_distance, {10**5: 30, 10**6: 6}, largest=_MILLION),
    Measure("certify:smooth_ce", partial(caldist.certify, measure="smooth_ce"), largest=_MILLION),
    Measure("kernel_ce:gaussian", caldist.kernel_ce.using(kernel="gaussian"), largest=_MILLION),
    Measure("ece", caldist.ece, largest=_MILLION),
    Measure("binned_ece", caldist.binned_ece, largest=_MILLION),
    Measure("corp", caldist.measures.corp, {10**6: 10}, largest=_MILLION),
)
_LISTED = {timed.name.partition(":")[0] for timed in _APART}
_OTHERS = (
    Measure(name, measure.shown, {10**6: 10}, largest=_MILLION)
    for name, measure in all_measures().items()
    if name not in _LISTED
)

MEASURES: dict[str, Measure] = {timed.name: timed for timed in (*_APART, *_OTHERS)}
