"""The command line on odd input: an answer, or one line that says what is wrong."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from caldist.cli import main
from fuzz.rows import Instance

ODD = (
    "", " ", "nan", "NaN", "inf", "-inf", "None", "null", "1e400", "-0", "-0.0", "1.0000002", "-1",
    "2", "0x1", "1_0", "1,5", '"', '""', "'", "\x00", "\x1b[31m", "\u202e", "\ufeff",
    "\N{FULLWIDTH DIGIT ONE}", "yes", "true", "TRUE", "=1+1", "0.5 ", "5e-324", "9" * 400, "\r",
    "\t", "\N{GRINNING FACE}",
)  # fmt: skip
OPTIONS = (
    (), ("--measure", "all"), ("--measure", "clinical"), ("--measure", "none"), ("--weight", "w"),
    ("--by", "w"), ("--clusters", "w"), ("--positive", "yes"), ("--positive", ""),
    ("--format", "json"), ("--format", "csv"), ("--format", "markdown"), ("--fail-above", "0.1"),
    ("--fail-above", "nan"), ("--require-below", "-1"), ("--classes", "a,b"), ("--score", "p*"),
    ("--score", ""), ("--label", "p"), ("--each-class",), ("--nonsense",),
)  # fmt: skip
COMMANDS = ("measure", "measure", "measure", "test", "summarize", "verify")
EXPECTED = {
    0,
    1,
    2,
    3,
}  # those that the help promises for any file; 70 is an error of caldist's own


def draw(rng: np.random.Generator) -> Instance:
    """Return the text of a file, and a command with options."""
    size = int(rng.integers(0, 8))
    odd = rng.choice([0.0, 0.1, 0.5])
    rows = [
        [
            str(rng.choice(ODD)) if rng.random() < odd else usual
            for usual in (str(rng.integers(2)), f"{rng.random():.3f}", str(rng.integers(1, 4)))
        ]
        for _ in range(size)
    ]
    header = ["y", "p", "w"]
    if rng.random() < 0.1:
        header[int(rng.integers(3))] = str(rng.choice(ODD))
    mark = str(rng.choice([",", ",", ",", ";", "\t"]))
    text = str(rng.choice(["\n", "\n", "\r\n"])).join(mark.join(row) for row in [header, *rows])
    if rng.random() < 0.1:
        text = text[: int(rng.integers(len(text) + 1))]
    chosen = rng.integers(len(OPTIONS), size=int(rng.integers(0, 3)))
    return {
        "command": str(rng.choice(COMMANDS)),
        "options": [word for at in chosen for word in OPTIONS[at]],
        "text": text,
        "name": str(rng.choice(["rows.csv", "rows.csv", "rows.json", "rows.npz", "-"])),
    }


def check(instance: Instance) -> None:
    """Run it: the exit code is one that the help explains, and JSON is JSON."""
    content = instance["text"].encode("utf-8", "surrogatepass")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, instance["name"])
        if instance["name"] != "-":
            path.write_bytes(content)
        file = "-" if instance["name"] == "-" else str(path)
        arguments = [instance["command"], file]
        if instance["command"] != "verify":
            arguments += ["--label", "y", "--score", "p"]
        if instance["command"] == "summarize":
            arguments += ["-o", str(Path(folder, "summary.npz"))]
        arguments += instance["options"]
        done = CliRunner().invoke(main, arguments, input=content)
    if not isinstance(done.exception, SystemExit | None):
        raise done.exception
    assert done.exit_code in EXPECTED, f"exit code {done.exit_code}: {done.output}"
    assert "Traceback" not in done.output, done.output
    if done.exit_code == 0 and instance["options"][-2:] == ["--format", "json"]:
        json.loads(done.stdout)
