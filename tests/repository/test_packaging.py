"""What is published: metadata without Cython, one version, one list of dependencies."""

import hashlib
import importlib.util
import json
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


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_build_in_the_source_tree_records_what_was_compiled(monkeypatch, tmp_path):
    command = import_module("setuptools.command.build_ext").build_ext
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("setuptools.setup", lambda **_: None)
    monkeypatch.setattr(command, "run", lambda _: None)
    setup = loaded(ROOT / "setup.py")
    setup.RECORD = tmp_path / "sources.json"
    build = setup.Build(import_module("setuptools").Distribution())
    build.failed = {"caldist._compiled.chain"}
    build.run()
    assert not setup.RECORD.exists()
    build.inplace = True
    build.run()
    recorded, expected = json.loads(setup.RECORD.read_text("utf-8")), setup.hashes()
    assert recorded.keys() == expected.keys()
    different = {name for name in expected if recorded[name] != expected[name]}
    assert different == {"chain.py", "_wide.pxd"}
    build.failed = set()
    build.run()
    assert json.loads(setup.RECORD.read_text("utf-8")) == expected


def test_kernels_that_were_edited_since_they_were_compiled_are_not_tested(monkeypatch, tmp_path):
    conftest = loaded(ROOT / "tests" / "conftest.py")
    conftest.PACKAGE, conftest.RECORD = tmp_path, tmp_path / "sources.json"
    monkeypatch.setattr(conftest.loader, "COMPILED", True)
    assert conftest.edited_kernels() == []  # installed elsewhere: nothing is recorded
    kernel = tmp_path / "kernels" / "chain.py"
    kernel.parent.mkdir()
    kernel.write_text("before", "utf-8")
    digests = {"chain.py": hashlib.sha256(b"before").hexdigest(), "gone.py": "…"}
    conftest.RECORD.write_text(json.dumps(digests), "utf-8")
    assert conftest.edited_kernels() == []
    kernel.write_text("after", "utf-8")
    assert conftest.edited_kernels() == [kernel]
    with pytest.raises(pytest.exit.Exception, match=r"chain\.py: edited.*build_ext --inplace"):
        conftest.pytest_configure(None)
    monkeypatch.setattr(conftest.loader, "COMPILED", False)
    assert conftest.edited_kernels() == []


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
