"""Packages that only some parts need, asked for where they are needed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra, from a release and in a checkout.

    Examples
    --------
    >>> from caldist._util.optional import how_to_install
    >>> how_to_install("report")
    'pip install "caldist[report]", or in a checkout pip install ".[report]"'
    """
    return f'pip install "caldist[{extra}]", or in a checkout pip install ".[{extra}]"'


def require(module: str, *, extra: str) -> ModuleType:
    """Import a package that is installed with one of the extras, or say how to install it.

    Examples
    --------
    >>> from caldist._util.optional import require
    >>> require("no_such_package", extra="report")
    Traceback (most recent call last):
        ...
    ImportError: this needs no_such_package, which is not installed: pip install "caldist[...
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != package:
            raise  # the package is there, and broken
        message = f"this needs {package}, which is not installed: {how_to_install(extra)}"
        raise ImportError(message, name=package) from error
