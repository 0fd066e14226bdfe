"""Sub-groups: every measure with its interval in each, and one test for all of them together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.escaping import for_line
from caldist._util.invalid import show
from caldist._util.numbers import down, least_of, number, probability, up
from caldist._util.progress import counted
from caldist._util.results import Result
from caldist._util.text_tables import aligned
from caldist._util.types import Integers, Vector
from caldist.data import validate
from caldist.data.categories import number_labels, refuse_measurements
from caldist.data.joint import Joint
from caldist.data.rows import Rows, refuse_beside_joint
from caldist.errors import InvalidInput, InvalidType, answering
from caldist.groups.simulated_groups import smooth_ce_of_groups
from caldist.inference.intervals import Interval, Method, interval_of
from caldist.inference.limits import effective_size_in_words
from caldist.inference.null_distribution import drawing_error
from caldist.inference.resampling import Resampler
from caldist.inference.sample import FEW, Units, row_units, units_of
from caldist.measures.base import Measure
from caldist.measures.registry import all_measures, find_all, shown_in

_MANY = 20  # groups from which on their intervals do without replicates
_ROUNDING = 1e-9  # relative; statistics that differ by less are constant, scores equal


@dataclass(frozen=True)
class Group(Result):
    """One sub-group of :func:`caldist.evaluate_groups`.

    Attributes
    ----------
    name
        Its label in ``by``.
    n_rows, n_positives
        Its rows, and those of label 1; None where a summary does not say.
    intervals
        From the name of each measure to its value and interval.
    score
        How many standard deviations the smooth calibration error lies above its mean under
        calibration; with clusters the smaller of two, where there are two kinds of replicates.
    pvalue
        The p-value of perfect calibration in this group, adjusted for looking at all groups.
    note
        What to beware of; empty as a rule.
    """

    name: Any
    n_rows: int | None
    n_positives: int | None
    intervals: Mapping[str, Interval]
    score: float
    pvalue: float
    note: str = ""

    def _lines(self) -> list[dict[str, Any]]:
        return [_line(self.name, self)]

    def __str__(self) -> str:
        rows = "" if self.n_rows is None else f"{self.n_rows:,} rows, "
        measured = ", ".join(f"{name} {_short(one)}" for name, one in self.intervals.items())
        note = f" ({self.note})" if self.note else ""
        return for_line(f"{self.name}: {rows}{measured}, adjusted p = {self.pvalue:.3g}{note}")


@dataclass(frozen=True)
class GroupEvaluation(Result):
    """The result of :func:`caldist.evaluate_groups`: the groups, strongest evidence first."""

    groups: tuple[Group, ...]
    confidence_level: float
    n_resamples: int

    @property
    def pvalue(self) -> float:
        """The p-value of perfect calibration in all groups."""
        return self.groups[0].pvalue

    def __getitem__(self, name: object) -> Group:
        """Return the group of this name."""
        for group in self.groups:
            if group.name == name:
                return group
        raise KeyError(name)

    def _lines(self) -> list[dict[str, Any]]:
        names = [group.name for group in self.groups]
        kinds = {type(name) for name in names}
        if len(kinds) > 1 or not kinds <= {str, int, float, bool}:
            names = [str(name) for name in names]  # tables want one plain type to a column
        return list(map(_line, names, self.groups))

    def __str__(self) -> str:
        measures = list(self.groups[0].intervals)
        rows = [["group", "rows", "positives", *measures, "p-value", "note"]]
        rows += [
            [
                str(group.name),
                *(f"{n:,}" if n is not None else "" for n in (group.n_rows, group.n_positives)),
                *(_short(group.intervals[measure]) for measure in measures),
                probability(group.pvalue, least_of(self.n_resamples)),
                group.note,
            ]
            for group in self.groups
        ]
        lines = aligned(rows, left={0, len(rows[0]) - 1})
        level = f"{100 * self.confidence_level:g}%"
        lines.append(f"Intervals: {level} each. p-values: adjusted for all groups.")
        if any(
            interval.rounding != 0 for group in self.groups for interval in group.intervals.values()
        ):
            lines.append("Both allow for the rounding of the predictions.")
        return "\n".join(lines)


def _line(name: Any, group: Group) -> dict[str, Any]:
    """Return a group as a line of a frame."""
    line = {"group": name, "n_rows": group.n_rows, "n_positives": group.n_positives}
    for measure, interval in group.intervals.items():
        line[measure] = interval.value
        line |= {f"{measure}_{end}": getattr(interval, end) for end in ("lower", "upper")}
    return line | {key: getattr(group, key) for key in ("score", "pvalue", "note")}


def _short(interval: Interval) -> str:
    return f"{number(interval.value)} [{down(interval.lower, 4)}, {up(interval.upper, 4)}]"


@answering
def evaluate_groups(
    y_true: ArrayLike | Mapping[Any, Joint],
    y_prob: ArrayLike | None = None,
    *,
    by: ArrayLike | None = None,
    measures: Iterable[str | Measure[Any]] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    clusters: ArrayLike | None = None,
    rng: validate.Rng = 0,
    progress: bool = False,
) -> GroupEvaluation:
    r"""Evaluate sub-groups, and test them all for perfect calibration at one error rate.

    Labels are drawn from the predictions, for all rows at once, B times. The smooth calibration
    error of each group, in the data and in each replicate, is standardised over these B + 1
    values to a score Z, and

    .. math:: p_g = \frac{\#\{b : \max_h Z_{b,h} \ge Z_{0,g}\}}{B + 1}

    where b = 0 are the data. From 20,000 rows on the errors are those of at most 32 cells of
    neighbouring predictions in each group, which makes them hardly different, and cheap.

    **What it means.** If all groups are perfectly calibrated, the probability that any p-value is
    at most α is at most α, in every sample size and for every number of groups, where rows are
    independent. Looking at each group alone would find something in half of all cases with a dozen
    groups. A group of few rows must deviate more to be found. The intervals hold for each group
    alone, not for all at once.

    **Clusters.** With ``clusters`` a replicate flips the sign of all residuals of a cluster
    together. Where in any group the clusters that have one of the labels are worth fewer than 100
    of equal mass, the p-value is the larger of two, as in :func:`caldist.calibration_test`: the
    other comes from simulated labels that depend, in each group, as much as they seem to there.
    The error rate is then approximate: in simulations of ten groups with rare labels or unequal
    clusters it was at most the nominal one.

    **What it estimates.** Intervals and p-values speak of the population behind each group.

    **Many groups.** From 20 groups on, intervals are made by cross-fitting alone,
    ``method="cross_fit"`` of :func:`caldist.confidence_interval`, unless there are clusters. With
    independent rows that mostly changes their width by less than a hundredth.

    **Cost.** A sort and O(n) for each replicate of the test, and an interval for each group and
    measure: a second for a few groups, some eight for 1,000 of 1,000 rows each, of which the lower
    distance takes half. Without it 10,000 groups of 100 rows each take about as long.

    Parameters
    ----------
    y_true : array-like of 0 and 1, or dict of joints
        A dict from each sub-group to its :class:`caldist.Joint`, as
        ``caldist.summarize(…, by=…)`` returns it, stands for labels, predictions and ``by``.
    y_prob : array-like in [0, 1]
        The predicted probability of label 1.
    by : array-like
        The sub-group of each row: text, whole numbers, categories or other hashable labels.
        Measurements, which make a group of every row, are refused: put them into bins first.
    measures : list of measures or names, optional
        Which measures to show, out of those that :func:`caldist.confidence_interval` has an
        interval for. By default ``smooth_ce``, ``lower_distance`` and
        ``brier_score``.
    confidence_level : float
        Of each interval.
    n_resamples : int
        B above, and the replicates of each interval, where there are any.
    sample_weight : array-like, optional
        Weights must not depend on the labels.
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    clusters : array-like, optional
        The cluster of each row, where rows are not independent. Clusters may reach across
        sub-groups.
    rng : int, numpy.random.Generator or None
        The same rows give the same answer; None draws a fresh seed. With an integer, the intervals
        of a group are those that :func:`caldist.confidence_interval` gives for its rows, the same
        integer and their method.
    progress : bool
        Show progress bars after two seconds.

    Returns
    -------
    GroupEvaluation
        ``groups``, strongest evidence first, each with ``name``, ``n_rows``, ``n_positives``,
        ``intervals``, ``score``, ``pvalue`` and ``note``; ``pvalue`` for all groups together;
        ``to_frame()`` for a table; printing shows it too. Fewer than ten rows of a label, or
        clusters with it, are noted and not warned of.

    References
    ----------
    Westfall and Young, "Resampling-Based Multiple Testing", 1993.

    Examples
    --------
    >>> import numpy as np, caldist
    >>> y_prob = np.tile(np.linspace(0.1, 0.9, 50), 2)
    >>> y_true = np.arange(100) * 7 % 50 < 50 * y_prob
    >>> y_true[:50] = False
    >>> by = ["north"] * 50 + ["south"] * 50
    >>> result = caldist.evaluate_groups(y_true, y_prob, by=by)
    >>> [(group.name, group.pvalue < 0.05, group.note) for group in result.groups]
    [('north', True, 'only 0 positives'), ('south', False, '')]
    """
    chosen = _with_interval(measures)
    confidence_level = validate.check_fraction("confidence_level", confidence_level)
    resampler = Resampler.of(rng, n_resamples=n_resamples, progress=progress)
    fresh = rng is None or isinstance(rng, np.random.Generator)
    each = Resampler.of(resampler.entropy if fresh else rng, n_resamples=n_resamples)
    if isinstance(y_true, Mapping):
        refuse_beside_joint(
            y_prob=y_prob,
            by=by,
            sample_weight=sample_weight,
            clusters=clusters,
            pos_label=pos_label,
        )
        names, parts = _joints(y_true)
        units = [units_of(part) for part in parts]
    else:
        rows = Rows.of(
            y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, clusters=clusters
        )
        names, parts, units = _divided(rows, by)
    return groups_of(names, parts, units, chosen, confidence_level, resampler, each)


def groups_of(
    names: Sequence[Any],
    parts: Sequence[Rows],
    units: Sequence[Units],
    measures: Sequence[Measure[Any]],
    confidence_level: float,
    resampler: Resampler,
    each: Resampler,
) -> GroupEvaluation:
    """Evaluate sub-groups; ``resampler`` is for the test, ``each`` for the intervals of each."""
    score, pvalue = _simultaneous(parts, units, resampler)
    named = [(str(measure), measure) for measure in measures]
    # Without replicates those of clusters are far wider, and others hardly.
    without = len(parts) >= _MANY and units[0].cluster is None
    method: Method = "cross_fit" if without else "auto"
    found = []
    for at, part in enumerate(counted(parts, "intervals", " groups", show=resampler.progress)):
        intervals = {
            name: interval_of(part, measure, confidence_level, each, method)
            for name, measure in named
        }
        part.cache = {Units: units_of(part)}  # limits of many groups would be much
        found.append(
            Group(
                name=names[at],
                n_rows=part.n_rows,
                n_positives=part.n_positives,
                intervals=intervals,
                score=float(score[at]),
                pvalue=float(pvalue[at]),
                note=_note(units_of(part)),
            )
        )
    found.sort(key=lambda group: (group.pvalue, -group.score))
    return GroupEvaluation(tuple(found), confidence_level, resampler.n_resamples)


def _with_interval(measures: object) -> list[Measure[Any]]:
    chosen = find_all(measures, shown_in("groups"))
    for at, measure in enumerate(chosen):
        if not measure.has_interval:
            able = ", ".join(m.name for m in all_measures().values() if m.has_interval)
            raise InvalidInput(
                argument="measures",
                index=at,
                value=measure.name,
                reason="this measure has no interval",
                remedy=f"The measures with an interval are {able}.",
            )
    return chosen


def _joints(joints: Mapping[Any, Any]) -> tuple[list[Any], list[Rows]]:
    if not joints:
        remedy = "Pass at least one sub-group, {name: joint}."
        raise InvalidInput(argument="y_true", reason="is an empty dict", remedy=remedy)
    for name, joint in joints.items():
        if not isinstance(joint, Joint):
            raise InvalidType(
                argument=f"y_true[{show(name)}]",
                reason=f"is of type {type(joint).__name__}, but a dict in place of the labels "
                "holds a caldist.Joint for each sub-group",
            )
        if joint.prediction.size == 0:
            raise InvalidInput(
                argument=f"y_true[{show(name)}]",
                reason="has no valid rows",
                remedy="Leave this sub-group out.",
            )
    return list(joints), [Rows.of(joint) for joint in joints.values()]


def _divided(rows: Rows, by: object) -> tuple[list[Any], list[Rows], list[Units]]:
    """Return the names of sub-groups, their rows, and their units with the clusters of all."""
    if rows.is_summary:
        refuse_beside_joint(by=by if by is not None else True)
    if by is None:
        reason = "sub-groups are needed"
        remedy = "Pass the sub-group of each row, or in place of labels a dict {name: joint}."
        raise InvalidType(argument="by", value=None, reason=reason, remedy=remedy)
    refuse_measurements(by, "by")
    names, code = number_labels(by, rows.label.size, "by")
    _check_weights(names, code, rows.weight)
    parts = rows.split(code, len(names))
    if rows.cluster is None:
        return names, parts, [units_of(part) for part in parts]
    together = [row_units(part, rows.cluster[part.index], rows.n_clusters) for part in parts]
    return names, parts, together


def _simultaneous(
    parts: Sequence[Rows], units: Sequence[Units], resampler: Resampler
) -> tuple[Vector, Vector]:
    """Return the score and the adjusted p-value of each group.

    Of two kinds of replicates the one with less evidence counts.
    """
    tables = smooth_ce_of_groups([units_of(part) for part in parts], units, resampler)
    scores, shares = zip(*map(_adjusted, tables), strict=True)
    missed = sum(drawing_error(part.joint) for part in parts if part.is_summary)
    return np.minimum.reduce(scores), np.minimum(1.0, np.maximum.reduce(shares) + missed)


def _adjusted(values: Vector) -> tuple[Vector, Vector]:
    """Return score and adjusted p-value of each group from the values of sample and replicates."""
    largest = values.max(axis=0)
    values /= np.where(largest > 0, largest, 1.0)  # squares of a tiny group's values would vanish
    deviation = values.std(axis=0)
    varies = deviation > _ROUNDING * values.mean(axis=0)
    score = np.zeros_like(values)
    np.divide(values - values.mean(axis=0), deviation, out=score, where=varies)
    most = np.sort(score.max(axis=1))
    reached = most.size - np.searchsorted(most, score[0] - _ROUNDING, side="left")
    return score[0], reached / most.size


def _note(units: Units) -> str:
    if units.cluster is None:
        counts = {"positive": units.effective_size(1), "negative": units.effective_size(0)}
    else:
        counts = {"cluster": units.effective_size()}
        if counts["cluster"][1] >= FEW:
            counts |= {
                "positive cluster": units.effective_size(1),
                "negative cluster": units.effective_size(0),
            }
    few = [
        f"{number} {what}{'' if number == 1 else 's'}{effective_size_in_words(number, size)}"
        for what, (number, size) in counts.items()
        if size < FEW
    ]
    return f"only {' and '.join(few)}" if few else ""


def _check_weights(names: list[Any], code: Integers, weight: Vector | None) -> None:
    if weight is None:
        return
    empty = np.bincount(code, weights=weight) == 0
    if empty.any():
        at = validate.first(empty)
        raise InvalidInput(
            argument="sample_weight",
            index=validate.first(code == at),
            value=0.0,
            reason=f"all rows of group {show(names[at])} have weight 0",
            remedy="Leave these rows out.",
        )
