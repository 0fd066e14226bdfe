"""pytest runs the examples in docstrings; these tests show that it finds them.

It looks for them as doctest does, which passes over what it takes for another module's.
"""

import doctest
import importlib

import pytest

from caldist.measures.registry import all_measures
from public_names import SUBMODULES, public

FUNCTIONS = {
    thing.__name__: thing
    for thing in public([name for name in SUBMODULES if name not in {"engines", "paper"}]).values()
    if callable(thing) and not isinstance(thing, type)
}


@pytest.mark.parametrize("name", sorted({*FUNCTIONS, *all_measures()}))
def test_the_examples_of_a_public_function_are_found(name):
    """Among them functions that are decorated, and measures, which are objects."""
    function = FUNCTIONS.get(name) or all_measures()[name]
    module = importlib.import_module(function.__module__)
    found = {test.name: test.examples for test in doctest.DocTestFinder().find(module)}
    assert found[f"{module.__name__}.{name}"]
