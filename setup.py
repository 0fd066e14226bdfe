"""Compile the kernels; everything else about the package is in pyproject.toml.

Each ``src/caldist/kernels/NAME.py`` becomes the extension ``caldist._compiled.NAME``, so that the
compiled and the plain version of a kernel can be imported side by side. In a source tree, as with
``pip install -e .``, a file next to the extensions records the hash of each compiled source:
``tests/conftest.py`` refuses to test kernels that were edited since.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NOT_COMPILED = {"arrays", "loader"}
SOURCES = sorted(
    path.as_posix()
    for path in Path("src/caldist/kernels").glob("*.py")
    if not path.name.startswith("_") and path.stem not in NOT_COMPILED
)
RECORD = Path(f"src/caldist/_compiled/sources.{sys.implementation.cache_tag}.json")
# With CALDIST_REQUIRE_COMPILED=1 a kernel that does not compile fails the build. Without it the
# package installs all the same and runs its kernels as plain Python.
MANDATORY = os.environ.get("CALDIST_REQUIRE_COMPILED") == "1"
FLAGS, LINK, LIBRARIES = [], [], []
if sys.platform != "win32":
    # No fused multiply-add, which ARM has and plain x86-64 has not: the same bits everywhere.
    # Nobody asks whether a comparison met a NaN, so that several can be made at once. Kernels
    # that compute with the bits of numbers count on integers that wrap around.
    FLAGS += ["-ffp-contract=off", "-fno-trapping-math", "-fwrapv"]
    LIBRARIES += ["m"]
    if "CFLAGS" not in os.environ:  # whoever sets it decides on speed and on debug symbols
        FLAGS += ["-O3", "-g0"]
        LINK += ["-Wl,-s"] if sys.platform.startswith("linux") else []
# Cython's own code for arrays, which every extension would have a copy of: most of a wheel's size.
SHARED = "caldist._compiled._shared"
SHARED_SOURCE = f"build/cython/{SHARED.replace('.', '/')}.c"


def extension(name, source):
    return Extension(
        name,
        [source],
        define_macros=[(f"CALDIST_{name.rpartition('.')[2].upper()}", None)],  # see _wide.pxd
        extra_compile_args=FLAGS,
        extra_link_args=LINK,
        libraries=LIBRARIES,
        optional=not MANDATORY,
    )


def hashes():
    """Return the hash of each file that is compiled, by its name."""
    paths = [*map(Path, SOURCES), *Path("src/caldist/kernels").glob("*.pxd")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


class Build(build_ext):
    """Run Cython when there is something to build, and then compile on all cores."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count() or 1
        self.failed = {extension.name for extension in self.extensions}

    def run(self):
        found = hashes()  # before the build: an edit during it counts as one after it
        super().run()
        if self.inplace:
            before = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
            failed = {f"{name.rpartition('.')[2]}.py" for name in self.failed}
            kept = {name for name in found if name in failed or (failed and name.endswith(".pxd"))}
            now = {name: before.get(name, "") if name in kept else found[name] for name in found}
            RECORD.write_text(json.dumps(now, indent=1) + "\n", "utf-8")

    def build_extension(self, ext):
        super().build_extension(ext)
        self.failed.discard(ext.name)

    def build_extensions(self):
        from Cython.Build import cythonize  # takes seconds: not for metadata or a source archive

        translated = cythonize(
            [Extension(e.name, list(e.sources)) for e in self.extensions],
            shared_utility_qualified_name=SHARED,
            build_dir="build/cython",
            include_path=["src"],
            compiler_directives={
                "language_level": 3,
                "boundscheck": False,
                "wraparound": False,
                "cdivision": True,
                "initializedcheck": False,
            },
        )
        sources = {e.name: e.sources for e in translated}
        for e in self.extensions:
            e.sources = sources[e.name]
        super().build_extensions()


setup(
    ext_modules=[
        *(extension(f"caldist._compiled.{Path(s).stem}", s) for s in SOURCES),
        extension(SHARED, SHARED_SOURCE),
    ],
    cmdclass={"build_ext": Build},
)
