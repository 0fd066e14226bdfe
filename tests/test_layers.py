"""Imports of the package by itself point one way, those for types and inside functions included."""

import ast
from pathlib import Path

import pytest

import caldist

ROOT = Path(caldist.__file__).parent
LAYERS = [  # from above; a package imports those below its own line
    {"cli", "sklearn", "torch", "testing", "paper"},
    {"reporting", "datasets"},
    {"plots"},
    {"groups"},
    {"multiclass"},
    {"recalibration"},
    {"clinical", "monitoring"},
    {"inference"},
    {"measures"},
    {"certificates", "engines"},
    {"data"},
    {"kernels", "errors"},
    {"_util", "_compiled"},
]
LEAVES = {"sklearn": (), "torch": (), "testing": (), "paper": (), "datasets": ("cli",)}


def module_name(path):
    name = ".".join(("caldist", *path.relative_to(ROOT).with_suffix("").parts))
    return name.removesuffix(".__init__")


def targets(path, node):
    """Return what a statement imports, with the imported name after the module's."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        package = ".".join(("caldist", *path.relative_to(ROOT).parent.parts)).split(".")
        base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [base])])
    return [f"{base}.{alias.name}" for alias in node.names]


def imports():
    """Return (importing module, imported name) for every import of the package by itself."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [name for name in targets(path, node) if name.split(".")[0] == "caldist"]
            found += [(module_name(path), name) for name in names]
    return found


IMPORTS = imports()


def part(name):
    """Return the package below caldist that a module belongs to; "" for the front page.

    Of that are private modules next to it, too, which answer for it.
    """
    found = ([*name.split("."), ""])[1]
    return "" if found.startswith("_") and found not in {"_util", "_compiled"} else found


def arrows():
    """Return every pair of packages of which the first imports the second."""
    parts = {path.stem for path in ROOT.iterdir()}
    pairs = {(part(module), part(name)) for module, name in IMPORTS}
    return {(one, other) for one, other in pairs if one != other and other in parts}


def test_every_package_has_a_layer():
    there = {part(f"caldist.{path.stem}") for path in ROOT.iterdir() if path.suffix in {"", ".py"}}
    assert there <= {""}.union(*LAYERS)


def test_imports_point_one_way():
    layer = {name: at for at, names in enumerate(LAYERS) for name in names}
    wrong = {(a, b) for a, b in arrows() if a and layer[a] >= layer[b]}
    assert not wrong


def test_nothing_imports_a_leaf():
    wrong = {(a, b) for a, b in arrows() if b in LEAVES and a not in LEAVES[b]}
    assert not wrong


def test_only_leaves_import_the_front_page():
    assert {part(module) for module, name in IMPORTS if part(name) == ""} <= {"", *LEAVES}


def test_helpers_import_nothing_of_the_package():
    assert not [name for module, name in IMPORTS if {part(module)} == {"_util"} != {part(name)}]


def test_private_names_stay_in_their_package():
    """Importing ``caldist._util.…`` is no import of a private name: helpers are everybody's."""
    wrong = [
        (module, name)
        for module, name in IMPORTS
        if part(module) not in {"", part(name)}
        and any(piece[:1] == "_" != piece[1:2] for piece in name.split(".")[2:])
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from caldist.data import joint", ["caldist.data.joint"]),
        ("from .joint import Joint", ["caldist.data.joint.Joint"]),
        ("from ..measures.ece import _sums", ["caldist.measures.ece._sums"]),
        ("import caldist.paper", ["caldist.paper"]),
        ("from . import grid", ["caldist.data.grid"]),
    ],
)
def test_imports_are_read_as_python_reads_them(source, expected):
    (node,) = ast.parse(source).body
    assert targets(ROOT / "data" / "rows.py", node) == expected
