"""Certificates as files: the proof and what it speaks of, and nothing that runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caldist._util.invalid import clause_of
from caldist.data.files import read, write
from caldist.errors import InvalidInput

if TYPE_CHECKING:
    from caldist.certificates._base import Certificate

_FORMAT = "caldist-certificate-1"


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
