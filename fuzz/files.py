"""Damaged files: an error that names the file, or what was saved, to the bit."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import caldist
from caldist import Joint, Monitor
from caldist.certificates import Certificate
from fuzz.rows import Instance, draw_rows

KINDS = ("joint", "gridded joint", "certificate", "monitor")
DAMAGES = ("flip", "cut", "zeros", "move", "append")


def draw(rng: np.random.Generator) -> Instance:
    """Return rows, what is saved of them, and where its file is damaged."""
    return draw_rows(rng, 12) | {
        "kind": str(rng.choice(KINDS)),
        "damage": str(rng.choice(DAMAGES)),
        "places": rng.random(int(rng.integers(1, 4))),
        "bit": int(rng.integers(8)),
        "length": int(rng.integers(1, 40)),
    }


def check(instance: Instance) -> None:
    """Save, damage, load, and compare."""
    saved = _make(instance)
    with tempfile.TemporaryDirectory() as folder:
        path, again = Path(folder, "saved.npz"), Path(folder, "again.npz")
        saved.save(path)
        whole = path.read_bytes()
        path.write_bytes(_damaged(whole, instance))
        kind = Certificate if isinstance(saved, Certificate) else type(saved)
        try:
            loaded = kind.load(path)
        except ValueError as error:
            if str(path) not in str(error):
                raise
            return
        loaded.save(again)
        assert again.read_bytes() == whole, "the damage changed what is loaded"


def _make(instance: Instance) -> Joint | Certificate | Monitor:
    y_true, y_prob = instance["y_true"], instance["y_prob"]
    if instance["kind"] == "monitor":
        monitor = Monitor(tolerance=0.02)
        monitor.update(y_true, y_prob, batch=1)
        return monitor
    if instance["kind"] == "certificate":
        return caldist.certify(y_true, y_prob, sample_weight=instance["sample_weight"])
    joint = Joint.from_arrays(y_true, y_prob, sample_weight=instance["sample_weight"])
    return joint.coarsen(8) if instance["kind"] == "gridded joint" else joint


def _damaged(whole: bytes, instance: Instance) -> bytes:
    content, length = bytearray(whole), instance["length"]
    for place in instance["places"]:
        at = int(place * len(content))
        match instance["damage"]:
            case "flip":
                content[at] ^= 1 << instance["bit"]
            case "cut":
                del content[max(at, 1) :]
            case "zeros":
                content[at : at + length] = bytes(len(content[at : at + length]))
            case "move":
                content[at:at] = content[at : at + length]
            case "append":
                content += bytes(length)
    return bytes(content)
