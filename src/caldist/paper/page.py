"""The page that shows all parts: one file, no network, ready for print."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from caldist._util.version import __version__
from caldist.paper.common import Card, Cell, Section, Table, format_number

__all__ = ["Picture", "Shown", "render_page"]

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 Georgia, 'Times New Roman', serif; color: #1a1a1a; background: #fff;
       max-width: 58rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3, nav, table, figcaption, .files, dt { font-family: system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin-bottom: .3rem; }
h2 { font-size: 1.25rem; margin: 3rem 0 .6rem; border-top: 1px solid #bbb; padding-top: 1rem; }
h3 { font-size: 1rem; margin: 1.8rem 0 .3rem; }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; }
a { color: #14375e; }
figure { margin: 1.2rem 0; break-inside: avoid; }
figure img { width: 100%; height: auto; }
figure.narrow img { max-width: 37rem; }
figcaption, .files, caption { font-size: .85rem; color: #444; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .78rem; margin: .6rem 0; }
caption { text-align: left; padding-bottom: .3rem; font-weight: 600; }
th { text-align: left; border-bottom: 1.5px solid #333; vertical-align: bottom; }
th, td { padding: .18rem 1.1rem .18rem 0; }
td { border-bottom: 1px solid #e4e4e4; vertical-align: top; }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums;
                       white-space: nowrap; }
tr.fails td { background: #f3ece6; font-weight: 600; }
article { break-inside: avoid; }
dl { display: grid; grid-template-columns: 8rem 1fr; gap: .15rem 1rem; margin: .3rem 0; }
dt { font-size: .8rem; color: #555; padding-top: .15rem; }
dd { margin: 0; }
article table { margin-left: 9rem; }
@media (max-width: 40rem) { dl { display: block; } article table { margin-left: 0; } }
@media print { body { font-size: 10pt; max-width: none; margin: 0; } .files, nav { display: none; }
  .scroll { overflow: visible; } tr { break-inside: avoid; } h2, h3 { break-after: avoid; } }
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>A Unifying Theory of Distance from Calibration, reproduced</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>A Unifying Theory of Distance from Calibration, reproduced</h1>
<p>The figures and statements of the paper by Jarosław Błasiok, Parikshit Gopalan, Lunjia Hu and
Preetum Nakkiran, computed again with caldist {version} from its public functions. {mode}</p>
<nav aria-label="Parts"><ul>{links}</ul></nav>
</header>
<main>
{parts}
</main>
</body>
</html>
"""

_QUICK = (
    "This is the quick run: fewer temperatures, samples and draws than the full one, so the curves "
    "are coarse."
)
_FULL = "This is the full run."


@dataclass(frozen=True)
class Picture:
    """A drawn figure: its file name without suffix, what it shows, and the SVG itself."""

    name: str
    caption: str
    svg: bytes


@dataclass(frozen=True)
class Shown:
    """One part as the page shows it."""

    name: str
    title: str
    section: Section
    pictures: tuple[Picture, ...]


def render_page(parts: Sequence[Shown], *, quick: bool) -> str:
    """Return the page as HTML."""
    links = "".join(f'<li><a href="#{_(part.name)}">{_(part.title)}</a></li>' for part in parts)
    return _PAGE.format(
        style=_STYLE,
        version=_(__version__),
        mode=_QUICK if quick else _FULL,
        links=links,
        parts="\n".join(_part(part) for part in parts),
    )


def _(text: str) -> str:
    return escape(text, quote=True)


def _part(part: Shown) -> str:
    section = part.section
    pieces = [f'<section id="{_(part.name)}">', f"<h2>{_(part.title)}</h2>"]
    pieces += [f"<p>{_(text.strip())}</p>" for text in section.text.split("\n\n")]
    pieces += [_picture(picture) for picture in part.pictures]
    pieces += [_table(table) for table in section.tables if table.shown]
    pieces += [_card(card) for card in section.cards]
    files = [f"{picture.name}.{kind}" for picture in part.pictures for kind in ("svg", "png")]
    files += [f"{table.name}.csv" for table in section.tables]
    links = ", ".join(f'<a href="{_(name)}">{_(name)}</a>' for name in files)
    pieces += [f'<p class="files">Files: {links}</p>', "</section>"]
    return "\n".join(pieces)


def _picture(picture: Picture) -> str:
    data = base64.b64encode(picture.svg).decode("ascii")
    kind = ' class="narrow"' if picture.name == "figure2_population" else ""
    return (
        f'<figure{kind}><img alt="{_(picture.caption)}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{_(picture.caption)}</figcaption></figure>"
    )


def _table(table: Table) -> str:
    """Return a table; a text that repeats the one above is left out, a failed claim marked."""
    numeric = [all(not isinstance(row[at], str) for row in table.rows)
               for at in range(len(table.columns))]  # fmt: skip
    head = "".join(
        f'<th scope="col"{_align(number)}>{_(name)}</th>'
        for name, number in zip(table.columns, numeric, strict=True)
    )
    body = []
    above: tuple[Cell, ...] = ("",) * len(table.columns)
    for row in table.rows:
        cells = []
        same = True
        for cell, before, number in zip(row, above, numeric, strict=True):
            same = same and not number and cell == before
            text = "" if same else format_number(cell) if number else str(cell)
            cells.append(f"<td{_align(number)}>{_(text)}</td>")
        mark = ' class="fails"' if row[-1] == "no" else ""
        body.append(f"<tr{mark}>{''.join(cells)}</tr>")
        above = row
    return (
        f'<div class="scroll"><table><caption>{_(table.title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _align(number: bool) -> str:  # noqa: FBT001 -- private, and named at its only use
    return ' class="number"' if number else ""


def _card(card: Card) -> str:
    texts = "".join(f"<dt>{_(label)}</dt><dd>{_(text)}</dd>" for label, text in card.texts)
    rows = "".join(
        f'<tr><td>{_(quantity)}</td><td class="number">{_(format_number(value))}</td></tr>'
        for quantity, value in card.values
    )
    return (
        f"<article><h3>{_(card.title)}</h3><dl>{texts}</dl>"
        f"<table><tbody>{rows}</tbody></table></article>"
    )
