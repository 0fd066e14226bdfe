"""Certificates as files: the proof and the joint that it speaks of, and nothing that runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caldist.data.files import JOINT, JOINT_FORMATS, read, write
from caldist.data.joint import Joint

if TYPE_CHECKING:
    from caldist.certificates._base import Certificate
    from caldist.certificates._classes import ClassCertificate

_FORMAT = "caldist-certificate-1"
_CLASSES = "caldist-class-certificate-1"
_JOINT = {f"joint.{name}": name for name in JOINT_FORMATS[JOINT]}


def save(certificate: Certificate, path: str | os.PathLike[str]) -> None:
    """Write a certificate to a ``.npz`` file, whole or not at all."""
    content = {name: getattr(certificate, name) for name in _proof(type(certificate))}
    joint = certificate.joint._content()  # noqa: SLF001 -- the same arrays as in its own file
    content |= {f"joint.{name}": array for name, array in joint.items()}
    content["measure"] = np.str_(certificate.measure)
    write(path, content, format_name=_FORMAT)


def load(path: str | os.PathLike[str], kinds: Mapping[str, type[Certificate]]) -> Certificate:
    """Read what :func:`save` wrote; ``kinds`` are the known certificates by their measure."""
    members = {"measure", *_JOINT, *(name for kind in kinds.values() for name in _proof(kind))}
    content = read(path, formats={_FORMAT: members}, what="a certificate")
    try:
        return _certificate(content, kinds)
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        message = f"{os.fspath(path)!r} is not a valid certificate: {error}"
        raise ValueError(message) from error


def _certificate(
    content: Mapping[str, NDArray[Any]], kinds: Mapping[str, type[Certificate]]
) -> Certificate:
    measure = str(content.get("measure", "unknown"))
    if measure not in kinds:
        message = f"its measure is {measure!r}; this version knows {', '.join(kinds)}."
        raise ValueError(message)
    arrays = {_JOINT[name]: array for name, array in content.items() if name in _JOINT}
    values: dict[str, Any] = {
        name: array if array.ndim else array.item()
        for name, array in content.items()
        if name not in _JOINT and name != "measure"
    }
    proof = _proof(kinds[measure])
    for name in sorted(values.keys() ^ set(proof)):
        state = "missing" if name in proof else "there, but no part of it"
        message = f"of the proof of {measure} {name!r} is {state}."
        raise ValueError(message)
    joint = Joint._from_content(arrays)  # noqa: SLF001 -- the same arrays as in its own file
    return kinds[measure](joint=joint, **values)


def save_classes(certificate: ClassCertificate, path: str | os.PathLike[str]) -> None:
    """Write a certificate of several classes, its matrix row by row."""
    content = {field.name: getattr(certificate, field.name) for field in fields(certificate)}
    content["n_classes"] = np.int64(certificate.prediction.shape[1])
    content["prediction"] = certificate.prediction.ravel()
    write(path, content, format_name=_CLASSES)


def load_classes(path: str | os.PathLike[str], names: list[str]) -> dict[str, Any]:
    """Read what :func:`save_classes` wrote, by the names of its fields."""
    members = {*names, "n_classes"}
    content = read(path, formats={_CLASSES: members}, what="a certificate of several classes")
    wrong = sorted(members - content.keys())
    values = {name: array if array.ndim else array.item() for name, array in content.items()}
    try:
        if wrong:
            message = f"{wrong[0]!r} is missing."
            raise ValueError(message)  # noqa: TRY301 -- one message for all
        matrix = np.asarray(values["prediction"]).reshape(-1, int(values.pop("n_classes")))
    except (TypeError, ValueError, OverflowError) as error:
        message = f"{os.fspath(path)!r} is not a valid certificate of several classes: {error}"
        raise ValueError(message) from error
    return values | {"prediction": matrix}


def _proof(kind: type[Certificate]) -> list[str]:
    """Return the names of what proves the bounds, and of the bounds."""
    return [field.name for field in fields(kind) if field.name != "joint"]
