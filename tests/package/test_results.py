"""Every public result reads well: as text, in a notebook, as a dict, as a frame and in LaTeX."""

import html
import importlib
import inspect
import json
import pickle
import re
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import caldist
from caldist import certificates, clinical, multiclass, reporting
from caldist._util import results
from caldist._util.escaping import for_latex
from caldist._util.results import Result
from caldist._util.text_tables import booktabs
from caldist.certificates import Certificate
from caldist.cli._output import show
from caldist.inference.regions import Region
from caldist.kernels.loader import COMPILED

# What LaTeX, HTML and a terminal obey; the second begins with what ends a line's options.
NAMES = [r"50% of $a_b & {c}^2 ~ \d #1 <b>x</b>", "*[1ex] \"q\" -- '|' \x1b[2J\u202e", "plain"]
MODULES = ["caldist", "caldist.certificates", "caldist.inference", "caldist.monitoring"]
MODULES += ["caldist.clinical", "caldist.groups", "caldist.measures", "caldist.multiclass"]
MODULES += ["caldist.recalibration", "caldist.reporting", "caldist.engines", "caldist.paper"]
QUICK = {"n_resamples": 99, "rng": 0}
ROWS = 200 if COMPILED else 90
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def public_types():
    """Return the results that can be imported, which a function may return."""
    found = {
        item
        for module in map(importlib.import_module, MODULES)
        for item in (getattr(module, name) for name in module.__all__)
        if inspect.isclass(item) and issubclass(item, Result)
    }
    return {kind for kind in found if not inspect.isabstract(kind)}


def parts(result):
    """Return a result and all results that are inside of it."""
    yield result
    for value in vars(result).values() if hasattr(result, "__dict__") else ():
        items = list(value.values()) if isinstance(value, Mapping) else value
        for item in items if isinstance(items, tuple | list) else [items]:
            if isinstance(item, Result):
                yield from parts(item)


@pytest.fixture(scope="module")
def samples():
    """Return results of all types by type, made with names that have to be escaped."""
    rng = np.random.default_rng(0)
    p = rng.random(ROWS)
    y = (rng.random(ROWS) < p**1.5).astype(int)
    by = np.array(NAMES)[np.arange(ROWS) % 3]
    matrix = rng.dirichlet(np.ones(3), ROWS // 2)
    label = np.array(NAMES)[[rng.choice(3, p=row) for row in matrix]]
    several = {"classes": NAMES}
    monitor = caldist.Monitor(by=NAMES)
    step = monitor.update(y, p, by=by, batch=NAMES[0])
    source = {"file": NAMES[0]}
    report = caldist.report(y, {NAMES[0]: p, NAMES[1]: p**2}, by=by, source=source, **QUICK)
    recalibrated = caldist.recalibrate(y, p, **QUICK)
    properties = caldist.paper.properties()
    lower = caldist.certify(y, p, measure="lower_distance")
    made = [
        caldist.confidence_interval(y, p, **QUICK),
        caldist.calibration_test(y, p, **QUICK),
        caldist.compare(y, p, p**2, **QUICK),
        caldist.inference.compare_all(y, {NAMES[0]: p, NAMES[1]: p**2}, **QUICK),
        caldist.evaluate(y, p),
        caldist.evaluate(y, p)["smooth_ce"],
        caldist.evaluate_groups(y, p, by=by, **QUICK),
        caldist.gate(y, p, tolerance=0.1),
        caldist.inference.miscalibrated_regions(y, np.sqrt(p), **QUICK),
        caldist.distance_bracket(y, p),
        caldist.confidence_interval(y, p, measure="distance", **QUICK),
        caldist.clinical.calibration_summary(y, p, **QUICK),
        caldist.clinical.calibration_curve(y, p),
        caldist.clinical.net_benefit(y, p, thresholds=[0.1, 0.3]),
        caldist.measures.corp(y, p),
        caldist.measures.t_cal(y, p, **QUICK),
        caldist.paper.kernel_ce_draws(precision=0.01),
        caldist.inference.sample_size(width=0.3, measure="brier_score"),
        caldist.measures.true_distance_bounds(p**1.5, p),
        properties,
        properties["ece", "continuous"],
        properties["ece", "continuous"].evidence(),
        step,
        monitor.steps,
        reporting.monitor_report(monitor, name=NAMES[1]),
        recalibrated,
        recalibrated.map,
        report,
        caldist.report(label, {NAMES[0]: matrix, NAMES[1]: matrix[::-1]}, **several, **QUICK),
        lower,
        lower.coupling(),
        *(caldist.certify(y, p, measure=m) for m in ("smooth_ce", "upper_distance")),
        caldist.certify(y, p, measure="post_processing_gap"),
        multiclass.certify(label, matrix, **several),
        multiclass.classwise_table(label, matrix, **several),
        multiclass.worst_subset(label, matrix, **several),
        multiclass.distance_bracket(label, matrix, **several),
        multiclass.confidence_interval(label, matrix, **several),
    ]
    found = {}
    for result in made:
        for part in parts(result):
            found.setdefault(type(part), part)
    return found


@pytest.mark.slow
def test_every_public_result_is_among_the_samples(samples):
    assert public_types() - set(samples) == set()
    assert len(samples) > 40
    # and what is inside of them is public too
    assert set(samples) - public_types() == set()


def test_evaluations_are_a_dict_that_reads_well():
    joint = caldist.Joint.from_arrays([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    found = caldist.evaluate(joint.coarsen(bits=4), measures=["smooth_ce", "ece"])
    assert isinstance(found, dict)
    assert found == dict(found)
    assert repr(found).startswith(f"Evaluations(smooth_ce={found['smooth_ce'].value!r}, ece=")
    assert json.loads(json.dumps(found.to_dict()))["ece"]["upper"] is None
    first, second = str(found).splitlines()
    assert re.fullmatch(r"smooth_ce  0\.\d+, certainly between [\d.]+ and [\d.]+", first)
    assert second.startswith("ece        ")
    assert second.endswith("what rounding did to it is not bounded")
    frame = found.to_frame("polars")
    assert frame.columns == ["measure", "value", "lower", "upper"]
    assert frame["measure"].to_list() == list(found)
    assert frame["upper"].to_list()[1] is None
    again = pickle.loads(pickle.dumps(found))
    assert (again, type(again)) == (found, type(found))
    assert str(caldist.evaluate(joint, measures=[])) == ""
    assert isinstance(found.to_frame(), pd.DataFrame)


def test_all_have_a_text_of_their_own(samples):
    for kind, result in samples.items():
        text = str(result)
        assert text.strip(), kind
        assert kind.__name__ + "(" not in text, kind  # a repr is for programmers
        assert OBEYED.search(text) is None, kind


LOWER, UPPER = 0.01234549, 0.23456749
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e-?\d+)?")


def test_limits_are_rounded_outwards_in_every_format(samples):
    """Whatever is printed for an end has to hold as well: no number is just inside of one."""
    limits = {"lower": LOWER, "upper": UPPER}
    bounded = [one for one in samples.values() if all(hasattr(one, name) for name in limits)]
    seen = []
    for one in bounded:
        if not is_dataclass(one) or not isinstance(one.lower, float):
            continue
        if isinstance(one, Certificate | Region):  # exact numbers; places of predictions
            continue
        given = {name: end for name, end in limits.items() if getattr(one, name) is not None}
        changed = replace(one, **given)
        for text in (str(changed), changed._repr_html_(), changed.to_latex(digits=3)):
            for number in map(float, NUMBER.findall(text)):
                assert not LOWER < number < 1.01 * LOWER, (type(one), text)
                assert not 0.99 * UPPER < number < UPPER, (type(one), text)
        near = [abs(float(number) / LOWER - 1) < 0.01 for number in NUMBER.findall(str(changed))]
        seen += [type(one).__name__] if any(near) else []
    assert {"Interval", "DistanceBracket", "Comparison", "Gate"} <= set(seen)
    assert {"Evaluation", "LossChange", "Step", "MeasureReport"} <= set(seen)


def test_a_recalibration_says_limits_that_hold(samples):
    found = samples[caldist.recalibration.Recalibration]
    before, after = (
        {name: replace(one, lower=0.030767, upper=0.010439) for name, one in part.items()}
        for part in (found.before, found.after)
    )
    text = str(replace(found, before=before, after=after))
    assert "was at least 0.0307 before and is at most 0.0105 after" in text


def test_tables_of_the_command_line_round_limits_outwards(capsys):
    line = {"value": 0.01234567, "lower": 0.01234567, "upper_limit": 0.01234561}
    show([line], "table", head={}, notes=[])
    assert capsys.readouterr().out.split() == [*line, "0.012346", "0.012345", "0.012346"]


def test_all_have_a_dict_that_json_takes(samples):
    for kind, result in samples.items():
        content = result.to_dict()
        assert content, kind
        assert json.loads(json.dumps(content)), kind


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_all_have_a_frame(samples, library):
    for kind, result in samples.items():
        frame = result.to_frame(library)
        assert type(frame).__module__.startswith(library), kind
        assert frame.shape[1] > 0, kind


@pytest.mark.slow
def test_a_prompt_shows_no_more_than_a_few_lines(samples, report_of_many):
    """``repr`` has at most 300 letters, and no end of a line, whatever a result holds."""
    rng = np.random.default_rng(0)
    p = rng.random(3_000)
    joint = caldist.Joint.from_arrays(rng.random(3_000) < p, p)
    names = [f"{'a long name of a group ' * 9}{at}" for at in range(300)]
    monitor = caldist.Monitor(by=names)
    monitor.update([0, 1], [0.2, 0.7], by=names[:2], batch=names[0])
    many = [
        *samples.values(),
        report_of_many,
        *report_of_many.groups[:3],
        report_of_many.to_html(),
        report_of_many.to_json(),
        report_of_many.to_latex(),
        caldist.recalibrate(rng.random(3_000) < p, p, family="isotonic", **QUICK).map.to_sql("p"),
        *report_of_many.figures,
        *(curve for figure in report_of_many.figures for curve in figure.models),
        *(figure.display(figure.models * 50) for figure in report_of_many.figures),
        caldist.datasets.load_demo(),
        caldist.certify(joint),
        caldist.certify(joint).coupling(),
        caldist.evaluate_groups(dict.fromkeys(names, joint), n_resamples=99),
        joint.coarsen(12),
        joint.coarsen(12).grid,
        monitor,
        monitor.steps,
        monitor.steps[0],
        reporting.monitor_report(monitor),
    ]
    for result in many:
        shown = repr(result)
        assert type(result).__name__ in shown or isinstance(result, str)
        assert len(shown) <= 300, type(result)
        assert OBEYED.search(shown) is None, type(result)
        assert "\n" not in shown, type(result)


@pytest.fixture(scope="module")
def report_of_many():
    rng = np.random.default_rng(1)
    p = rng.random(ROWS)
    y = rng.random(ROWS) < p
    models = {f"{'a long name of a model ' * 9}{at}": p ** (1 + at / 9) for at in range(3)}
    return caldist.report(y, models, by=[f"group {at % 60}" for at in range(ROWS)], **QUICK)


def test_a_repr_tells_what_a_result_says():
    found = caldist.inference.sample_size(width=0.3, measure="brier_score")
    assert repr(found).startswith(
        f"SampleSize(practical={found.practical}, proved={found.proved}, width=0.3, "
    )
    tested = caldist.calibration_test([0, 1, 0, 1] * 9, [0.2, 0.3, 0.6, 0.7] * 9, **QUICK)
    assert f"pvalue={tested.pvalue!r}" in repr(tested)
    assert f"components=<tuple of {len(tested.components)}>" in repr(tested)
    proof = caldist.certify([0, 1] * 9, np.arange(18) / 20)
    assert repr(proof) == f"<LowerCertificate: {proof}>"


class Tags(HTMLParser):
    """Checks that tags are closed in order, and collects the text between them."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.slow
def test_all_show_as_html(samples):
    for kind, result in samples.items():
        shown = result._repr_html_()
        tags = Tags()
        tags.feed(shown)
        assert tags.open == [], kind
        assert tags.seen <= {"table", "thead", "tbody", "tr", "th", "td", "p", "iframe"}, kind
        assert OBEYED.search(shown) is None, kind


def cells_of(table):
    """Return the cells of a table of LaTeX, or fail where LaTeX would."""
    first, *lines, last = table.split("\n")
    align = re.fullmatch(r"\\begin\{tabular\}\{([lr]*)\}", first)[1]
    assert last == r"\end{tabular}"
    rules = [line for line in lines if re.fullmatch(r"\\(top|mid|bottom)rule", line)]
    assert rules == [r"\toprule", r"\midrule", r"\bottomrule"]
    assert (lines[0], lines[2], lines[-1]) == tuple(rules)
    rows = [line for line in lines if line not in rules]
    found = []
    for row in rows:
        assert row.endswith(r" \\"), row
        cells = re.split(r"(?<!\\)&", row.removesuffix(r"\\"))
        assert len(cells) == len(align), row
        found.append([cell.strip() for cell in cells])
    for row in found:
        for cell in row:
            check_cell(cell)
    return align, found


def check_cell(cell):
    """Fail for anything that LaTeX would obey."""
    words = "backslash|asciitilde|asciicircum|less|greater|bar"
    rest = re.sub(rf"\\(text({words})|ldots|char34)\{{\}}", "", cell)
    rest = re.sub(
        r"\$(-?[\d.]+( \\times 10\^\{-?\d+\})?|-?\\infty"
        r"|\\(le|ge|to|surd|mu|varepsilon|sigma|kappa|ell))\$",
        "",
        rest,
    )
    rest = re.sub(r"\\[{}$&#_%]|\{[\[\]*]\}|-\{\}", "", rest)
    assert re.search(r"[\\{}$&#_%~^\[\]*<>|\"]|--", rest) is None, cell


@pytest.mark.slow
def test_all_have_a_table_of_latex(samples):
    for kind, result in samples.items():
        align, (head, *body) = cells_of(result.to_latex())
        assert body, kind
        columns = ["", "value"] if result._is_upright() else result.to_frame("polars").columns
        assert head == [for_latex(name) for name in columns], kind
        assert "r" in align or result._is_upright() or kind is caldist.paper.PropertyTable, kind


def test_the_digits_of_latex_can_be_chosen():
    found = caldist.paper.kernel_ce_draws(precision=0.01)
    assert "73778" in found.to_latex()  # whole numbers are whole
    interval = caldist.confidence_interval([0, 1] * 50, [0.3, 0.6] * 50, **QUICK)
    assert f"{interval.value:.2g}" in interval.to_latex(digits=2)
    assert f"{interval.value:.7g}" in interval.to_latex(digits=7)
    for wrong in (0, 18, 2.0, "4"):
        with pytest.raises((TypeError, ValueError), match="digits is"):
            interval.to_latex(digits=wrong)


def test_names_come_through_latex_and_html_as_they_are():
    p = np.linspace(0.1, 0.9, 60)
    y = np.arange(60) % 2
    groups = caldist.evaluate_groups(y, p, by=np.array(NAMES[:1] * 60), **QUICK)
    latex, shown = groups.to_latex(), groups._repr_html_()
    assert r"50\% of \$a\_b \& \{c\}\textasciicircum{}2 \textasciitilde{}" in latex
    assert r"\textbackslash{}d \#1 \textless{}b\textgreater{}x" in latex
    assert html.escape(NAMES[0]) in shown
    assert "<b>" not in shown


def test_numbers_in_latex():
    table = booktabs(["a"], [[-0.25], [1e-9], [float("inf")], [float("-inf")], [3], [None]], 3)
    align, cells = cells_of(table)
    assert align == "r"
    expected = ["a", "$-0.25$", r"$1 \times 10^{-9}$", r"$\infty$", r"$-\infty$", "3", ""]
    assert [cell for [cell] in cells] == expected


def test_long_tables_are_cut_in_notebooks_alone(monkeypatch):
    monkeypatch.setattr(results, "_MOST_SHOWN", 2)
    found = caldist.recalibration.CalibrationMap([0, 0.25, 0.5, 1], [0, 0.1, 0.2, 1])
    assert found._repr_html_().count("<tr>") == 3
    assert "2 more lines: see to_frame()" in found._repr_html_()
    assert len(cells_of(found.to_latex())[1]) == 5


def test_the_classes_of_a_subset_are_in_its_table():
    rng = np.random.default_rng(0)
    matrix = rng.dirichlet(np.ones(4), 50)
    found = multiclass.worst_subset(rng.integers(0, 4, 50), matrix)
    assert found.to_frame("polars")["class"].to_list() == list(found.classes)


def test_a_certificate_says_what_it_proves_and_how():
    proof = caldist.certify([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75], measure="smooth_ce")
    assert proof.to_frame("polars").to_dicts() == [
        {"measure": "smooth_ce", "value": 0.03125, "lower": 0.03125, "upper": 0.03125}
        | {"n_rows": 4, "rounding": 0.0}
    ]
    content = proof.to_dict()
    assert content["prediction"] == [0.25, 0.5, 0.75]
    assert content["measure"] == "smooth_ce"
    assert isinstance(proof, certificates.SmoothCertificate)


def test_results_are_public_where_functions_are():
    assert caldist.paper.Property in public_types()
    assert clinical.Rates in public_types()
