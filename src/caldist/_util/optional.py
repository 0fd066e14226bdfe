"""Packages that only some parts need, asked for where they are needed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def require(module: str, *, extra: str) -> ModuleType:
    """Import a package that is installed with one of the extras, or say how to install it.

    Examples
    --------
    >>> from caldist._util.optional import require
    >>> require("no_such_package", extra="report")
    Traceback (most recent call last):
        ...
    ImportError: this needs no_such_package, which is not installed: pip install 'caldist[report]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != package:
            raise  # the package is there, and broken
        message = f"this needs {package}, which is not installed: pip install 'caldist[{extra}]'"
        raise ImportError(message, name=package) from error
