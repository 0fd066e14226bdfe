"""The table of all measures, made by importing their files.

A file of this folder whose name does not begin with an underscore may hold measures: that is all it
takes to add one. Folders that others append to ``caldist.measures.__path__`` count likewise.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any

from caldist import measures
from caldist.errors import KNOWN_AS, InvalidInput, InvalidType
from caldist.measures.base import Measure


def all_measures() -> dict[str, Measure[Any]]:
    """Return every measure by its name, in the order of their positions."""
    found = _measures_in(tuple(measures.__path__))
    return {measure.name: measure for measure in found}


@cache
def _measures_in(folders: tuple[str, ...]) -> list[Measure[Any]]:
    names = (item.name for item in pkgutil.iter_modules(folders))
    modules = [
        import_module(f"{measures.__name__}.{name}") for name in names if not name.startswith("_")
    ]
    found = [
        thing
        for module in modules
        for thing in vars(module).values()
        if isinstance(thing, Measure) and thing.__module__ == module.__name__
    ]
    return sorted(found, key=lambda measure: (measure.facts.position, measure.name))


def shown_in(place: str) -> list[Measure[Any]]:
    """Return the measures that are shown in a place without being asked for."""
    return [measure for measure in all_measures().values() if place in measure.facts.shown_in]


def find(
    measure: object,
    argument: str = "measure",
    among: Iterable[str] = (),
    index: int | None = None,
) -> Measure[Any]:
    """Return the measure that is meant by a name, or by the measure itself.

    ``among`` are the names that the message proposes; by default all. ``index`` is the position in
    the argument.
    """
    if isinstance(measure, Measure):
        found: Measure[Any] = measure
    else:
        known = all_measures()
        if not isinstance(measure, str) or measure not in known:
            names = ", ".join(among or known)
            raise InvalidInput(
                argument=argument,
                index=index,
                value=measure,
                reason=f"it must be a measure, such as caldist.smooth_ce, or one of the names "
                f"{names}",
                remedy=_hint(measure, known),
            )
        found = known[measure]
    missing = found.missing_option
    if missing is not None:
        raise InvalidType(
            argument=argument,
            index=index,
            value=found.name,
            reason=f"this measure needs {missing}",
            remedy=f"Pass caldist.measures.{found.name}.using({missing}=…).",
        )
    return found


def _hint(name: object, known: Mapping[str, Measure[Any]]) -> str:
    """Return which measure was meant by its symbol, or by almost its name."""
    if not isinstance(name, str):
        return ""
    if name.lower() in KNOWN_AS:
        other, call = KNOWN_AS[name.lower()]
        return f"Did you mean {other!r}? The same number is {call}."
    symbols = [key for key, one in known.items() if one.facts.symbol.lower() == name.lower()]
    near = symbols or get_close_matches(name.lower(), known, n=1)
    return f"Did you mean {near[0]!r}?" if near else ""


def find_all(measures: object, among: Iterable[Measure[Any]]) -> list[Measure[Any]]:
    """Return the measures that are meant by a list; those of ``among`` where None is passed."""
    if measures is None:
        return list(among)
    if isinstance(measures, str | Measure):
        reason, remedy = "a list is needed", f"Pass [{measures!r}]."
        raise InvalidType(argument="measures", value=measures, reason=reason, remedy=remedy)
    if not isinstance(measures, Iterable):
        reason, remedy = "a list is needed", "Pass a list of measures or names."
        raise InvalidType(argument="measures", value=measures, reason=reason, remedy=remedy)
    return list(_each(measures))


def _each(measures: Iterable[object]) -> Iterator[Measure[Any]]:
    for at, measure in enumerate(measures):
        yield find(measure, "measures", index=at)
