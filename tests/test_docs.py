"""The documentation: every example runs, and the reference lists every public name."""

import re
import sys
from pathlib import Path

import pytest

import caldist

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("[gt]*/*.md"))]
NEEDS = {"torch": "torch", "lightning": "lightning", "sklearn": "sklearn", "duckdb": "duckdb"}
# Clusters and jobs that a reader starts, not a test; their queries run in the tests of the engines.
NOT_RUN = {"large-tables.md"}


def blocks(page):
    return re.findall(
        r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def name_of(page):
    return str(page.relative_to(ROOT))


def names_of_the_gallery():
    """Return what the first lines of the gallery say that its code needs."""
    from matplotlib import pyplot as plt

    from caldist import plots
    from caldist._demo import load_demo

    label, demo = load_demo()
    predictions = {name.replace("_", " "): values for name, values in demo.items()}
    displays = {name: getattr(plots, name) for name in plots.__all__}
    return displays | {
        "label": label, "predictions": predictions, "plt": plt, "caldist": caldist,
    }  # fmt: skip


WITH_CODE = [page for page in PAGES if page.name not in NOT_RUN and blocks(page)]


@pytest.mark.filterwarnings("ignore:only .* rows have:UserWarning")
@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_examples_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    code = blocks(page)
    for module in NEEDS:
        if re.search(rf"^(from|import) {module}\b", "\n".join(code), re.MULTILINE):
            pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    if page.parent.name == "gallery":
        names |= names_of_the_gallery()
    try:
        for at, block in enumerate(code):
            exec(compile(block, f"{name_of(page)}, block {at + 1}", "exec"), names)
    finally:
        pyplot.close("all")


def test_pages_with_examples_were_found():
    found = {page.name for page in WITH_CODE}
    pages = {"tutorial.md", "monitoring.md", "medical-risk.md", "several-classes.md"}
    assert {"README.md", "index.md"} | pages <= found


def test_the_gallery_has_pictures_of_the_report():
    image = pytest.importorskip("PIL.Image")
    for name, width in (("report_desktop", 1100), ("report_phone", 390)):
        path = DOCS / "gallery" / f"{name}.png"
        assert path.stat().st_size < 300_000
        with image.open(path) as picture:
            assert picture.width == width
        assert f"]({name}.png)" in (DOCS / "gallery" / "index.md").read_text(encoding="utf-8")


@pytest.fixture
def reference(monkeypatch):
    pytest.importorskip("sphinx")
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    import api_reference

    yield api_reference
    sys.modules.pop("api_reference")


def test_the_page_of_a_measure_says_where_it_is_found(reference):
    import measure_pages

    assert "and reports" in measure_pages._facts(caldist.smooth_ce)[0]
    assert "--measures mmce" in measure_pages._facts(caldist.mmce)[0]
    sys.modules.pop("measure_pages")


def test_the_reference_is_complete(reference):
    listed = reference.public_names()
    documented = {name for names in listed.values() for name in names}
    missing = {name for name in caldist.__all__ if not name.startswith("__")} - documented
    assert missing == set()
    for module, names in listed.items():
        lines = "\n".join(reference._lines(module, names))
        undocumented = [name for name in names if f"{module}.{name}\n" not in lines + "\n"]
        assert undocumented == [], module


def test_every_public_name_has_a_docstring():
    for name in caldist.__all__:
        item = getattr(caldist, name)
        if not name.startswith("__"):
            assert item.__doc__, name
            assert not item.__doc__.startswith(f"{name}("), f"{name}: the dataclass's own"


def test_every_link_to_a_file_leads_somewhere():
    generated = {"measures", "gallery"}
    for page in [*PAGES, *DOCS.glob("decisions/*.md")]:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            path = (page.parent / target).resolve()
            inside = path.relative_to(DOCS).parts[:1] if path.is_relative_to(DOCS) else ()
            if not (inside and inside[0] in generated):
                assert path.exists(), f"{name_of(page)} links to {target}"
