"""Write the least versions that pyproject.toml declares, as constraints for pip.

Run: python .ci/minimums.py. It writes .ci/minimums.txt, which CI installs; a test compares the two.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_EXTRAS = ("report", "engines", "test")  # Spark and torch are large, and have a test of their own
_DECLARED = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(\[[^\]]*\])?>=(?P<version>[0-9.]+)")
FILE = Path(__file__).with_suffix(".txt")


def minimums() -> str:
    """Return a line ``name==version`` for each dependency, in the order of their names."""
    with (_ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    declared = [*project["dependencies"]]
    for extra in _EXTRAS:
        declared += project["optional-dependencies"][extra]
    found: dict[str, str] = {}
    for text in declared:
        if text.startswith("caldist["):
            continue
        match = _DECLARED.fullmatch(text)
        if match is None:
            message = f"pyproject.toml declares {text!r}, without a least version."
            raise ValueError(message)
        name, version = match["name"], match["version"]
        if found.setdefault(name, version) != version:
            message = f"pyproject.toml declares {name} from {found[name]} and from {version}."
            raise ValueError(message)
    return "".join(f"{name}=={found[name]}\n" for name in sorted(found, key=str.lower))


if __name__ == "__main__":
    FILE.write_text(minimums(), encoding="utf-8")
