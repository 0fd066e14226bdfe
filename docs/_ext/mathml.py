"""Formulas as MathML, which browsers show without scripts and without the network.

A machine without a font for mathematics shows MathML with what fonts it has. Two things are then
left to us, and to ``caldist.css``: the sums and integrals of a displayed formula are marked, to be
made larger, and a root is drawn by a border, since its sign does not grow.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_LETTER = re.compile("<mi>(?=([A-Za-z]|&#x003[0-9A-F]{2};|&#x02113;)</mi>)")  # also Greek, and ell
_LARGE = re.compile("<mo>(?=&#x(02211|0222B|0220F);)")  # sum, integral, product


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_LETTER.sub('<mi class="letter">', convert(node.astext(), display="inline")))
    raise nodes.SkipNode


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    formula = _LETTER.sub('<mi class="letter">', convert(node.astext(), display="block"))
    self.body.append(_LARGE.sub('<mo class="large">', formula))
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer under Sphinx's switch for formulas."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"  # type: ignore[attr-defined]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
