"""Every example in a docstring runs, on the installed package."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import caldist
from caldist.measures.registry import all_measures

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(caldist.__path__, "caldist.", onerror=lambda _: None)
    if not module.name.startswith(("caldist.kernels", "caldist._compiled", "caldist.__main__"))
)


class Finder(doctest.DocTestFinder):
    """Finds the examples of functions that are decorated too, where they were written."""

    def _from_module(self, module, object):
        return super()._from_module(module, inspect.unwrap(object))


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    if name.startswith("caldist.torch"):
        pytest.importorskip("torch")
        if name.endswith("._metric"):
            pytest.importorskip("torchmetrics")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=flags)
    for test in Finder().find(module, name):
        runner.run(test)
    assert runner.summarize().failed == 0


def test_the_examples_of_decorated_functions_are_among_them():
    for name in caldist.__all__:
        thing = getattr(caldist, name)
        if inspect.isfunction(thing):
            module = importlib.import_module(thing.__module__)
            found = {test.name: test.examples for test in Finder().find(module)}
            assert found[f"{module.__name__}.{name}"], name


@pytest.mark.parametrize("measure", all_measures().values(), ids=str)
def test_the_examples_of_a_measure_are_among_them(measure):
    """A measure is an object; doctest looks at what it wraps, or would pass it over in silence."""
    module = importlib.import_module(measure.__module__)
    found = {test.name: test.examples for test in doctest.DocTestFinder().find(module)}
    assert found[f"{module.__name__}.{measure.name}"]


def test_every_public_function_has_an_example():
    for name in caldist.__all__:
        thing = getattr(caldist, name)
        if callable(thing) and not isinstance(thing, type):
            assert ">>>" in (thing.__doc__ or ""), name
