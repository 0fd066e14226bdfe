"""Files for the command line, and the command line for files."""

import csv
import json
from importlib.util import find_spec
from unittest.mock import patch

import numpy as np
from click.testing import CliRunner

from caldist.cli import _options, main

HAS_DUCKDB = find_spec("duckdb") is not None


def run(*arguments, stdin=None, draws=99):
    """Run a command, with few random draws: the limits of these tests need no more."""
    with patch.object(_options, "DRAWS", draws):
        return CliRunner().invoke(main, [str(part) for part in arguments], input=stdin)


def sample_rows():
    rng = np.random.default_rng(0)
    first = rng.random(200)
    return {
        "won": (rng.random(200) < first).astype(int),
        "first": first,
        "second": first**2,
        "weight": rng.integers(1, 4, 200),
        "site": rng.choice(["north", "south, east"], 200),
        "team": rng.integers(0, 40, 200),
    }


def write_csv(path, rows, delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(rows)
        writer.writerows(zip(*(map(_plain, column) for column in rows.values()), strict=True))
    return path


def write_json_lines(path, rows):
    names = list(rows)
    lines = zip(*(map(_plain, column) for column in rows.values()), strict=True)
    text = "\n".join(json.dumps(dict(zip(names, line, strict=True))) for line in lines)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value
