"""What is published: metadata without Cython, one version, one list of dependencies."""

import re
import runpy
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import caldist

ROOT = Path(__file__).parents[2]


def text(name):
    return (ROOT / name).read_text("utf-8")


def test_metadata_need_no_cython():
    code = (
        "import runpy, sys; sys.modules['Cython'] = None;"
        "sys.argv = ['setup.py', '--name']; runpy.run_path('setup.py', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "caldist"


def extensions(monkeypatch, platform):
    """Return what setup.py asks the compiler for."""
    asked = {}
    monkeypatch.chdir(ROOT)
    # Loaded here, before the platform is another one.
    import_module("setuptools.command.build_ext")
    monkeypatch.setattr("setuptools.setup", asked.update)
    monkeypatch.setattr(sys, "platform", platform)
    runpy.run_path("setup.py")
    return asked["ext_modules"]


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_optimisation_and_debug_symbols_are_for_whoever_sets_cflags(monkeypatch, platform):
    about_results = {"-ffp-contract=off", "-fno-trapping-math", "-fwrapv"}
    if platform == "win32":
        about_results = set()
    monkeypatch.setenv("CFLAGS", "-O2 -g")
    for kernel in extensions(monkeypatch, platform):
        assert set(kernel.extra_compile_args) == about_results
        assert kernel.extra_link_args == []
    monkeypatch.delenv("CFLAGS")
    for kernel in extensions(monkeypatch, platform):
        fast = set() if platform == "win32" else {"-O3", "-g0"}
        assert set(kernel.extra_compile_args) == about_results | fast
        assert kernel.extra_link_args == (["-Wl,-s"] if platform == "linux" else [])


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_kernels_are_linked_with_the_mathematics_they_use(monkeypatch, platform):
    for kernel in extensions(monkeypatch, platform):
        assert kernel.libraries == ([] if platform == "win32" else ["m"])


@pytest.mark.parametrize("name", ["CITATION.cff", "recipe/meta.yaml"])
def test_the_version_is_that_of_the_package(name):
    [version] = re.findall(r'^ *version: "?([^"\n]+)"?$', text(name), re.MULTILINE)
    assert version == caldist.__version__


def test_the_recipe_requires_what_the_package_does():
    project = tomllib.loads(text("pyproject.toml"))["project"]
    expected = [f"python{project['requires-python']}", *project["dependencies"]]
    run = re.search(r"^  run:\n((?:    - .*\n)+)", text("recipe/meta.yaml"), re.MULTILINE)[1]
    assert [line.strip(" -").replace(" ", "") for line in run.splitlines()] == expected


def test_the_core_is_there_and_is_what_wheels_are_tested_with():
    files = text(".ci/core.txt").split()
    assert files
    assert all((ROOT / name).is_file() for name in files)
    command = tomllib.loads(text("pyproject.toml"))["tool"]["cibuildwheel"]["test-command"]
    assert "@.ci/core.txt" in command


def test_every_folder_of_the_repository_is_in_the_source_archive():
    grafted = set(re.findall(r"^graft (\S+)$", text("MANIFEST.in"), re.MULTILINE))
    assert all((ROOT / name).is_dir() for name in grafted)
    assert {"tests", "docs", "fuzz", "scripts", "studies", "benchmarks", ".ci"} <= grafted
