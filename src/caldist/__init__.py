"""Measure how far probabilities are from calibrated.

The measures take ``(y_true, y_prob)``, or a :class:`Joint` in their place, and return a float.

The names here are those that people type daily. Everything else has one address in a submodule,
such as ``caldist.inference.sample_size``. Names are loaded when they are first used, so that
``import caldist`` costs little more than NumPy; they are listed in ``__init__.pyi``.
"""

from pathlib import Path as _Path

import lazy_loader as _lazy_loader

from caldist._util.version import __version__ as __version__

_load, _, _names = _lazy_loader.attach_stub(__name__, __file__)

# ``from caldist import *`` must not ask for what submodules need.
_modules = {entry.stem for entry in _Path(__file__).parent.iterdir()}
__all__ = [name for name in _names if name not in _modules]


def __dir__() -> list[str]:
    """Return the names of the front page and the public submodules."""
    return sorted(_names)


def __getattr__(name: str) -> object:
    """Load a public name when it is first used; say where a name is that is elsewhere."""
    if name in _names:
        return _load(name)
    from caldist._addresses import unknown

    raise unknown(name)
