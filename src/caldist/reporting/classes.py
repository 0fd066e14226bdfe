"""From classes and matrices of probabilities, or a joint for each class, to a report."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.invalid import show
from caldist._util.numbers import least_of, most
from caldist.data.class_rows import Classes, ClassJoints, ClassRows, class_source
from caldist.data.joint import Joint
from caldist.errors import InvalidInput, InvalidType
from caldist.inference.differences import PARTS
from caldist.inference.intervals import interval_of, interval_of_distance
from caldist.inference.resampling import Resampler
from caldist.measures.lower_distance import lower_distance
from caldist.measures.smooth_ce import smooth_ce
from caldist.multiclass.bracket import distance_bracket
from caldist.multiclass.cells import upper_limit
from caldist.multiclass.classwise import ClassTable, classwise_table
from caldist.multiclass.comparison import paired_models
from caldist.multiclass.intervals import confidence_interval, warn_if_few
from caldist.multiclass.testing import calibration_test
from caldist.plots.class_reliability import top_label_rows
from caldist.plots.classwise import ClassShares, class_shares
from caldist.reporting.class_figures import class_figures
from caldist.reporting.class_verdict import class_verdict
from caldist.reporting.model import (
    ClassModelReport,
    ClassReport,
    ClassTestReport,
    DataReport,
    MeasureReport,
    PairReport,
    Report,
)
from caldist.reporting.verdict import readable

Source = ClassRows | ClassJoints

_BRACKET = 1_000_000  # probabilities up to which a coupling is searched for: some ten seconds
_DRAWS = 2 * 10**9  # probabilities that the draws of a test go over
_LEAST_DRAWS = 99
_MOST_RESAMPLES = 20_000  # for the comparison of many models
_LISTED = 5  # classes that a note names

_INDEPENDENCE = (
    "Rows are taken as independent: reports of several classes take no clusters. Where rows belong "
    "together, as those of a patient or a game, keep one of each, or report on one class with "
    "clusters."
)
_SYMBOLS = {"classwise_distance": "CW", "classwise_smooth_ce": "CWs", "top_label": "smCE top-label"}
_MEANINGS = {
    "classwise_distance": (
        "half the sum of the lower distances of each class against the rest: at least this share "
        "of each row's probability mass has to move"
    ),
    "classwise_smooth_ce": "half the sum of smCE of each class against the rest",
    "top_label": (
        "smCE of the most probable class, right or wrong; it bounds nothing about the whole row"
    ),
    "kernel_ce": "a kernel of the whole row of probabilities, which sees what cancels in classes",
    "brier_score": "predictions that are too extreme, or not extreme enough",
}
_ELSEWHERE = {
    "by": (
        "their report has no sub-groups",
        (
            "Report each sub-group by itself, as report(y_true[by == name], y_prob[by == name], "
            "…), or one class against the rest: report(y_true == name, y_prob[:, number], by=by)."
        ),
    ),
    "group_order": ("their report has no sub-groups", "Leave it out."),
    "clusters": (
        "their intervals and tests take rows for independent",
        (
            "Keep one row of each cluster, or report one class against the rest: "
            "report(y_true == name, y_prob[:, number], clusters=clusters)."
        ),
    ),
    "measures": ("their report has measures of its own", "Leave it out."),
    "tolerance": (
        "their test is of perfect calibration",
        "caldist.multiclass.confidence_interval has limits to compare with it.",
    ),
    "monitor": (
        "a monitor watches one column of probabilities",
        "caldist.reporting.monitor_report(monitor) is a report of its own.",
    ),
}


def is_matrix(values: object) -> bool:
    """Whether something is a table of two or more columns, without reading it."""
    shape = getattr(values, "shape", None)
    if shape is None and isinstance(values, list | tuple) and len(values):
        first = values[0]
        inside = first.shape if isinstance(first, np.ndarray) else None
        if isinstance(first, list | tuple):
            inside = (len(first),)
        return inside is not None and len(inside) == 1 and inside[0] >= 2
    return isinstance(shape, tuple) and len(shape) == 2 and shape[1] >= 2


def speaks_of_classes(y_true: Any, y_prob: Any, classes: object) -> bool:
    """Whether what is to be reported has several classes, and not labels 0 and 1.

    A dict of joints is of models with labels 0 and 1, unless ``classes`` says otherwise.
    """
    if classes is not None or (not isinstance(y_true, Mapping) and _are_joints(y_true)):
        return True
    if isinstance(y_true, Mapping):
        return any(isinstance(item, ClassRows) or _are_joints(item) for item in y_true.values())
    if isinstance(y_prob, Mapping):
        return any(map(is_matrix, y_prob.values()))
    if is_matrix(y_true) and y_prob is not None and not is_matrix(y_prob):
        shapes = np.shape(y_true), np.shape(y_prob)
        raise InvalidInput(
            argument="y_true",
            reason=f"has shape {shapes[0]} and y_prob has {shapes[1]}: they look swapped, since a "
            "matrix holds probabilities",
            remedy="The order is (y_true, y_prob).",
        )
    return is_matrix(y_prob)


def _are_joints(values: object) -> bool:
    """Whether something has a joint for each class."""
    if isinstance(values, Mapping):
        values = list(values.values())
    several = isinstance(values, list | tuple) and len(values) > 0
    return several and all(isinstance(item, Joint) for item in values)  # type: ignore[attr-defined]


def class_models(
    y_true: Any,
    y_prob: Any,
    classes: Classes | None,
    sample_weight: ArrayLike | None,
    *,
    normalize: bool,
) -> dict[str, Source]:
    """Check the rows of each model, once, and return them by name."""
    if isinstance(y_true, Mapping) and not _are_joints(y_true):
        found = _summaries(y_true, y_prob, classes, sample_weight, normalize=normalize)
    elif _are_joints(y_true):
        if isinstance(y_true, Mapping):
            y_true, classes = _in_order(y_true, classes)
        source = class_source(
            y_true, y_prob, classes=classes, normalize=normalize, sample_weight=sample_weight
        )
        found = {"model": source}
    elif isinstance(y_prob, Mapping):
        found = {}
        for name, matrix in y_prob.items():
            if not isinstance(name, str):
                reason = f"has the key {show(name)}, but the name of a model must be a string"
                raise InvalidType(argument="y_prob", reason=reason)
            try:
                found[name] = ClassRows.of(
                    y_true,
                    matrix,
                    classes=classes,
                    normalize=normalize,
                    sample_weight=sample_weight,
                )
            except (InvalidInput, InvalidType) as error:
                if error.argument != "y_prob":
                    raise
                raise error.but(argument=f"y_prob[{name!r}]") from None
        if not found:
            remedy = "Pass at least one model."
            raise InvalidInput(argument="y_prob", value=y_prob, reason="no model", remedy=remedy)
    else:
        rows = ClassRows.of(
            y_true, y_prob, classes=classes, normalize=normalize, sample_weight=sample_weight
        )
        found = {"model": rows}
    (first, one), *others = found.items()
    for name, other in others:
        if other.names != one.names:
            raise InvalidInput(
                argument=repr(name),
                reason=f"has the classes {show(other.names)} and {first!r} has "
                f"{show(one.names)}, but models of one report have the same classes",
                remedy="Make a report of each.",
            )
    return found


def _in_order(joints: Mapping[Any, Joint], classes: Classes | None) -> tuple[list[Joint], Classes]:
    """Return the joints of a dict in the order of the classes that name them."""
    names = list(joints) if classes is None else list(classes)
    if len(names) != len(joints) or set(names) != set(joints):
        reason = f"y_true has joints for {show(list(joints))}, and these must be the same"
        raise InvalidInput(argument="classes", value=names, reason=reason)
    return [joints[name] for name in names], names


def _summaries(
    models: Mapping[Any, Any],
    y_prob: Any,
    classes: Classes | None,
    sample_weight: ArrayLike | None,
    *,
    normalize: bool,
) -> dict[str, Source]:
    found: dict[str, Source] = {}
    for name, item in models.items():
        if not isinstance(name, str):
            reason = f"has the key {show(name)}, but a name must be a string"
            raise InvalidType(argument="y_true", reason=reason)
        if isinstance(item, ClassRows):
            found[name] = item
            continue
        if not _are_joints(item):
            raise InvalidType(
                argument=f"y_true[{name!r}]",
                reason=f"is of type {type(item).__name__}, but a dict in place of the labels holds "
                "a list of joints for each model, as summarize_one_vs_rest returns",
            )
        joints, named = _in_order(item, classes) if isinstance(item, Mapping) else (item, classes)
        found[name] = class_source(
            joints, y_prob, classes=named, normalize=normalize, sample_weight=sample_weight
        )
    return found


def class_report(
    y_true: Any,
    y_prob: Any,
    classes: Classes | None,
    sample_weight: ArrayLike | None,
    level: float,
    resampler: Resampler,
    seed: int,
    refused: Mapping[str, object],
    *,
    normalize: bool,
) -> Report:
    """Return a report on several classes, without what says where it came from."""
    for name, value in refused.items():
        if value is not None:
            why, remedy = _ELSEWHERE[name]
            reason = f"was given with several classes: {why}"
            raise InvalidType(argument=name, reason=reason, remedy=remedy)
    models = class_models(y_true, y_prob, classes, sample_weight, normalize=normalize)
    notes = list(dict.fromkeys(words for rows in models.values() for words in _few(rows)))
    with warnings.catch_warnings():
        for words in notes:  # said already
            warnings.filterwarnings("ignore", re.escape(words), UserWarning)
        tables = {name: _table(rows, level, seed) for name, rows in models.items()}
        shares = {name: class_shares(name, table) for name, table in tables.items()}
        # Limits of all classes together hold with the confidence of the report.
        shares = {name: replace(item, confidence_level=level) for name, item in shares.items()}
        found = tuple(
            _model(name, rows, tables[name], shares[name], level, resampler, seed, notes)
            for name, rows in models.items()
        )
        pairs = _pairs(models, level, resampler, notes)
    return Report(
        models=(),
        pairs=pairs,
        groups=(),
        data=_data(models, found, notes),
        confidence_level=level,
        n_resamples=resampler.n_resamples,
        seed=None,
        versions={},
        class_models=found,
        figures=class_figures(models, found, shares, level, seed),
    )


def _few(rows: Source) -> Iterator[str]:
    """Say that there are too few rows, if so."""
    if isinstance(rows, ClassRows):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            warn_if_few(rows)
        yield from (str(item.message) for item in caught)


def _table(rows: Source, level: float, seed: int) -> ClassTable:
    """Return the table of classes, with lower limits that hold for all of them together."""
    together = rows.n_classes if rows.n_classes > 2 else 1  # the limits of two are the same
    each = 1 - (1 - level) / together
    if isinstance(rows, ClassJoints):
        return classwise_table(rows.joints, classes=rows.names, confidence_level=each, rng=seed)
    return classwise_table(rows, confidence_level=each, rng=seed)  # type: ignore[arg-type]  # checked


def _model(
    name: str,
    rows: Source,
    table: ClassTable,
    shares: ClassShares,
    level: float,
    resampler: Resampler,
    seed: int,
    notes: list[str],
) -> ClassModelReport:
    lines = tuple(
        ClassReport(
            name=str(line.name),
            share=line.share,
            lower=line.lower,
            noise=line.noise,
            smooth_ce=line.smooth_ce,
            frequency=line.frequency,
            mean_prediction=line.mean_prediction,
            mean_residual=line.mean_residual,
        )
        for line in (table.lines[at] for at in shares.worst_first())
    )
    if isinstance(rows, ClassRows):
        found = _of_rows(name, rows, table, lines, level, resampler, seed, notes)
    else:
        found = _of_joints(name, rows, table, lines)
    words = class_verdict(
        found.value,
        found.noise,
        (found.population_lower, found.population_upper),
        found.pvalue,
        found.tests,
        lines,
        level,
        least_of(found.test_resamples),
    )
    return replace(found, verdict=words)


def _of_rows(
    name: str,
    rows: ClassRows,
    table: ClassTable,
    lines: tuple[ClassReport, ...],
    level: float,
    resampler: Resampler,
    seed: int,
    notes: list[str],
) -> ClassModelReport:
    checked: Any = rows  # which the public types do not speak of
    interval = confidence_interval(checked, confidence_level=level, rng=seed)
    two = rows.n_classes == 2
    value = cast("float", interval.value) if two else table.value
    lower, upper = value, None
    if rows.n_rows * rows.n_classes <= _BRACKET:
        sample = distance_bracket(checked, rng=seed)
        lower, upper = sample.lower, sample.upper
    else:
        notes.append(
            f"{name}: no upper end of the distance on these rows was searched for, since "
            f"{rows.n_rows:,} rows of {rows.n_classes:,} classes take long. "
            "caldist.multiclass.distance_bracket finds one."
        )
    if two:
        population = interval_of_distance(rows.binary, level, replace(resampler, progress=False))
        ends = (population.lower, population.upper)
    else:
        ends = (interval.lower, _upper_end(rows, interval.lower, level))
    draws = _draws(name, rows, resampler, notes)
    tested = calibration_test(
        checked,
        n_resamples=draws,
        rng=seed,
        progress=resampler.progress,
    )
    top = top_label_rows(rows)
    confidence = interval_of(top, smooth_ce, level, replace(resampler, progress=False))
    measures = (
        _measure("classwise_distance", value, interval.lower, interval.upper, interval.method),
        _measure("classwise_smooth_ce", _smooth_twin(table)),
        _measure(
            "top_label", confidence.value, confidence.lower, confidence.upper, confidence.method
        ),
    )
    share = rows.share
    return ClassModelReport(
        name=name,
        verdict="",
        value=value,
        noise=table.noise,
        lower=lower,
        upper=upper,
        population_lower=ends[0],
        population_upper=ends[1],
        pvalue=tested.pvalue,
        tests=tuple(
            ClassTestReport(part.measure, _MEANINGS[part.measure], part.pvalue)
            for part in tested.components
        ),
        test_resamples=draws,
        accuracy=float(share @ top.label),
        mean_confidence=float(share @ top.prediction),
        classes=lines,
        measures=measures,
    )


def _upper_end(rows: ClassRows, lower: float, level: float) -> float:
    """Return the upper end of the distance's interval at this level; its lower end is known."""
    return min(1.0, max(lower, upper_limit(rows, (1 - level) / 2)))


def _of_joints(
    name: str, rows: ClassJoints, table: ClassTable, lines: tuple[ClassReport, ...]
) -> ClassModelReport:
    """Return what a joint of each class says: the classes, and what follows from them."""
    limits = [line.lower for line in lines]
    lower = None if None in limits else math.fsum(limit for limit in limits if limit is not None)
    return ClassModelReport(
        name=name,
        verdict="",
        value=table.value,
        noise=table.noise,
        lower=math.fsum(map(_certain_share, rows.joints)),
        upper=None,
        population_lower=lower,
        population_upper=None,
        pvalue=None,
        tests=(),
        test_resamples=0,
        accuracy=None,
        mean_confidence=None,
        classes=lines,
        measures=(
            _measure("classwise_distance", table.value),
            _measure("classwise_smooth_ce", _smooth_twin(table)),
        ),
    )


def _certain_share(joint: Joint) -> float:
    """Return half the lower distance that the rows behind rounded predictions have at least."""
    value = lower_distance(joint)
    ends = lower_distance.rounding(joint, value) if joint.radius > 0 else (value, value)
    return 0.5 * max(0.0, value - joint.radius if ends is None else ends[0])


def _smooth_twin(table: ClassTable) -> float:
    return 0.5 * math.fsum(line.smooth_ce for line in table.lines)


def _measure(
    name: str,
    value: float | None,
    lower: float | None = None,
    upper: float | None = None,
    method: str = "",
) -> MeasureReport:
    note = f"Interval for the population, method {method}."
    if lower is None:
        note = "No interval for the population here; the limits of the classes have one each."
    return MeasureReport(name, _SYMBOLS[name], _MEANINGS[name], value, lower, upper, note)


def _draws(name: str, rows: ClassRows, resampler: Resampler, notes: list[str]) -> int:
    """Return how many draws the test takes: fewer where each goes over very much."""
    wanted = resampler.n_resamples
    possible = max(_LEAST_DRAWS, _DRAWS // (rows.n_rows * rows.n_classes))
    if possible >= wanted:
        return wanted
    notes.append(
        f"{name}: the p-value is from {possible:,} draws instead of {wanted:,}, since each goes "
        f"over {rows.n_rows:,} rows of {rows.n_classes:,} classes. "
        "caldist.multiclass.calibration_test takes any number."
    )
    return possible


def _pairs(
    models: Mapping[str, Source], level: float, resampler: Resampler, notes: list[str]
) -> tuple[PairReport, ...]:
    """Compare all pairs of models, with as many resamples as their number asks for."""
    count = math.comb(len(models), 2)
    if not count:
        return ()
    rows = {name: item for name, item in models.items() if isinstance(item, ClassRows)}
    if len(rows) < len(models):
        notes.append(
            "The models are not compared: summaries do not say whether they share rows. "
            "caldist.multiclass.compare compares two matrices on the same rows."
        )
        return ()
    needed = math.ceil(PARTS * count / (1 - level))
    if needed > max(_MOST_RESAMPLES, resampler.n_resamples):
        notes.append(
            f"The {count:,} pairs of models are not compared: one confidence for all of them would "
            f"take {needed:,} resamples. caldist.multiclass.compare compares two models."
        )
        return ()
    if needed > resampler.n_resamples:
        notes.append(
            f"The differences between models are from {needed:,} resamples, since their confidence "
            f"holds for {count:,} pairs together."
        )
        resampler = replace(resampler, n_resamples=needed)
    compared = paired_models(rows, level, resampler)
    return tuple(
        PairReport(*names, pair.difference, pair.lower, pair.upper, pair.pvalue, pair.least_pvalue)
        for names, pair in compared.items()
    )


def _data(
    models: Mapping[str, Source], found: tuple[ClassModelReport, ...], notes: list[str]
) -> DataReport:
    first = next(iter(models.values()))
    joints = [] if isinstance(first, ClassRows) else first.joints
    apart = bool(joints) and len(models) > 1
    weighted = (
        first.weight is not None
        if isinstance(first, ClassRows)
        else any(not joint.counts_rows for joint in joints)
    )
    n_rows = first.n_rows if isinstance(first, ClassRows) else joints[0].n_rows
    left_out = sum(
        sum(rows.joints[0].invalid.values())
        for rows in models.values()
        if isinstance(rows, ClassJoints)
    )
    observed = [
        words
        for model, rows in zip(found, models.values(), strict=True)
        for words in _observed(model, rows)
    ]
    return DataReport(
        n_rows=None if apart else n_rows,
        positives=None,
        share_of_ones=None,
        weighted=weighted,
        n_clusters=None,
        notes=(*dict.fromkeys((*notes, *observed)), _INDEPENDENCE),
        left_out=left_out,
        n_classes=first.n_classes,
    )


def _observed(model: ClassModelReport, rows: Source) -> Iterator[str]:
    """Say what a reader should know of one model's rows."""
    absent = [line for line in model.classes if line.frequency == 0]
    if absent:
        named = ", ".join(readable(line.name) for line in absent[:_LISTED])
        more = f" and {len(absent) - _LISTED:,} more" if len(absent) > _LISTED else ""
        word, verb = ("Class", "is") if len(absent) == 1 else ("Classes", "are")
        yield f"{word} {named}{more} {verb} true for no row: all probability given to it is error."
    if isinstance(rows, ClassRows):
        wrong = int(np.count_nonzero(rows.own == 0))
        if wrong:
            yield f"{model.name} gives probability 0 to the true class of {wrong:,} rows."
        return
    joint = rows.joints[0]
    if joint.invalid:
        reasons = ", ".join(f"{count:,} with a {why}" for why, count in joint.invalid.items())
        yield f"{model.name}: {sum(joint.invalid.values()):,} rows were left out, {reasons}."
    if any(one.radius > 0 for one in rows.joints):
        by = most(max(one.radius for one in rows.joints), 2)
        yield (
            f"The predictions of {model.name} are rounded to cells, by {by} on average at most; "
            "the lower bounds allow for it."
        )
    size = "" if joint.n_rows is None else f" of {joint.n_rows:,} rows"
    yield (
        f"{model.name} is a summary of each class{size}. It has no single rows, so there is no "
        "upper end of the distance, no test and no confidence of the most probable class: pass "
        "labels and a matrix for these. The lower limit of the population is the sum of those of "
        "the classes."
    )
