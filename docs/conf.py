"""The documentation site: ``sphinx-build -W docs site``."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parents[1])]  # and studies

from caldist import __version__

project = "caldist"
author = "The caldist developers"
copyright = author  # noqa: A001 -- Sphinx's name
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml",
    "measure_pages",
    "command_line",
    "api_reference",
    "executed",
    "tables",
    "errata",
    "evidence_page",
    "gallery",
    "paper_page",
    "properties_page",
    "ring",
    "study_pages",
]
exclude_patterns = ["_ext", "copied", "paper-joss"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
nitpicky = False
executed_pages = [  # those that show what their examples print and draw
    "index",
    "tutorial",
    "guides/scikit-learn",
    "guides/language-models",
    "guides/medical-risk",
    "guides/recalibration",
    "guides/monitoring",
    "guides/ci-gate",
]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_validation_checks = set()

html_theme = "furo"
html_title = "caldist"
html_static_path = ["_static"]
html_css_files = ["caldist.css"]
html_extra_path = [
    "copied",
    "../src/caldist/reporting/report.schema.json",
    "../src/caldist/recalibration/map.schema.json",
]
copybutton_prompt_text = ">>> |\\.\\.\\. "
copybutton_prompt_is_regexp = True
