"""The directive ``api-reference``: every public name, by the module that people import it from."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

MODULES = {
    "caldist": "What people use every day.",
    "caldist.inference": "Intervals, tests and comparisons, with what belongs to them.",
    "caldist.repairing": "What a repair is made of.",
    "caldist.monitoring": "An alarm that may be looked at after every batch.",
    "caldist.multiclass": "Several classes: matrices of probabilities.",
    "caldist.plots": "Figures that keep their numbers. They need the extra ``report``.",
    "caldist.reporting": "What a report holds.",
    "caldist.engines": "Tables of any size to summaries. Engines come with the extra ``engines``.",
    "caldist.certificates": "Proofs, and the code that checks them.",
    "caldist.weights": "Ready-made functions for ``weighted_ce``.",
    "caldist.datasets": "Data that ship with the package.",
    "caldist.sklearn": "Estimators and scorers for scikit-learn.",
    "caldist.torch": "Losses and a metric. They need the extra ``torch``.",
}

_ROUTING = re.compile("set_.*_request")  # scikit-learn's, on every estimator


def public_names() -> dict[str, list[str]]:
    """Return the names to document: each once, where it is first listed."""
    seen: set[int] = set()
    found: dict[str, list[str]] = {}
    for module in MODULES:
        content = import_module(module)
        for name in sorted(content.__all__, key=str.lower):
            item = getattr(content, name)
            if id(item) not in seen and not name.startswith("__"):
                seen.add(id(item))
                found.setdefault(module, []).append(name)
    return found


def _lines(module: str, names: list[str]) -> list[str]:
    lines = []
    for name in names:
        item = getattr(import_module(module), name)
        if inspect.isclass(item):
            routed = [member for member in dir(item) if _ROUTING.fullmatch(member)]
            lines += [f".. autoclass:: {module}.{name}", "   :members:"]
            lines += [f"   :exclude-members: {', '.join(routed)}", ""] if routed else [""]
        elif callable(item):
            lines += [f".. autofunction:: {module}.{name}", ""]
        else:
            lines += [f".. autodata:: {module}.{name}", "   :no-value:", ""]
    return lines


class ApiReference(SphinxDirective):
    """A section for each module, documenting its public names."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        sections: list[nodes.Node] = []
        for module, names in public_names().items():
            section = nodes.section(ids=[module.replace(".", "-")])
            section += nodes.title(text=module)
            section.document = self.state.document
            lines = [MODULES[module], "", *_lines(module, names)]
            self.state.nested_parse(StringList(lines, source=module), 0, section)
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("api-reference", ApiReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
