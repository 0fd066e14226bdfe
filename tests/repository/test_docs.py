"""The documentation: every example runs, and the reference lists every public name."""

import doctest
import pkgutil
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import caldist

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *sorted(set(DOCS.glob("*.md")) - {DOCS / "evidence.md", DOCS / "properties.md"}),
    *sorted(DOCS.glob("guides/*.md")),
    *sorted(DOCS.glob("theory/*.md")),
]
# What pages import, or have imported for them.
NEEDS = {module: rf"^(from|import) {module}\b" for module in ("torch", "lightning", "sklearn")}
NEEDS["duckdb"] = r"^(from|import) duckdb\b|\.parquet\b"
# Clusters and jobs that a reader starts, not a test; their queries run in the tests of the engines.
NOT_RUN = {"large-tables.md"}


def blocks(page):
    return re.findall(
        r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def name_of(page):
    return str(page.relative_to(ROOT))


WITH_CODE = [page for page in PAGES if page.name not in NOT_RUN and blocks(page)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:only .* rows have:UserWarning")
@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_examples_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    code = blocks(page)
    for module, sign in NEEDS.items():
        if re.search(sign, "\n".join(code), re.MULTILINE):
            pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    try:
        for at, block in enumerate(code):
            exec(compile(block, f"{name_of(page)}, block {at + 1}", "exec"), names)
    finally:
        pyplot.close("all")


def test_pages_with_examples_were_found():
    found = {page.name for page in WITH_CODE}
    pages = {"tutorial.md", "monitoring.md", "medical-risk.md", "several-classes.md"}
    assert {"README.md", "index.md"} | pages <= found


@pytest.fixture
def extension(monkeypatch):
    """Return a function that imports an extension of the site by its name."""
    pytest.importorskip("sphinx")
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(ROOT))  # the studies
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    yield import_module
    for name in {path.stem for path in (DOCS / "_ext").glob("*.py")} - before:
        sys.modules.pop(name, None)


@pytest.mark.slow
def test_every_figure_of_the_gallery_is_drawn_and_its_code_shown(extension, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("agg")
    gallery = extension("gallery")
    monkeypatch.setattr(gallery, "FOLDER", tmp_path)
    data = gallery.demo_data()
    for figure in gallery.FIGURES:
        assert gallery.draw(figure, *data).stat().st_size < 100_000
    text = gallery.page()
    for name in caldist.plots.__all__:
        if name.endswith("Display"):
            assert f"{name}.from_" in text


@pytest.mark.slow
def test_the_page_of_evidence_counts(extension):
    evidence = extension("evidence_page")
    found = evidence.facts()
    assert found["tests"] > 1000
    assert found["families"] == 10
    assert found["oracles"] > 10
    page = evidence.render()
    assert "oracles.smooth_ce_lp" in page
    assert "studies/coverage.md" in page


def test_a_share_within_the_noise_of_a_study_is_not_below(extension):
    below = extension("evidence_page").below
    assert not below(0.93, 0.95, 1000)
    assert below(0.92, 0.95, 1000)
    assert not below(0.99, 0.95, 1000)


def test_the_page_of_properties_shows_every_cell(extension):
    properties = caldist.paper.properties()
    page = extension("properties_page").render()
    assert properties.to_markdown() in page
    for cell in properties.rows:
        if cell.property != "consistent":
            assert f"- **{cell.property}: {cell.text()}.** {cell.reason}" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["coverage", "power", "recalibration", "monitor", "multiclass", "training"]
)
def test_the_page_of_a_study_is_made_of_its_table(extension, name, tmp_path):
    pytest.importorskip("matplotlib")
    study_pages = extension("study_pages")
    shutil.copy(DOCS / "studies" / f"{name}.csv", tmp_path)
    page = study_pages.write_stored_page(name, tmp_path)
    assert page == (tmp_path / f"{name}.md").read_text("utf-8")
    assert f"`python -m studies {name}`" in page


def test_the_page_of_a_measure_says_where_it_is_found(extension):
    measure_pages = extension("measure_pages")
    assert "and reports" in measure_pages._facts(caldist.smooth_ce)[0]
    assert "--measure mmce" in measure_pages._facts(caldist.measures.mmce)[0]


def test_the_reference_is_complete(extension):
    """Each public name is on one page: that of a measure, or of a task; torch may be absent."""
    reference = extension("api_reference")
    listed = [name for task in reference.TASKS for page in task.pages for name in page.split()]
    assert sorted(listed + reference.measure_names()) == sorted(reference.public_names())
    pages = [page.split()[0] for task in reference.TASKS for page in task.pages]
    files = [*pages, *(task.file for task in reference.TASKS), "index"]
    assert len({name.lower() for name in files}) == len(files)  # also where case does not count


def test_each_function_has_a_page_of_its_own(extension, tmp_path, monkeypatch):
    reference = extension("api_reference")
    monkeypatch.setattr(reference, "_FOLDER", tmp_path)
    (tmp_path / "gone.md").write_text("of a function that is no more")
    reference.write_pages(None)
    assert not (tmp_path / "gone.md").exists()
    for task in reference.TASKS:
        assert f"({task.file}.md)" in (tmp_path / "index.md").read_text("utf-8")
        for page in task.pages:
            names = page.split()
            text = (tmp_path / f"{names[0]}.md").read_text("utf-8")
            assert all(f":: caldist.{name}\n" in text for name in names)
            assert "`caldist." + names[0] + "`" in text.splitlines()[0]


WITHOUT_TORCH = """
import importlib.util
import sys


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "torchmetrics"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name in {'torch', 'torchmetrics'} else found(name)
sys.meta_path.insert(0, Absent())
sys.path.insert(0, "docs/_ext")
import api_reference

print(api_reference.MOCKED, api_reference._summary("torch.kernel_ce_loss"))
print(api_reference._summary("torch.MulticlassCalibrationDistance"))
"""


def test_the_site_is_built_without_torch():
    """The pages about caldist.torch need its names alone."""
    pytest.importorskip("sphinx")
    command = [sys.executable, "-c", WITHOUT_TORCH]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    first, second = run.stdout.splitlines()
    assert first.startswith("['torch', 'torchmetrics'] Return the kernel calibration error")
    assert second.startswith("The classwise distance to calibration")


def test_formulas_need_no_font_for_mathematics(extension):
    """Letters are marked, for the style sheet; none is one of Unicode's letters of mathematics."""
    pytest.importorskip("latex2mathml")
    shown = extension("mathml").mathml(r"\sup_w \sum_i \kappa(v_i) \ln n, \mathrm{CE}", "block")
    for letter in "wivnκ":
        assert f'<mi class="letter">{letter}</mi>' in shown
    assert '<munder><mo>sup</mo><mi class="letter">w</mi></munder>' in shown
    assert '<mo class="large">∑</mo>' in shown
    assert '<mi class="name">ln</mi>' in shown
    assert '<mi mathvariant="normal">E</mi>' in shown
    formulas = [
        found
        for page in sorted(DOCS.glob("theory/*.md"))
        for found in re.findall(r"\$([^$]+)\$", page.read_text("utf-8").replace("$$", "$"))
    ]
    assert len(formulas) > 50
    style = (DOCS / "_static" / "caldist.css").read_text(encoding="utf-8")
    assert re.search(r"mi\.letter \{ text-transform: none; font-style: italic;", style)
    for formula in formulas:
        text = extension("mathml").mathml(formula, "inline")
        assert not re.search("[\U0001d400-\U0001d7ff]", text), formula


def test_tables_are_told_apart(extension):
    """Those of words become paragraphs on a phone; those of numbers keep their lines."""
    pytest.importorskip("myst_parser")
    tables = extension("tables")
    from docutils import nodes
    from docutils.core import publish_doctree

    def kind(*cells):
        edge = "  ".join("=" * max(len(cell), 1) for cell in cells)
        text = "\n".join([edge, "  ".join(cells), edge])
        return tables.kind(next(publish_doctree(text).findall(nodes.table)))

    assert kind("smooth_ce", "within a factor of two of the lower distance") == "words"
    assert kind("smooth_ce", "0.0353 ± 0.001", "0.04", "0.05", "pass") == "numbers"
    assert kind("a", "b", "c", "d", "a long remark about what stands in this line") == ""


def test_a_page_shows_what_its_examples_print_and_draw(extension, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    executed = extension("executed")
    monkeypatch.setattr(executed, "_FOLDER", tmp_path)
    page = (
        "Text.\n\n```python\nprint(1 + 1)\n```\n\n```python\nprint('so.\\n\\na  b')\n```\n\nEnd.\n"
    )
    shown = executed.run("page", page)
    assert "```{code-block} text\n:class: output\n\n2\n```" in shown
    assert (
        ":class: output\n\nso.\n```\n\n```{code-block} text\n:class: output columns\n\na  b"
        in shown
    )
    draws = "import matplotlib.pyplot as plt\nplt.plot([0, 1])\nplt.xlabel('x'); plt.ylabel('y')\n"
    shown = executed.run("guides/page", f"```python\n{draws}```\n")
    assert "![Figure: y over x](/executed/guides-page-1-1.svg)" in shown
    assert (tmp_path / "guides-page-1-1.svg").stat().st_size > 1000
    with pytest.raises(Exception, match=r"block 1 of page\.md does not run: ZeroDivisionError"):
        executed.run("page", "```python\n1 / 0\n```\n")


def test_the_tutorial_is_run_when_the_site_is_built():
    conf = (DOCS / "conf.py").read_text(encoding="utf-8")
    pages = re.findall(r'"([^"]+)"', conf.partition("executed_pages = [")[2].partition("]")[0])
    assert {"index", "tutorial", "guides/scikit-learn"} <= set(pages)
    for page in pages:
        assert (DOCS / f"{page}.md") in WITH_CODE
    assert "```text" not in (DOCS / "tutorial.md").read_text(encoding="utf-8")


def test_every_link_to_a_file_leads_somewhere():
    # Written when the site is built.
    generated = [*map(DOCS.joinpath, ("measures", "gallery", "reference", "figures/ring.svg"))]
    generated += [DOCS / "properties.md", *(p.with_suffix(".md") for p in DOCS.glob("studies/*"))]
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", *DOCS.glob("decisions/*.md")]:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
        for target in [*targets, *re.findall(r'<img src="([^"]+)"', text)]:
            path = (page.parent / target).resolve()
            if not any(path.is_relative_to(place) for place in generated):
                assert path.exists(), f"{name_of(page)} links to {target}"


def test_the_files_that_pages_for_contributors_name_exist():
    places = (ROOT, ROOT / "src" / "caldist", ROOT / "tests", DOCS)
    for page in (ROOT / "CONTRIBUTING.md", DOCS / "architecture.md"):
        named = re.findall(r"`([\w.-]+/[\w./-]*)`", page.read_text(encoding="utf-8"))
        assert len(named) > 20
        for name in named:
            made_up = re.search("[A-Z]{4}", name)
            assert made_up or any((place / name).exists() for place in places), (page.name, name)


def test_each_decision_says_whether_it_still_holds():
    """A record that is superseded names its successor, at the top."""
    for page in sorted(DOCS.glob("decisions/[0-9]*.md")):
        title, _, status = page.read_text(encoding="utf-8").splitlines()[:3]
        assert title.startswith(f"# {int(page.name[:3])}. ")
        said = r"\*\*Status:\*\* (accepted|(partly )?superseded by \[\d+\]\(\d{3}-[a-z-]+\.md\))"
        assert re.match(said, status), page.name


def test_the_lines_between_the_words_of_the_readme_run():
    """The calls in the table of functions, on the demo."""
    plt = pytest.importorskip("matplotlib.pyplot")
    demo = caldist.datasets.load_demo()
    y_true, y_prob = demo.y_true, demo.y_prob["random_forest"]
    names = {
        "caldist": caldist, "y_true": y_true, "y_prob": y_prob, "new": y_prob[:5], "day": 1,
        "matrix": np.column_stack([1 - y_prob, y_prob]),
    }  # fmt: skip
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"`(caldist\.[^`\n]+\([^`\n]*\))`", text)
    found = {line.partition("(")[0]: eval(line, names) for line in lines}
    [update] = re.findall(r"`(monitor\.update\([^`]*\))`", text)
    step = eval(update, names | {"monitor": found["caldist.Monitor"]})
    plt.close("all")
    assert found["caldist.multiclass.classwise_table"].value > 0.04
    assert found["caldist.recalibrate"][0] != y_prob[0]
    assert step.batch == 1
    assert "caldist.plots.ReliabilityDisplay.from_predictions" in found


# Pages whose examples need what the demo does not have, and what that is.
OWN_DATA = {
    "scikit-learn.md": "features, to train a classifier",
    "pytorch.md": "features, to train a network",
    "several-classes.md": "ten classes, of the same images",
    "language-models.md": "topics, as clusters",
    "medical-risk.md": "rare events, patients and sites",
    "report.md": "rare events, ages and months",
}


def test_examples_load_the_demo():
    without = {
        page.name
        for page in WITH_CODE
        if "load_demo()" not in "\n".join(blocks(page)) and page.name not in OWN_DATA
    }
    assert without == set()
    assert {page.name for page in WITH_CODE} >= set(OWN_DATA)


def test_examples_of_functions_make_up_no_random_data():
    finder, parser = doctest.DocTestFinder(), doctest.DocTestParser()
    modules = pkgutil.walk_packages(caldist.__path__, "caldist.", onerror=lambda _: None)
    seen = 0
    for module in modules:
        if module.name.startswith(("caldist.kernels", "caldist._compiled", "caldist.__main__")):
            continue
        if module.name.startswith("caldist.torch"):
            continue  # tensors of a few rows
        for test in finder.find(import_module(module.name)):
            code = "".join(example.source for example in parser.get_examples(test.docstring or ""))
            seen += bool(code)
            assert "random." not in code, test.name
    assert seen > 100


def test_who_advises_an_extra_says_how_in_a_checkout():
    """There is a release for those who have none, some day; until then there is a checkout."""
    sources = sorted((ROOT / "src").rglob("*.py"))
    for path in [*PAGES, *DOCS.glob("decisions/*.md"), *sources]:
        text = path.read_text(encoding="utf-8")
        for found in re.finditer(r"pip install [\"']caldist\[([\w,]+)\]", text):
            nearby = text[max(found.start() - 200, 0) : found.end() + 200]
            assert f".[{found[1]}]" in nearby, f"{path.name}: {found[0]}"
