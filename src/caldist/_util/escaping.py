r"""Text from the data at the border of an output: one function for each kind of output.

Names of models, groups, columns and files come from anyone. On a terminal a control character moves
the cursor, renames the window or hides what follows; in a spreadsheet a cell that begins with ``=``
runs; in HTML a raw NUL or ESC is an error. JSON needs nothing from here: ``json.dumps`` writes all
of these as ``\u001b``.
"""

from __future__ import annotations

import re
from html import escape

# Control characters but for tab and line feed; marks that reverse the direction of what follows;
# separators that some programs take for line breaks; half characters, which UTF-8 has no bytes for.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_MARKS = "\\`*_{}[]#|!~$"
_ENTITY = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# What LaTeX obeys; what its oldest fonts lack; brackets and stars, which after a line break would
# be its options; and the mathematics of our own texts.
_LATEX = {
    **{mark: f"\\{mark}" for mark in "{}$&#_%"},
    **{mark: f"{{{mark}}}" for mark in "[]*"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}",
    "…": r"\ldots{}", "≤": r"$\le$", "≥": r"$\ge$", "→": r"$\to$", "√": r"$\surd$",
    "μ": r"$\mu$", "ε": r"$\varepsilon$", "σ": r"$\sigma$", "κ": r"$\kappa$", "ℓ": r"$\ell$",
}  # fmt: skip


def for_terminal(text: str) -> str:
    r"""Return text whose control characters are shown instead of obeyed; lines stay lines.

    Examples
    --------
    >>> from caldist._util.escaping import for_terminal
    >>> print(for_terminal("red \x1b[31m, \u202eback"))
    red \x1b[31m, \u202eback
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def for_line(text: str) -> str:
    r"""Return text as it stands in a line of its own or in a cell: no line breaks either.

    Examples
    --------
    >>> from caldist._util.escaping import for_line
    >>> print(for_line("two\nlines, \x07bell"))
    two lines, \x07bell
    """
    return for_terminal(" ".join(text.split()))


def for_csv(text: str) -> str:
    """Return text that no spreadsheet takes for a formula: an apostrophe marks it as text.

    Numbers with a sign are no formulas, and stay as they are.

    Examples
    --------
    >>> from caldist._util.escaping import for_csv
    >>> for_csv("=1+1"), for_csv("-1.5"), for_csv("a=b")
    ("'=1+1", '-1.5', 'a=b')
    """
    dangerous = text.startswith(_FORMULA) and _NUMBER.fullmatch(text) is None
    return for_terminal(f"'{text}" if dangerous else text)


def for_markdown(text: str) -> str:
    r"""Return text in one line that is read neither as Markdown nor as HTML.

    Examples
    --------
    >>> from caldist._util.escaping import for_markdown
    >>> print(for_markdown("a|b <i>"))
    a\|b &lt;i&gt;
    """
    return "".join(
        _ENTITY.get(mark, f"\\{mark}" if mark in _MARKS else mark) for mark in for_line(text)
    )


def for_html(text: str) -> str:
    r"""Return text that HTML shows as it is, with no character that HTML does not allow.

    Examples
    --------
    >>> from caldist._util.escaping import for_html
    >>> print(for_html("a < \x00"))
    a &lt; \x00
    """
    return escape(for_terminal(text))


def for_latex(text: str) -> str:
    r"""Return text in one line that LaTeX sets as it is, in a cell of a table too.

    Examples
    --------
    >>> from caldist._util.escaping import for_latex
    >>> print(for_latex("50% of a_b & c--d"))
    50\% of a\_b \& c-{}-d
    """
    marks = "".join(_LATEX.get(mark, mark) for mark in for_line(text))
    return re.sub("-(?=-)", "-{}", marks)
