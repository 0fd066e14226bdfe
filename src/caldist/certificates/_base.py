"""What all certificates have, and the checks they share."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar, Self

import numpy as np

from caldist._util.types import Vector
from caldist.certificates import _files
from caldist.data.joint import Joint

AGREEMENT = 1e-9  # how closely a recomputed bound has to agree with the stored one
SLACK = 1e-9  # what rounding may leave of all constraints of one proof together


class CertificateError(ValueError):
    """A certificate that does not prove what it says."""


@dataclass(frozen=True, eq=False)
class Certificate(ABC):
    """A value with a lower and an upper bound and the proof of both.

    Attributes
    ----------
    joint
        The distribution that the value belongs to.
    value, lower, upper
        The value, and the bounds that the proof arrays give; lower ≤ value ≤ upper.

    Examples
    --------
    >>> import tempfile
    >>> import caldist
    >>> proof = caldist.certify([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75], measure="smooth_ce")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     proof.save(f"{folder}/proof.npz")
    ...     received = caldist.Certificate.load(f"{folder}/proof.npz")
    >>> received.verify()
    >>> received.measure, received.lower, received.upper, received.joint.n_rows
    ('smooth_ce', 0.03125, 0.03125, 4)
    """

    measure: ClassVar[str]

    joint: Joint
    value: float
    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """The distance between the bounds."""
        return self.upper - self.lower

    def __post_init__(self) -> None:
        for field in fields(self):
            array = getattr(self, field.name)
            if isinstance(array, np.ndarray):
                array.flags.writeable = False

    def verify(self) -> None:
        """Recompute both bounds from the joint and the proof, or raise ``CertificateError``.

        Constraints that rounding has broken are charged to the bound in full, so what is accepted
        is a proof up to the rounding of the check itself. A stored bound may differ from what the
        proof gives by at most 1e-9, and all constraints of a proof together may fail by at most
        1e-9: a bound that is accepted is off by no more than that.
        """
        if not isinstance(self.joint, Joint):
            fail(f"joint is of type {type(self.joint).__name__}")
        for name in ("value", "lower", "upper"):
            number = getattr(self, name)
            if not isinstance(number, float) or not np.isfinite(number):
                fail(f"{name} is {number!r}, not a finite float")
        if not self.lower <= self.value <= self.upper:
            fail(f"value {self.value} does not lie between {self.lower} and {self.upper}")
        with np.errstate(all="ignore"):  # what overflows fails the comparison that it comes to
            proofs = (
                ("lower", self.lower, self._prove_lower()),
                ("upper", self.upper, self._prove_upper()),
            )
        for name, stored, proved in proofs:
            if not abs(proved - stored) <= AGREEMENT:
                fail(f"{name} is {stored}, but the proof gives {proved}")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the proof and its joint to a ``.npz`` file, whole or not at all."""
        _files.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote, to the bit; a damaged or foreign file is a ``ValueError``.

        Nothing in the file runs. What it says is not checked: call :meth:`verify`.
        """
        kinds = {kind.measure: kind for kind in Certificate.__subclasses__()}
        certificate = _files.load(path, kinds)
        if not isinstance(certificate, cls):
            message = (
                f"{os.fspath(path)!r} is a certificate of {certificate.measure}, not of "
                f"{cls.measure}: load it with Certificate.load."
            )
            raise ValueError(message)  # noqa: TRY004 -- the file is wrong, not an argument's type
        return certificate

    @abstractmethod
    def _prove_lower(self) -> float:
        """Check the proof of the lower bound and return what it proves."""

    @abstractmethod
    def _prove_upper(self) -> float:
        """Check the proof of the upper bound and return what it proves."""


def fail(reason: str) -> None:
    """Reject a certificate."""
    message = f"the certificate is not valid: {reason}"
    raise CertificateError(message)


def vector(name: str, values: object, size: int | None = None) -> Vector:
    """Return a proof array that has the right type and shape and only finite numbers."""
    if type(values) is not np.ndarray or values.dtype != np.float64:
        fail(f"{name} is not a float64 array")
    array: Vector = values  # type: ignore[assignment]
    if array.ndim != 1 or array.size == 0 or (size is not None and array.size != size):
        expected = "a vector" if size is None else f"a vector of {size} numbers"
        fail(f"{name} has shape {array.shape} instead of {expected}")
    if not np.isfinite(array).all():
        fail(f"{name} has a value that is not finite")
    return array


def support(name: str, values: object) -> Vector:
    """Return a proof array of increasing numbers in [0, 1]."""
    array = vector(name, values)
    if array[0] < 0 or array[-1] > 1 or not (np.diff(array) > 0).all():
        fail(f"{name} does not increase within [0, 1]")
    return array


def lipschitz(name: str, at: Vector, values: object) -> tuple[Vector, float]:
    """Return the values of a function at increasing points, and its distance from 1-Lipschitz.

    Lowering or raising what follows each step that is too long by its excess makes the function
    1-Lipschitz, and changes it nowhere by more than the sum of the excesses.
    """
    array = vector(name, values, at.size)
    excess = float(np.maximum(np.abs(np.diff(array)) - np.diff(at), 0.0).sum())
    if not excess <= SLACK:
        fail(f"{name} is not 1-Lipschitz")
    return array, excess


def masses(joint: Joint) -> tuple[Vector, Vector, Vector]:
    """Return the predictions and the normalised masses of labels 0 and 1, checked."""
    v = support("joint.prediction", joint.prediction)
    mass0 = vector("joint.mass0", joint.mass0, v.size)
    mass1 = vector("joint.mass1", joint.mass1, v.size)
    if mass0.min() < 0 or mass1.min() < 0:
        fail("the joint has negative masses")
    with np.errstate(over="ignore"):
        total = float(mass0.sum() + mass1.sum())
    if not 0 < total < np.inf:
        fail(f"the masses of the joint add up to {total}, not to a positive finite number")
    return v, mass0 / total, mass1 / total
