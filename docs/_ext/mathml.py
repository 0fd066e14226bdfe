"""Formulas as MathML, which browsers show without scripts and without the network.

A machine without a font for mathematics lacks the slanted letters of mathematics, and its signs do
not grow. So letters are marked, for ``caldist.css`` to show them in the italics of the text font,
and in displayed formulas sums and integrals, to be made larger.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from xml.etree.ElementTree import tostring

from docutils import nodes
from latex2mathml.converter import convert_to_element
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_LETTER = re.compile("[A-Za-z\u0370-\u03ff\u2113]")  # Latin, Greek, and the script l
_LARGE = {"∑", "∏", "∫"}
_CLOSE = {"|", "/"}  # which browsers set far from what is beside them
_LIMITS = {"sup", "inf", "min", "max", "argmin"}


def mathml(formula: str, display: str) -> str:
    """Return a formula of LaTeX as the markup of a page; ``display`` is "inline" or "block"."""
    tree = convert_to_element(formula, display=display)
    for element in tree.iter():
        element.text = text = unescape(element.text or "")  # the converter's signs are entities
        if element.tag == "mi" and "mathvariant" not in element.attrib and _LETTER.fullmatch(text):
            element.set("class", "letter")
        if element.tag == "mi" and len(text) > 1:
            element.set("class", "name")
        if element.tag == "mo" and text in _CLOSE:
            element.attrib |= {"lspace": "0.05em", "rspace": "0.05em"}
        if element.tag == "mo" and display == "block" and text in _LARGE:
            element.set("class", "large")
        if element.tag == "msub" and display == "block" and element[0].text in _LIMITS:
            element.tag = "munder"
    return tostring(tree, encoding="unicode")


def parts(formula: str) -> list[str]:
    """Cut a displayed formula at its wide spaces, so that a narrow page can break it there."""
    if r"\begin" in formula or r"\left" in formula:
        return [formula]
    found, depth = [""], 0
    for piece in re.split(r"(\\qquad(?![A-Za-z])|\\?[{}])", formula):
        if piece == r"\qquad" and depth == 0:
            found.append("")
            continue
        depth += (piece == "{") - (piece == "}")
        found[-1] += piece
    return [part.strip() for part in found if part.strip()]


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    formulas = "".join(mathml(part, "block") for part in parts(node.astext()))
    self.body.append(f'<div class="formula">{formulas}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer under Sphinx's switch for formulas."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"  # type: ignore[attr-defined]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
