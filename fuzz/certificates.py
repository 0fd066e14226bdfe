"""Certificates that were tampered with: refused, or what they claim is true all the same."""

from __future__ import annotations

import dataclasses
from contextlib import suppress

import numpy as np

import caldist
import oracles
from caldist.errors import CertificateError
from fuzz.rows import Instance, draw_rows

MEASURES = ("smooth_ce", "lower_distance", "upper_distance")
DATA = ("prediction", "mass0", "mass1", "n_rows", "radius")  # what a proof is about
CHANGES = ("move one", "move all", "swap", "shorten", "repeat", "spoil")
SPACING = 0.01
TOLERANCE = 1e-9  # of the verifier


def draw(rng: np.random.Generator) -> Instance:
    """Return a few rows, a measure, and how its certificate is changed."""
    measure = str(rng.choice(MEASURES))
    return draw_rows(rng, 7) | {
        "measure": measure,
        "place": float(rng.random()),  # which field, and where in it
        "other": float(rng.random()),
        "change": str(rng.choice(CHANGES)),
        "step": float(rng.choice([-1, 1]) * 10.0 ** rng.uniform(-12, 0)),
        "other_rows": draw_rows(rng, 7) if rng.random() < 0.1 else None,
    }


def check(instance: Instance) -> None:
    """Verify the certificate, tamper with it, and compare what still passes with an oracle."""
    proof = caldist.certify(
        instance["y_true"],
        instance["y_prob"],
        measure=instance["measure"],
        sample_weight=instance["sample_weight"],
    )
    proof.verify()
    with suppress(CertificateError):
        changed = _changed(proof, instance)
        changed.verify()
        _check_claim(changed)


def _changed(
    proof: caldist.certificates.Certificate, instance: Instance
) -> caldist.certificates.Certificate:
    if instance["other_rows"] is not None:
        joint = caldist.Joint.from_arrays(**instance["other_rows"])
        return dataclasses.replace(proof, **{name: getattr(joint, name) for name in DATA})
    known = {*DATA, "exact"}
    names = [field.name for field in dataclasses.fields(proof) if field.name not in known]
    name = names[int(instance["place"] * len(names))]
    value, step = getattr(proof, name), instance["step"]
    if isinstance(value, float):
        return dataclasses.replace(proof, **{name: value + step})
    array = value.astype(float) if value.dtype.kind == "f" else value.copy()
    at, other = (int(instance[word] * array.size) for word in ("place", "other"))
    match instance["change"]:
        case "move one":
            array[at] += step if array.dtype.kind == "f" else 1
        case "move all":
            array += step if array.dtype.kind == "f" else 1
        case "swap":
            array[[at, other]] = array[[other, at]]
        case "shorten":
            array = array[:-1]
        case "repeat":
            array = np.append(array, array[at])
        case "spoil":
            array[at] = np.nan if array.dtype.kind == "f" else -1
    return dataclasses.replace(proof, **{name: array})


def _check_claim(proof: caldist.certificates.Certificate) -> None:
    joint = proof.joint
    total = joint.mass0.sum() + joint.mass1.sum()
    v, g0, g1 = joint.prediction, joint.mass0 / total, joint.mass1 / total
    if proof.measure == "smooth_ce":
        least = most = float(oracles.smooth_ce_rational(v, oracles.residuals(v, g0, g1)))
    elif proof.measure == "upper_distance":
        least = most = oracles.partition_brute(v, g0 + g1, g1, order=1)
    else:
        grid = np.unique(np.concatenate((v, np.linspace(0, 1, round(1 / SPACING) + 1))))
        most = oracles.lower_distance_lp(v, g0, g1, grid) + 1e-7  # the program's own error
        least = most - SPACING**2 / 2 - 2e-7
    claim = f"a forged proof of {proof.lower!r} to {proof.upper!r} passes: {least!r} to {most!r}"
    assert proof.lower <= most + TOLERANCE, claim
    assert least <= proof.upper + TOLERANCE, claim
