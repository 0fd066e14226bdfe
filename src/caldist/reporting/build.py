"""From labels and predictions, or joints in their place, to a report."""

from __future__ import annotations

import math
import platform
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caldist._util.memory import give_back
from caldist._util.numbers import least_of, most
from caldist._util.progress import phases
from caldist._util.version import __version__
from caldist.clinical.rates import means, rates_of
from caldist.data import validate
from caldist.data.class_rows import Classes
from caldist.data.doubts import doubts_of
from caldist.data.joint import Joint
from caldist.data.rows import Rows, models_of
from caldist.errors import InvalidType, answering
from caldist.inference.comparison import is_split, paired_comparisons
from caldist.inference.differences import PARTS
from caldist.inference.intervals import interval_of, interval_of_distance
from caldist.inference.limits import few_in_words
from caldist.inference.recipes import moved_outwards
from caldist.inference.regions import miscalibrated_regions
from caldist.inference.resampling import Resampler
from caldist.inference.sample import units_of
from caldist.inference.testing import calibration_test, few_clusters_in_words
from caldist.measures.base import Measure
from caldist.measures.certification import sample_bracket
from caldist.measures.lower_distance import TOLERANCE
from caldist.measures.registry import find_all, shown_in
from caldist.measures.smooth_ce import smooth_ce
from caldist.monitoring import Monitor
from caldist.recalibration.recalibration import Recalibration
from caldist.reporting.classes import class_report, speaks_of_classes
from caldist.reporting.clinical import clinical_report
from caldist.reporting.figures import figures
from caldist.reporting.model import (
    DataReport,
    GroupReport,
    MeasureReport,
    ModelReport,
    PairReport,
    Report,
)
from caldist.reporting.monitoring import monitor_report
from caldist.reporting.recalibrations import recalibration_of, recalibration_report
from caldist.reporting.source import check_source, with_source
from caldist.reporting.subgroups import (
    By,
    Order,
    columns_of,
    columns_of_joints,
    groups_of_models,
)
from caldist.reporting.verdict import verdict

_MOST_RESAMPLES = 20_000  # for the comparison of many models
_SIDE = 0.01  # of the rows beyond one half, from which on confidence is spoken of
_PHASES = 6  # of a model
_FEW = 20  # different predictions that are worth a note


@answering
def report(
    y_true: ArrayLike | Joint | Mapping[str, Any] | Sequence[Joint],
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    classes: Classes | None = None,
    normalize: bool = False,
    by: By | None = None,
    group_order: Order | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    clusters: ArrayLike | None = None,
    measures: Sequence[Measure[Any] | str] | None = None,
    tolerance: float | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    rng: validate.Rng = 0,
    monitor: Monitor | None = None,
    source: Mapping[str, object] | None = None,
    progress: bool = False,
) -> Report:
    """Report on the calibration of one or more models: a verdict, figures, intervals, tests.

    It also says what :func:`caldist.recalibrate` would do to each model, with what is proved of
    that, if the rows did not train it.

    **Several classes.** With a matrix of predictions the report is about
    :func:`caldist.multiclass.classwise_distance`: the value beside what calibrated predictions
    would show, its limits for the population, the bracket of the distance, the test, and the
    classes, the worst first, with limits that hold for all of them together. Its models are in
    ``class_models``. There are no sub-groups, clusters and recalibrations then.

    Parameters
    ----------
    y_true : array-like of 0 and 1, Joint, or dict from names to joints
        A joint stands for labels, predictions and weights of one model at once. Joints do not say
        whether they share rows, so models that come as joints are not compared. For several
        classes: the class of each row, or a list of joints as
        :func:`caldist.engines.summarize_one_vs_rest` returns it, or a dict from names to such.
    y_prob : mapping from name to array-like in [0, 1]
        Each model's predicted probability of label 1, on the same rows. One array is one model,
        called "model". For several classes: a matrix or a frame, with a row per example and a
        column per class, rows summing to 1.
    classes : sequence, optional
        Of several classes: the labels in the order of the columns, where they are not 0, 1, … or
        the names of a frame's columns.
    normalize : bool
        Of several classes: divide each row by its sum, where rounding keeps rows from
        summing to 1.
    by : array-like, or dict from names to such, or frame, optional
        A sub-group for each row, or several columns of them. Numbers of more than 20 different
        values are put into four bins of about equally many rows, which the table names; turn them
        into text for a sub-group each. p-values are adjusted for all sub-groups of all columns.
        Beside a joint: the joints of the sub-groups of its rows, as
        ``{"site": caldist.summarize(…, by="site")}``.
    group_order : "evidence" or "label", optional
        How sub-groups are sorted: those with the strongest evidence first, or by their labels:
        dates by time, numbers by size, ordered categories in their order. By default dates and
        bins by label, others by evidence.
    sample_weight : array-like, optional
    pos_label : optional
        The value of ``y_true`` that counts as label 1, where labels are not 0 and 1.
    clusters : array-like, optional
        Rows that belong together (a patient, a game): intervals, tests and figures take clusters as
        a whole.
    measures : sequence of measures or of their names, optional
        What the table of measures has; by default a few.
    tolerance : float, optional
        A distance to calibration that is acceptable: the verdict says whether the population is
        shown to be within it, or beyond.
    confidence_level : float
    n_resamples : int
    rng : int, Generator or None
        The same rows give the same answer; None draws a fresh seed.
    monitor : Monitor, optional
        Adds a section on what it says of the model over time.
    source : dict, optional
        Where the rows come from, which the report says at its head: ``file``, ``date``,
        ``version``, or what else there is to say, as texts or numbers. ``rows_dropped`` is how many
        rows were left out before they came here, or a dict from reasons to such numbers.
    progress : bool
        Show progress bars for what lasts longer than two seconds.

    Returns
    -------
    Report
        Prints as a table, shows as HTML in a notebook; ``to_html(path)`` and ``to_json(path)``
        write it.

    Examples
    --------
    >>> import caldist
    >>> demo = caldist.datasets.load_demo()
    >>> found = caldist.report(demo.y_true, demo.y_prob, n_resamples=99)
    >>> [model.name for model in found.models if model.pvalue > 0.05]
    ['logistic_regression', 'nearest_neighbours']
    >>> import numpy as np
    >>> forest = demo.y_prob["random_forest"]
    >>> matrix = np.column_stack([1 - forest, forest])  # a column for each class
    >>> found = caldist.report(demo.y_true, matrix, n_resamples=99)
    >>> found.class_models[0].population_lower > 0.04
    True
    """
    level = validate.check_fraction("confidence_level", confidence_level)
    if group_order is not None:
        validate.check_choice("group_order", group_order, ("evidence", "label"))
    chosen = find_all(measures, shown_in("report"))
    if tolerance is not None:
        tolerance = validate.check_fraction("tolerance", tolerance)
    origin = check_source(source)
    generator = validate.generator(rng)
    seed = int(rng) if isinstance(rng, int | np.integer) else None
    drawn = int(generator.integers(2**63)) if seed is None else seed
    resampler = Resampler.of(drawn, n_resamples=n_resamples, progress=progress)
    if pos_label is None and speaks_of_classes(y_true, y_prob, classes):
        refused = {
            "by": by,
            "group_order": group_order,
            "clusters": clusters,
            "measures": measures,
            "tolerance": tolerance,
            "monitor": monitor,
        }
        spoken = class_report(
            y_true,
            y_prob,
            classes,
            sample_weight,
            level,
            resampler,
            drawn,
            refused,
            normalize=normalize,
        )
        data = with_source(spoken.data, origin)
        return replace(spoken, data=data, seed=seed, versions=_versions())
    if validate.check_flag("normalize", normalize):
        reason = "it divides rows of several classes by their sums"
        remedy = "Leave it out."
        raise InvalidType(argument="normalize", value=True, reason=reason, remedy=remedy)
    watched = None if monitor is None else monitor_report(monitor)
    models = models_of(
        y_true, y_prob, sample_weight=sample_weight, clusters=clusters, pos_label=pos_label
    )
    first = next(iter(models.values()))
    if not first.is_summary and (by is not None or len(models) > 1):
        for rows in models.values():
            _ = rows.order  # it will be needed, and joints that find it need no sort of their own
    columns = (
        columns_of_joints(by, models) if first.is_summary else columns_of(by, first.n_rows or 0)
    )
    options: dict[str, Any] = {"n_resamples": resampler.n_resamples, "rng": drawn}
    notes = list(dict.fromkeys(words for rows in models.values() for words in _few(rows)))
    with warnings.catch_warnings():
        for words in notes:  # said already
            warnings.filterwarnings("ignore", re.escape(words), UserWarning)
        of_groups = options | {"confidence_level": level, "progress": resampler.progress}
        groups = tuple(groups_of_models(models, columns, group_order, of_groups))
        recalibrations: dict[str, Recalibration] = {}
        count = _PHASES * len(models)
        with phases("report", count, show=resampler.progress) as begin:
            found = tuple(
                _model(
                    name,
                    rows,
                    chosen,
                    tolerance,
                    level,
                    resampler,
                    options,
                    recalibrations,
                    [group for group in groups if group.model == name],
                    begin,
                )
                for name, rows in models.items()
            )
        pairs = _pairs(models, level, resampler, notes)
        notes += _like_classes(models)
    doubts = tuple(  # now, as they are sorted
        (f"{name}: " if len(models) > 1 else "") + doubt
        for name, rows in models.items()
        for doubt in doubts_of(rows)
    )
    return Report(
        models=found,
        pairs=pairs,
        groups=groups,
        data=with_source(_data(models, notes, doubts), origin),
        confidence_level=level,
        n_resamples=resampler.n_resamples,
        seed=seed,
        versions=_versions(),
        monitor=watched,
        figures=figures(models, found, recalibrations, level, drawn, progress=resampler.progress),
    )


def _model(
    name: str,
    rows: Any,
    chosen: Sequence[Measure[Any]],
    tolerance: float | None,
    level: float,
    resampler: Resampler,
    options: dict[str, Any],
    recalibrations: dict[str, Recalibration],
    groups: Sequence[GroupReport],
    begin: Callable[[str], None],
) -> ModelReport:
    """Say what there is to say of one model, and add what would recalibrate it.

    Statements that have folds, cells and duals in common come one after the other. Then these are
    let go, before others need as much memory.
    """
    begin("distance")
    joint = rows.joint
    above = {one: one(joint) for one in shown_in("report") if one.facts.above_distance}
    sample = sample_bracket(joint, tol=TOLERANCE, known=above)
    _let_go(rows)
    begin("recalibration")
    recalibrations[name] = recalibration_of(rows, level, resampler, options["rng"])
    begin("intervals")
    population = interval_of_distance(rows, level, replace(resampler, progress=False))
    measures = tuple(_measure(one, rows, level, resampler, above) for one in chosen)
    _let_go(rows)
    begin("test")
    tested = calibration_test(rows, progress=resampler.progress, **options)
    begin("regions")
    regions = tuple(miscalibrated_regions(rows, confidence_level=level, **options))
    rates = rates_of(rows, level)
    predicted, observed = means(joint)
    begin("slope and curve")
    clinical = clinical_report(rows, level, resampler)
    _let_go(rows)
    return ModelReport(
        name=name,
        verdict=verdict(
            population.lower,
            population.upper,
            tested.pvalue,
            regions,
            level,
            tolerance=tolerance,
            rates=rates,
            least_pvalue=least_of(tested.n_resamples),
            both_sides=_on_both_sides(joint),
            groups=groups,
        ),
        lower=sample.lower,
        upper=sample.upper,
        population_lower=population.lower,
        population_upper=population.upper,
        pvalue=tested.pvalue,
        mean_prediction=predicted,
        mean_label=observed,
        regions=regions,
        measures=measures,
        recalibration=recalibration_report(recalibrations[name]),
        rates=rates,
        clinical=clinical,
    )


def _let_go(rows: Rows) -> None:
    """Forget what statements had in common; where rows are many, others find its memory free."""
    rows.cache.clear()
    give_back()


def _few(rows: Rows) -> list[str]:
    """Say so where rows of a label are few."""
    units = units_of(rows)
    return [words for words in (few_in_words(units), few_clusters_in_words(units)) if words]


def _on_both_sides(joint: Joint) -> bool:
    """Whether predictions lie on both sides of one half, each with a share worth speaking of."""
    above = joint.prediction > 0.5
    share = float((joint.mass0 + joint.mass1)[above].sum()) / joint.total
    return _SIDE <= share <= 1 - _SIDE


def _measure(
    measure: Measure[Any],
    rows: Rows,
    level: float,
    resampler: Resampler,
    known: Mapping[Measure[Any], float],
) -> MeasureReport:
    """Return a measure with its interval; ``known`` are values on these rows."""
    joint = rows.joint
    value = lower = upper = None
    bounded = measure.rounding(joint, 0.0) is not None
    if measure.has_interval and (bounded or measure.facts.interval is not None):
        found = interval_of(rows, measure, level, resampler)
        value, lower, upper = found.value if bounded else None, found.lower, found.upper
        note = f"Interval for the population, method {found.method}."
        if bounded and joint.radius > 0 and found.rounding is not None:
            by = most(found.rounding, 2)
            note += f" Rounding of the predictions changes the value by {by} at most."
    else:
        if bounded:
            of_rows = known[measure] if measure in known else measure.of(joint)
            value, _, _ = moved_outwards(measure, joint, of_rows, of_rows, of_rows)
        note = f"No interval for the population: {measure.facts.no_interval}"
    if not bounded:
        note += " No value: what rounding of the predictions does to it is not bounded."
    return MeasureReport(str(measure), measure.symbol, measure.summary, value, lower, upper, note)


def _pairs(
    models: dict[str, Rows], level: float, resampler: Resampler, notes: list[str]
) -> tuple[PairReport, ...]:
    """Compare all pairs of models, with as many resamples as their number asks for."""
    count = math.comb(len(models), 2)
    if not count:
        return ()
    first = next(iter(models.values()))
    if first.is_summary:
        notes.append(
            "The models are not compared: summaries do not say whether they share rows. "
            "caldist.compare(joint_a, joint_b) compares samples that are independent of each other."
        )
        return ()
    split = is_split("auto", first.label.size)  # which needs no resamples
    needed = 0 if split else math.ceil(PARTS * count / (1 - level))
    if needed > max(_MOST_RESAMPLES, resampler.n_resamples):
        notes.append(
            f"The {count:,} pairs of models are not compared: one confidence for all of them would "
            f"take {needed:,} resamples. caldist.compare compares two models."
        )
        return ()
    if needed > resampler.n_resamples:
        notes.append(
            f"The differences between models are from {needed:,} resamples, since their confidence "
            f"holds for {count:,} pairs together."
        )
        resampler = replace(resampler, n_resamples=needed)
    found = paired_comparisons(models, smooth_ce, level, resampler)
    return tuple(
        PairReport(*names, pair.difference, pair.lower, pair.upper, pair.pvalue, pair.least_pvalue)
        for names, pair in found.items()
    )


def _like_classes(models: dict[str, Rows]) -> Iterator[str]:
    """Say so where joints look like those of the classes of one model."""
    joints = [rows.joint for rows in models.values() if rows.is_summary]
    totals = {joint.total for joint in joints}
    if len(joints) > 1 and len(totals) == 1:
        true = sum(float(joint.mass1.sum()) for joint in joints)
        if math.isclose(true, totals.pop(), rel_tol=1e-9):
            yield (
                "Each joint is taken for a model with labels 0 and 1. If they are the classes of "
                "one model, pass classes=[…] too, in the order of the dict, or a list of joints."
            )


def _data(models: dict[str, Rows], notes: list[str], doubts: tuple[str, ...]) -> DataReport:
    first = next(iter(models.values()))
    apart = first.is_summary and len(models) > 1
    observed = [words for name, rows in models.items() for words in _observed(name, rows)]
    if apart:
        for name, rows in models.items():
            size = "a number of" if rows.n_rows is None else f"{rows.n_rows:,}"
            ones = "" if rows.n_positives is None else f", {rows.n_positives:,} with label 1"
            observed.append(f"{name} has {size} rows of its own{ones}.")
    return DataReport(
        n_rows=None if apart else first.n_rows,
        positives=None if apart else first.n_positives,
        share_of_ones=None if apart else float(first.joint.mass1.sum()) / first.joint.total,
        weighted=any(rows.weighted for rows in models.values()),
        n_clusters=None if first.cluster is None else first.n_clusters,
        left_out=sum(sum(rows.joint.invalid.values()) for rows in models.values()),
        notes=(*notes, *observed, _independence(first)),
        doubts=doubts,
    )


def _independence(rows: Rows) -> str:
    """Say what intervals and tests take as independent."""
    if rows.cluster is not None:
        return (
            f"The {rows.n_clusters:,} clusters are taken as independent; rows within one may "
            "depend on each other."
        )
    return (
        "Rows are taken as independent. If some belong together, as those of a patient or a game, "
        "pass the rows with clusters."
    )


def _observed(name: str, rows: Rows) -> Iterator[str]:
    """Say what a reader should know of one model's rows."""
    joint = rows.joint
    if joint.invalid:
        reasons = ", ".join(f"{count:,} with a {why}" for why, count in joint.invalid.items())
        yield f"{name}: {sum(joint.invalid.values()):,} rows were left out, {reasons}."
    if joint.radius > 0:
        cells = "" if joint.grid is None else f" to {2**joint.grid.bits:,} cells"
        yield (
            f"The predictions of {name} are rounded{cells}, by {most(joint.radius, 2)} on average "
            "at most. Bounds and intervals are moved outwards and the p-value is raised to allow "
            "for it, and a measure that rounding moves without bound has no value."
        )
    elif joint.prediction.size <= _FEW:
        size = joint.prediction.size
        yield f"{name} has only {size} different prediction{'' if size == 1 else 's'}."
    if rows.is_summary and not joint.counts_rows:
        return  # sums of weights do not say how many rows they are of
    for end, place in ((0, 0), (1, joint.prediction.size - 1)):
        # Of rounded predictions only those of 1 have a cell of their own.
        exact = joint.radius == 0 or (joint.grid is not None and end == 1)
        if exact and joint.prediction[place] == end:
            units = units_of(rows)
            there = units.place == place
            wrong = int(units.count[there & (units.label != end)].sum())
            if wrong:
                yield (
                    f"{name} predicts exactly {end} for {units.count[there].sum():,} rows, and "
                    f"{wrong:,} of them turn out otherwise."
                )


def _versions() -> dict[str, str]:
    import scipy  # only its version is wanted

    return {
        "caldist": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
    }
