"""The reference: an index by task, and a page for each function with what it returns.

The pages are written below ``reference/`` when a build begins; git ignores them. A measure has its
page below ``measures/``.
"""

from __future__ import annotations

import inspect
import re
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import mock

_FOLDER = Path(__file__).parent.parent / "reference"
MODULES = (
    "caldist",
    "caldist.errors",
    "caldist.data",
    "caldist.inference",
    "caldist.clinical",
    "caldist.groups",
    "caldist.recalibration",
    "caldist.monitoring",
    "caldist.multiclass",
    "caldist.plots",
    "caldist.reporting",
    "caldist.engines",
    "caldist.certificates",
    "caldist.measures",
    "caldist.datasets",
    "caldist.paper",
    "caldist.sklearn",
    "caldist.torch",
)
# What a page about caldist.torch needs of torch are names, so the site is built without it as well.
MOCKED = [name for name in ("torch", "torchmetrics") if find_spec(name) is None]

_ROUTING = re.compile("set_.*_request")  # scikit-learn's, on every estimator


@dataclass(frozen=True)
class Task:
    """What somebody wants to do, and the pages for it: names, the first of them the page's own."""

    file: str
    title: str
    words: str
    pages: tuple[str, ...]


TASKS = (
    Task(
        "measuring",
        "Measure a model",
        "Numbers of labels and predictions. Each measure has [a page](../measures/index.md) of "
        "its own; here is what goes with all of them.",
        (
            "evaluate measures.Evaluations measures.Evaluation",
            "measures.Measure",
            "measures.corp measures.Corp",
            "measures.t_cal measures.TCal",
            "measures.optimal_partition",
            "measures.polynomials",
            "measures.region",
        ),
    ),
    Task(
        "distance",
        "The distance to calibration, with proof",
        "What the rows at hand say for certain, and arrays that prove it.",
        (
            "distance_bracket measures.DistanceBracket",
            "certify certificates.Certificate certificates.JointCertificate "
            "certificates.SmoothCertificate certificates.LowerCertificate "
            "certificates.UpperCertificate certificates.GapCertificate certificates.Coupling "
            "errors.CertificateError",
            "measures.nearest_calibrated",
            "measures.true_distance",
            "measures.true_distance_bounds measures.DistanceBounds",
        ),
    ),
    Task(
        "population",
        "Is it noise? Intervals, tests, comparisons",
        "Statements about the population that the rows come from.",
        (
            "confidence_interval inference.Interval",
            "calibration_test inference.TestResult",
            "compare inference.Comparison",
            "inference.compare_all inference.Comparisons",
            "gate inference.Gate",
            "inference.sample_size inference.SampleSize",
            "inference.guaranteed_width",
        ),
    ),
    Task(
        "where",
        "Where does it err?",
        "inference.Regions of predictions, sub-groups of rows, and the curve.",
        (
            "inference.miscalibrated_regions inference.Region inference.Regions",
            "evaluate_groups groups.GroupEvaluation groups.Group",
            "clinical.calibration_curve clinical.CalibrationCurve",
        ),
    ),
    Task(
        "medicine",
        "Risk models in medicine",
        "The numbers that medical journals ask for, with intervals. "
        "[The guide](../guides/medical-risk.md).",
        (
            "clinical.calibration_summary clinical.CalibrationSummary clinical.CoxTest "
            "clinical.Rates",
            "clinical.net_benefit clinical.NetBenefit",
        ),
    ),
    Task(
        "recalibration",
        "Recalibration",
        "A monotone map for new rows, with limits for what it achieves. "
        "[The guide](../guides/recalibration.md).",
        (
            "recalibrate recalibration.Recalibration recalibration.LossChange "
            "recalibration.CandidateLoss",
            "recalibration.evaluate_map",
            "recalibration.CalibrationMap",
        ),
    ),
    Task(
        "monitoring",
        "Watch a model in use",
        "An alarm that is right at every look. [The guide](../guides/monitoring.md).",
        ("Monitor monitoring.Step monitoring.Steps",),
    ),
    Task(
        "classes",
        "Several classes",
        "Functions of a matrix with a column for each class. "
        "[The guide](../guides/several-classes.md).",
        (
            "multiclass.classwise_distance",
            "multiclass.classwise_table multiclass.ClassTable multiclass.ClassLine",
            "multiclass.smooth_ce",
            "multiclass.kernel_ce",
            "multiclass.worst_subset multiclass.Subset",
            "multiclass.distance_bracket",
            "multiclass.certify certificates.ClassCertificate",
            "multiclass.confidence_interval",
            "multiclass.calibration_test",
            "multiclass.compare",
            "multiclass.top_label",
            "multiclass.one_vs_rest",
        ),
    ),
    Task(
        "tables",
        "Large tables, and summaries of them",
        "A summary goes wherever labels and predictions go. Engines come with the extra `engines`. "
        "[The guide](../guides/large-tables.md).",
        (
            "summarize",
            "Joint data.Grid",
            "Accumulator",
            "engines.summarize_one_vs_rest",
            "engines.summarize_top_label",
            "engines.open_files",
        ),
    ),
    Task(
        "figures",
        "Figures",
        "Displays that keep their numbers. They need the extra `report`. "
        "[The gallery](../gallery/index.md).",
        (
            "plots.ReliabilityDisplay plots.ReliabilityCurve",
            "plots.BinnedDisplay plots.BinnedCurve",
            "plots.WitnessDisplay plots.WitnessCurve",
            "plots.DistanceDisplay plots.DistanceInterval",
            "plots.MapDisplay plots.MapCurve",
            "plots.DecisionCurveDisplay plots.DecisionCurve",
            "plots.MonitorDisplay plots.MonitorCurve",
            "plots.ClasswiseDisplay plots.ClassShares",
            "plots.ClassReliabilityDisplay",
            "plots.TopLabelDisplay",
        ),
    ),
    Task(
        "reports",
        "Reports",
        "All of it in one page for people, and as JSON. They need the extra `report`.",
        (
            "report reporting.Report reporting.DataReport reporting.ModelReport "
            "reporting.MeasureReport reporting.PairReport reporting.GroupReport "
            "reporting.RecalibrationReport reporting.BoundsReport reporting.LossReport "
            "reporting.ClassModelReport reporting.ClassReport reporting.ClassTestReport "
            "reporting.ClinicalReport reporting.EstimateReport reporting.SourceReport "
            "reporting.Figure",
            "reporting.monitor_report reporting.MonitorReport reporting.MonitorStepReport "
            "reporting.MonitorGroupReport",
        ),
    ),
    Task(
        "scikit-learn",
        "scikit-learn",
        "Estimators and scorers. [The guide](../guides/scikit-learn.md).",
        (
            "sklearn.RecalibratedClassifier",
            "sklearn.MonotoneCalibrator",
            "sklearn.SCORERS",
            "sklearn.CalibrationScorer",
        ),
    ),
    Task(
        "pytorch",
        "PyTorch",
        "Losses, measures and metrics. They need the extra `torch`. "
        "[The guide](../guides/pytorch.md).",
        (
            "torch.kernel_ce_loss",
            "torch.smooth_ce_loss",
            "torch.multiclass_kernel_ce_loss",
            "torch.multiclass_smooth_ce_loss",
            "torch.binned_ece",
            "torch.ece",
            "torch.brier_score",
            "torch.CalibrationDistance",
            "torch.MulticlassCalibrationDistance",
        ),
    ),
    Task(
        "paper",
        "The paper",
        "Its table of properties, its random estimators, and all of its figures and statements.",
        (
            "paper.properties paper.PropertyTable paper.Property paper.Evidence "
            "paper.PropertyError",
            "paper.estimate_kernel_ce",
            "paper.kernel_ce_draws paper.KernelDraws",
            "paper.estimate_surrogate_interval_ce",
            "paper.run paper.PARTS",
        ),
    ),
    Task(
        "errors",
        "Errors, and what to report",
        "An error about an argument has its name, the index, the value, the reason and a remedy.",
        ("InvalidInput InvalidType", "errors.ToleranceError", "show_versions"),
    ),
    Task(
        "data",
        "Data to try it on",
        "What the examples use.",
        ("datasets.load_demo datasets.Demo",),
    ),
)


def find(name: str) -> Any:
    """Return what ``caldist.NAME`` is; some are imported when they are first asked for."""
    module, _, last = f"caldist.{name}".rpartition(".")
    with mock(MOCKED) if MOCKED else nullcontext():
        return getattr(import_module(module), last)


def measure_names() -> list[str]:
    """Return the measures, without ``caldist.``: those of the front page, and all others."""
    from caldist.measures.registry import all_measures

    top = find("__all__")
    return [name if name in top else f"measures.{name}" for name in all_measures()]


def public_names() -> list[str]:
    """Return the names to document, without ``caldist.``: each once, where it is first listed."""
    seen: set[int] = set()
    found = []
    for module in MODULES:
        inside = f"{module}.".removeprefix("caldist.")
        for name in find(f"{inside}__all__"):
            item = find(inside + name)
            if id(item) not in seen and not name.startswith("__"):
                seen.add(id(item))
                found.append(inside + name)
    return found


def _documented(name: str) -> list[str]:
    item = find(name)
    if inspect.isclass(item):
        lines = [f".. autoclass:: caldist.{name}", "   :members:"]
        routed = [member for member in dir(item) if _ROUTING.fullmatch(member)]
        return [*lines, *([f"   :exclude-members: {', '.join(routed)}"] if routed else []), ""]
    if callable(item):
        return [f".. autofunction:: caldist.{name}", ""]
    return [f".. autodata:: caldist.{name}", "   :no-value:", ""]


def _summary(name: str) -> str:
    """Return the first line of the docstring, as a cell of a table."""
    item = find(name)
    return (inspect.getdoc(item) or "").partition("\n")[0].replace("``", "`").replace("|", "\\|")


def _table(names: list[str]) -> list[str]:
    rows = [f"| {{py:obj}}`{name} <caldist.{name}>` | {_summary(name)} |" for name in names]
    return ["| | |", "| --- | --- |", *rows, ""]


def _page(names: list[str]) -> str:
    lines = [f"# `caldist.{names[0]}`", ""]
    for at, name in enumerate(names):
        if at == 1:
            lines += ["## What belongs to it", ""]
        lines += ["```{eval-rst}", *_documented(name), "```", ""]
    return "\n".join(lines)


def _task_page(task: Task, pages: list[list[str]]) -> str:
    others = [name for names in pages for name in names[1:]]
    returned = ["What belongs to them:", "", *_table(others)] if others else []
    toctree = ["```{toctree}", ":hidden:", "", *(names[0] for names in pages), "```", ""]
    table = _table([names[0] for names in pages])
    return "\n".join([f"# {task.title}", "", task.words, "", *table, *returned, *toctree])


_HEAD = """\
# Reference

Data come first and by position, options by keyword. `rng` takes a seed, a `numpy.random.Generator`
or None. Results with structure are frozen dataclasses: they print as sentences, show as tables in
notebooks, and have `to_dict()`, `to_frame()` and `to_latex()`, a table for the package `booktabs`.
Wrong input raises `ValueError` or `TypeError` with the argument, the value, its place and the
remedy; calls that almost work are answered with the one that does. Each function has a page, with a
link to its source.
"""


def write_pages(_: Sphinx) -> None:
    """Write the pages of functions, of tasks, and the index of all."""
    _FOLDER.mkdir(exist_ok=True)
    texts = {}
    index = [_HEAD]
    for task in TASKS:
        pages = [page.split() for page in task.pages]
        for names in pages:
            texts[names[0]] = _page(names)
        texts[task.file] = _task_page(task, pages)
        measures = measure_names() if task.file == "measuring" else []
        shown = _table(measures + [names[0] for names in pages])
        index += [f"## [{task.title}]({task.file}.md)", "", task.words, "", *shown]
    files = ["../measures/index", *(task.file for task in TASKS)]
    texts["index"] = "\n".join([*index, "```{toctree}", ":hidden:", "", *files, "```", ""])
    for name, text in texts.items():
        path = _FOLDER / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:  # else it stays read
            path.write_text(text, encoding="utf-8")
    for path in _FOLDER.glob("*.md"):
        if path.stem not in texts:
            path.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for files, and let autodoc do without what is absent."""
    app.config.autodoc_mock_imports = MOCKED  # type: ignore[attr-defined]
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
