"""Certificates as files: the proof and what it speaks of, and nothing that runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caldist._util.invalid import clause_of
from caldist.data.files import JOINT_ARRAYS, read, write
from caldist.data.joint import Joint
from caldist.errors import InvalidInput

if TYPE_CHECKING:
    from caldist.certificates._base import Certificate

_FORMAT = "caldist-certificate-1"
JOINT_MEMBERS = {f"joint.{name}": name for name in JOINT_ARRAYS}


def save(certificate: Certificate, path: str | os.PathLike[str]) -> None:
    """Write a certificate to a ``.npz`` file, whole or not at all."""
    content = certificate._content()  # noqa: SLF001 -- all that a file has to hold
    content["measure"] = np.str_(certificate.measure)
    write(path, content, format_name=_FORMAT)


def load(path: str | os.PathLike[str], kinds: Mapping[str, type[Certificate]]) -> Certificate:
    """Read what :func:`save` wrote; ``kinds`` are the known certificates by their measure."""
    names = [part for kind in kinds.values() for part in kind._members()]  # noqa: SLF001
    known = {"measure"}.union(*names)
    content = read(path, format_name=_FORMAT, arrays=known, what="a certificate")
    try:
        return _certificate(content, kinds)
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        reason = f"is not a valid certificate: {clause_of(error)}"
        raise InvalidInput(argument=os.fspath(path), reason=reason) from error


def _certificate(
    content: dict[str, NDArray[Any]], kinds: Mapping[str, type[Certificate]]
) -> Certificate:
    measure = str(content.pop("measure", "unknown"))
    if measure not in kinds:
        reason = f"this version knows {', '.join(kinds)}"
        raise InvalidInput(argument="measure", value=measure, reason=reason)
    must, may = kinds[measure]._members()  # noqa: SLF001
    for name in sorted((content.keys() - may) ^ must):
        state = "is missing from" if name in must else "is no part of"
        raise InvalidInput(argument=name, reason=f"{state} the proof of {measure}")
    return kinds[measure]._from_content(content)  # noqa: SLF001


def joint_content(joint: Joint) -> dict[str, Any]:
    """Return the arrays of a joint's own file, under names for that of a certificate."""
    content = joint._content()  # noqa: SLF001 -- the same arrays as in its own file
    return {f"joint.{name}": array for name, array in content.items()}


def joint_of(content: Mapping[str, NDArray[Any]]) -> Joint:
    """Make the joint of what :func:`joint_content` gave, among other arrays."""
    arrays = {own: content[name] for name, own in JOINT_MEMBERS.items() if name in content}
    return Joint._from_content(arrays)  # noqa: SLF001 -- the same arrays as in its own file
