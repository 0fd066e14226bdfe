"""What a report holds, and the formats in which it is written."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

from caldist._util.atomic_files import write_atomically
from caldist._util.brief import LongText
from caldist._util.escaping import for_line
from caldist._util.results import Result
from caldist.clinical.rates import Rates
from caldist.errors import InvalidInput
from caldist.inference.intervals import Interval
from caldist.inference.regions import Region

if TYPE_CHECKING:
    from caldist.reporting.figures import Figure

FORMAT = "caldist-report-1"


@dataclass(frozen=True)
class MeasureReport(Result):
    """A measure on the rows, and its interval for the population where one exists.

    ``value`` is None where the predictions are rounded and what that does to it is not bounded.
    """

    name: str
    symbol: str
    meaning: str
    value: float | None
    lower: float | None
    upper: float | None
    note: str


@dataclass(frozen=True)
class BoundsReport(Result):
    """Limits for the population of a measure, without recalibration and with it."""

    name: str
    symbol: str
    before_lower: float
    before_upper: float
    after_lower: float
    after_upper: float


@dataclass(frozen=True)
class LossReport(Result):
    """A loss without recalibration and with it, on rows that had no part in it.

    None where it is infinite, as after a certain prediction that failed.
    """

    name: str
    before: float | None
    after: float | None
    change: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class RecalibrationReport(Result):
    """What :func:`caldist.recalibrate` would do to a model.

    ``x`` and ``y`` are the table of its map; ``reason`` says why nothing is stated, if so, and then
    ``bounds`` and ``losses`` are empty. ``slack`` is None for isotonic regression.
    """

    words: str
    family: str
    slack: float | None
    reason: str
    n_resamples: int
    auc_before: float | None
    auc_after: float | None
    bounds: tuple[BoundsReport, ...]
    losses: tuple[LossReport, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class EstimateReport(Result):
    """A number of :func:`caldist.clinical.calibration_summary`, with its interval if it has one."""

    name: str
    value: float | None
    lower: float | None
    upper: float | None
    note: str


@dataclass(frozen=True)
class ClinicalReport(Result):
    """What :func:`caldist.clinical.calibration_summary` says of a model.

    ``reason`` says why there are no numbers, if so, and then ``estimates`` is empty.
    """

    estimates: tuple[EstimateReport, ...]
    test: str
    test_pvalue: float | None
    reason: str


@dataclass(frozen=True)
class ModelReport(Result):
    """One model: the verdict, the distance to calibration, the test, where it errs, all measures.

    ``lower`` and ``upper`` bound the distance to calibration of the rows with certainty;
    ``population_lower`` and ``population_upper`` that of the population with the report's
    confidence. ``rates`` are the mean prediction and the frequency with the factor between them.
    """

    name: str
    verdict: str
    lower: float
    upper: float
    population_lower: float
    population_upper: float
    pvalue: float
    mean_prediction: float
    mean_label: float
    regions: tuple[Region, ...]
    measures: tuple[MeasureReport, ...]
    recalibration: RecalibrationReport
    rates: Rates
    clinical: ClinicalReport


@dataclass(frozen=True)
class ClassReport(Result):
    """One class of a model of several: a line of :class:`caldist.multiclass.ClassTable`.

    ``share`` is half its lower distance against the rest; ``noise`` what calibrated predictions
    would show, and ``lower`` the lower limit of the population's share, for all classes of the
    model together. Both are None where a summary does not say how many rows there are.
    """

    name: str
    share: float
    lower: float | None
    noise: float | None
    smooth_ce: float
    frequency: float
    mean_prediction: float
    mean_residual: float


@dataclass(frozen=True)
class ClassTestReport(Result):
    """One statistic of the test of perfect calibration, with a p-value of its own."""

    name: str
    meaning: str
    pvalue: float


@dataclass(frozen=True)
class ClassModelReport(Result):
    """One model of several classes: the verdict, the classwise distance, bracket, test, classes.

    ``value`` is the classwise distance of the rows, ``noise`` what it would be, on average, if the
    predictions were calibrated. ``lower`` and ``upper`` bound the distance to calibration of the
    rows with certainty, in total variation; ``population_lower`` and ``population_upper`` that of
    the population with the report's confidence. ``tests`` are the parts of ``pvalue``, which comes
    from ``test_resamples`` draws. ``accuracy`` and ``mean_confidence`` are of the most probable
    class. ``classes`` has the worst first. What a summary of each class does not say is None.
    """

    name: str
    verdict: str
    value: float
    noise: float | None
    lower: float
    upper: float | None
    population_lower: float | None
    population_upper: float | None
    pvalue: float | None
    tests: tuple[ClassTestReport, ...]
    test_resamples: int
    accuracy: float | None
    mean_confidence: float | None
    classes: tuple[ClassReport, ...]
    measures: tuple[MeasureReport, ...]


@dataclass(frozen=True)
class PairReport(Result):
    """The difference in smCE of two models on the same rows, simultaneous over all pairs.

    Of several classes it is half the sum of the classes' smCE against the rest. ``least_pvalue`` is
    the smallest p-value that the resamples can give.
    """

    model_a: str
    model_b: str
    difference: float
    lower: float
    upper: float
    pvalue: float
    least_pvalue: float = 0.0


@dataclass(frozen=True)
class GroupReport(Result):
    """One model on one sub-group of the column ``by``, which has no name where it was one array.

    The interval is of this sub-group by itself. The p-value is adjusted for all sub-groups of the
    model, of all columns.
    """

    model: str
    group: str
    n_rows: int
    positives: int
    smooth_ce: float
    lower: float
    upper: float
    pvalue: float
    note: str
    by: str = ""


@dataclass(frozen=True)
class SourceReport(Result):
    """One line on where the rows came from, such as the file or the version of the data."""

    name: str
    value: str


@dataclass(frozen=True)
class DataReport(Result):
    """What the rows are, and what a reader should know about them.

    ``n_rows``, ``positives`` and ``share_of_ones`` are None where a summary does not say, or where
    each model has rows of its own; ``left_out`` rows were not valid, or dropped by who read them.
    ``n_classes`` is None for labels 0 and 1 with one column of predictions. ``source`` says where
    the rows came from. ``doubts`` say why the numbers may not be what was meant; every format has
    them first.
    """

    n_rows: int | None
    positives: int | None
    share_of_ones: float | None
    weighted: bool
    n_clusters: int | None
    notes: tuple[str, ...]
    left_out: int = 0
    n_classes: int | None = None
    source: tuple[SourceReport, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class MonitorStepReport(Result):
    """A batch of a monitor: its name as a string, and where the monitor stood after it."""

    batch: str
    n_rows: int
    alarm: bool
    pvalue: float
    log_e_value: float
    value: float | None
    lower: float
    upper: float | None


@dataclass(frozen=True)
class MonitorGroupReport(Result):
    """A sub-group of a monitor after the last batch; ``alarm`` says that it is at fault (e-BH)."""

    group: str
    alarm: bool
    pvalue: float
    value: float | None
    lower: float
    onset: str | None
    kind: str | None
    direction: str | None


@dataclass(frozen=True)
class MonitorReport(Result):
    """Where a monitor stands. Make one with :func:`caldist.reporting.monitor_report`.

    The fields are those of :class:`caldist.monitoring.Step` after the last batch and the settings
    of :class:`caldist.Monitor`; ``steps`` are all batches since it was made or reset, ``groups``
    the sub-groups, ``n_rows`` all rows. ``to_frame`` has a line for each batch.
    """

    name: str
    verdict: str
    alarm: bool
    pvalue: float
    log_e_value: float
    log_threshold: float
    value: float | None
    lower: float
    upper: float | None
    onset: str | None
    kind: str | None
    tolerance: float | None
    false_alarm_rate: float
    run_length: float | None
    dependence: str
    n_rows: int
    steps: tuple[MonitorStepReport, ...]
    groups: tuple[MonitorGroupReport, ...]
    figures: tuple[Figure, ...] = field(default=(), compare=False, repr=False)

    def _lines(self) -> list[dict[str, Any]]:
        return [step.to_dict() for step in self.steps]

    def __str__(self) -> str:
        return for_line(f"{self.name}: {self.verdict}")

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return one self-contained page; also write it if a path is given."""
        from caldist.reporting.page import monitor_page  # needs jinja2 and matplotlib

        return _written(monitor_page(self), path)


@dataclass(frozen=True)
class Report(Result):
    """The calibration of one or more models. Make one with :func:`caldist.report`.

    It prints as a table, shows as HTML in a notebook, and is written by :meth:`to_html`
    and :meth:`to_json`. ``to_frame`` has a line for each model and measure.
    Models of several classes, whose predictions are matrices, are in ``class_models``, and then
    ``models`` is empty.
    """

    models: tuple[ModelReport, ...]
    pairs: tuple[PairReport, ...]
    groups: tuple[GroupReport, ...]
    data: DataReport
    confidence_level: float
    n_resamples: int
    seed: int | None
    versions: Mapping[str, str]
    monitor: MonitorReport | None = None
    class_models: tuple[ClassModelReport, ...] = ()
    figures: tuple[Figure, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))

    def __reduce__(self) -> tuple[type[Report], tuple[Any, ...]]:
        """Copy and unpickle through the constructor, as read-only mappings cannot be pickled."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return Report, (*(values | {"versions": dict(self.versions)}).values(),)

    def _lines(self) -> list[dict[str, Any]]:
        kept = ("symbol", "value", "lower", "upper")
        models: list[ModelReport | ClassModelReport] = [*self.models, *self.class_models]
        return [
            {"model": model.name, "measure": measure.name}
            | {key: getattr(measure, key) for key in kept}
            for model in models
            for measure in model.measures
        ]

    def __str__(self) -> str:
        from caldist.reporting.text import plain  # text imports this module

        return plain(self)

    def _repr_html_(self) -> str:
        """Show the whole page inside a frame, where its style touches nothing else."""
        from html import escape  # for notebooks only

        page = escape(self.to_html(), quote=True)
        return (
            f'<iframe srcdoc="{page}" title="Calibration report" loading="lazy" '
            'style="width:100%;height:48rem;border:1px solid #8884"></iframe>'
        )

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as one self-contained page; also write it if a path is given.

        The figures are drawn now. A report read from JSON has none: it does not carry the rows.
        """
        from caldist.reporting.page import page  # needs jinja2 and matplotlib

        return _written(page(self), path)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as JSON at full precision; also write it if a path is given.

        Its schema is ``caldist/reporting/report.schema.json``.
        """
        content = {"format": FORMAT, **self.to_dict()}
        return _written(json.dumps(content, indent=2, allow_nan=False) + "\n", path)

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> Report:
        """Read what :meth:`to_json` returned or wrote: the text, or the path of a file."""
        is_text = isinstance(source, str) and source.lstrip().startswith("{")
        text = str(source) if is_text else Path(source).read_text(encoding="utf-8")
        try:
            content = json.loads(text)
            found = content.pop("format", "no format")
            if found != FORMAT:
                reason = f"has format {found!r}, and this version reads {FORMAT!r}"
                raise InvalidInput(argument="the report", reason=reason)
            return _report(content)
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            reason = f"is none, or it is damaged: {error}"
            raise InvalidInput(argument="the report", reason=reason) from error


def _report(content: dict[str, Any]) -> Report:
    monitor = content.pop("monitor", None)  # of which the schema says that it may be missing
    models = []
    for model in content.pop("models"):
        regions = tuple(Region(**region) for region in model.pop("regions"))
        measures = tuple(MeasureReport(**measure) for measure in model.pop("measures"))
        parts: dict[str, Any] = {
            "regions": regions,
            "measures": measures,
            "recalibration": _recalibration(model.pop("recalibration")),
            "rates": _rates(model.pop("rates")),
            "clinical": _clinical(model.pop("clinical")),
        }
        models.append(ModelReport(**model, **parts))
    return Report(
        models=tuple(models),
        pairs=tuple(PairReport(**pair) for pair in content.pop("pairs")),
        groups=tuple(GroupReport(**group) for group in content.pop("groups")),
        data=_data(content.pop("data")),
        monitor=None if monitor is None else _monitor(monitor),
        class_models=tuple(map(_class_model, content.pop("class_models"))),
        **content,
    )


def _rates(content: dict[str, Any]) -> Rates:
    ratio = content["ratio"]
    for end, nothing in (("lower", -math.inf), ("upper", math.inf)):
        ratio[end] = nothing if ratio[end] is None else ratio[end]
    return Rates(**content | {"ratio": Interval(**ratio)})


def _data(content: dict[str, Any]) -> DataReport:
    source = tuple(SourceReport(**item) for item in content["source"])
    words = {name: tuple(content[name]) for name in ("notes", "doubts")}
    return DataReport(**content | words | {"source": source})


def _clinical(content: dict[str, Any]) -> ClinicalReport:
    estimates = tuple(EstimateReport(**item) for item in content["estimates"])
    return ClinicalReport(**content | {"estimates": estimates})


def _class_model(content: dict[str, Any]) -> ClassModelReport:
    parts = {
        "tests": tuple(ClassTestReport(**item) for item in content["tests"]),
        "classes": tuple(ClassReport(**item) for item in content["classes"]),
        "measures": tuple(MeasureReport(**item) for item in content["measures"]),
    }
    return ClassModelReport(**content | parts)


def _monitor(content: dict[str, Any]) -> MonitorReport:
    steps = tuple(MonitorStepReport(**step) for step in content.pop("steps"))
    groups = tuple(MonitorGroupReport(**group) for group in content.pop("groups"))
    return MonitorReport(**content, steps=steps, groups=groups)


def _recalibration(content: dict[str, Any]) -> RecalibrationReport:
    parts = {
        "bounds": tuple(BoundsReport(**item) for item in content["bounds"]),
        "losses": tuple(LossReport(**item) for item in content["losses"]),
        "x": tuple(content["x"]),
        "y": tuple(content["y"]),
    }
    return RecalibrationReport(**content | parts)


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:

        def write(file: IO[bytes]) -> None:
            file.write(text.encode("utf-8"))

        write_atomically(Path(path), write)
    return LongText(text)
