"""What to paste into a bug report."""

from __future__ import annotations

import platform
import sys

from caldist._util.version import __version__
from caldist.kernels import loader

_PACKAGES = (
    "numpy", "scipy", "narwhals", "click", "tqdm", "matplotlib", "jinja2", "pandas", "polars",
    "pyarrow", "duckdb", "dask", "ibis-framework", "pyspark", "torch", "scikit-learn",
)  # fmt: skip


def show_versions() -> None:
    """Print the versions of caldist, Python and the packages it can work with.

    Examples
    --------
    >>> import caldist
    >>> caldist.show_versions()
    caldist: ...
    """
    from importlib.metadata import PackageNotFoundError, version  # slow

    print(f"caldist: {__version__}")
    print(f"kernels: {'compiled' if loader.COMPILED else 'plain Python'}")
    print(f"python: {platform.python_version()} ({sys.implementation.name}, {platform.platform()})")
    for package in _PACKAGES:
        try:
            print(f"{package}: {version(package)}")
        except PackageNotFoundError:
            print(f"{package}: not installed")
