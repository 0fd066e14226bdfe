"""Measure how far probabilities are from calibrated.

The measures take ``(y_true, y_prob)``, or a :class:`Joint` in their place, and return a float.

Names are loaded when they are first used, so that ``import caldist`` costs little more than NumPy.
They are listed in ``__init__.pyi``, which type checkers read.
"""

from pathlib import Path as _Path

import lazy_loader as _lazy_loader

_load, __dir__, _names = _lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    try:
        return _load(name)
    except AttributeError as error:
        from caldist.errors import KNOWN_AS

        if name not in KNOWN_AS:
            raise
        message = f"{error}: the same number is {KNOWN_AS[name][1]}."
        raise AttributeError(message, name=name) from None


# Submodules load on demand too, but ``from caldist import *`` must not ask for their extras.
_modules = {entry.stem for entry in _Path(__file__).parent.iterdir()}
__all__ = [name for name in _names if name not in _modules]
