"""Compile the kernels; everything else about the package is in pyproject.toml.

Each ``src/caldist/kernels/NAME.py`` becomes the extension ``caldist._compiled.NAME``, so that the
compiled and the plain version of a kernel can be imported side by side.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCES = sorted(
    path for path in Path("src/caldist/kernels").glob("*.py") if not path.name.startswith("_")
)
# With CALDIST_REQUIRE_COMPILED=1 a kernel that does not compile fails the build. Without it the
# package installs all the same and runs its kernels as plain Python.
MANDATORY = os.environ.get("CALDIST_REQUIRE_COMPILED") == "1"
FLAGS = [] if sys.platform == "win32" else ["-O3", "-g0"]
LINK = ["-Wl,-s"] if sys.platform.startswith("linux") else []
# Cython's own code for arrays, which every extension would have a copy of: most of a wheel's size.
SHARED = "caldist._compiled._shared"


def extensions():
    from Cython.Build import cythonize

    built = cythonize(
        [
            Extension(
                f"caldist._compiled.{path.stem}",
                [str(path)],
                extra_compile_args=FLAGS,
                extra_link_args=LINK,
            )
            for path in SOURCES
        ]
        + [
            Extension(
                SHARED,
                [f"build/cython/{SHARED.replace('.', '/')}.c"],
                extra_compile_args=FLAGS,
                extra_link_args=LINK,
            )
        ],
        shared_utility_qualified_name=SHARED,
        build_dir="build/cython",
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
        },
    )
    for extension in built:
        extension.optional = not MANDATORY  # cythonize drops the flag, so it is set here
    return built


class ParallelBuild(build_ext):
    """Compile on all cores: the default of one is most of the installation time."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count() or 1


setup(ext_modules=extensions(), cmdclass={"build_ext": ParallelBuild})
