"""What all certificates have, and the checks they share."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from caldist._util.cached import cached_property
from caldist._util.numbers import most
from caldist._util.results import Result
from caldist._util.types import Vector
from caldist.certificates import _files
from caldist.errors import CertificateError, InvalidInput

if TYPE_CHECKING:
    from caldist.data.joint import Joint

AGREEMENT = 1e-9  # how closely a recomputed bound has to agree with the stored one
SLACK = 1e-9  # what rounding may leave of all constraints of one proof together
_LONGEST = 250  # letters of a repr


@dataclass(frozen=True, eq=False)
class Certificate(Result, ABC):
    """A lower and an upper bound, and the proof of both.

    What :func:`caldist.certify` returns is a :class:`caldist.certificates.JointCertificate`, with
    the value between the bounds and the distribution that it belongs to; what
    :func:`caldist.multiclass.certify` returns a :class:`caldist.certificates.ClassCertificate`.
    ``load`` reads a file of either.

    Attributes
    ----------
    measure
        The name of what is bounded.
    lower, upper
        The bounds that the proof arrays give.

    Examples
    --------
    >>> import tempfile
    >>> import caldist
    >>> proof = caldist.certify([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75], measure="smooth_ce")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     proof.save(f"{folder}/proof.npz")
    ...     received = caldist.certificates.Certificate.load(f"{folder}/proof.npz")
    >>> received.verify()
    <SmoothCertificate: smooth_ce is 0.03125, at least 0.03125, at most 0.03125, of 4 rows>
    """

    measure: ClassVar[str]

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

    def __repr__(self) -> str:
        said = str(self)
        shown = said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
        return f"<{type(self).__name__}: {shown}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the bounds and their proof as plain Python values, ready for JSON."""
        return {"measure": self.measure, **super().to_dict()}

    def _lines(self) -> list[dict[str, Any]]:
        """Return what is proved, in one line; the proof is in :meth:`to_dict` and in the file."""
        return [{"measure": self.measure, "lower": self.lower, "upper": self.upper}]

    def verify(self) -> Self:
        """Recompute both bounds from the data and the proof, or raise ``CertificateError``.

        Returns the certificate, which a prompt shows as a sentence: what is proved.

        Constraints that rounding has broken are charged to the bound in full, so what is accepted
        is a proof up to the rounding of the check itself. A stored bound may differ from what the
        proof gives by at most 1e-9, and all constraints of a proof together may fail by at most
        1e-9: a bound that is accepted is off by no more than that.
        """
        self._check_numbers()
        with np.errstate(all="ignore"):  # what overflows fails the comparison that it comes to
            proofs = (
                ("lower", self.lower, self._prove_lower()),
                ("upper", self.upper, self._prove_upper()),
            )
        for name, stored, proved in proofs:
            if not abs(proved - stored) <= AGREEMENT:
                fail(f"{name} is {stored}, but the proof gives {proved}")
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the proof and what it speaks of to a ``.npz`` file, whole or not at all."""
        _files.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote, to the bit.

        A damaged or foreign file is an ``InvalidInput``. Nothing in the file runs. What it says is
        not checked: call :meth:`verify`.
        """
        certificate = _files.load(path, {kind.measure: kind for kind in Certificate._kinds()})
        if not isinstance(certificate, cls):
            wanted = " or ".join(kind.measure for kind in cls._kinds())
            raise InvalidInput(
                argument=os.fspath(path),
                reason=f"is a certificate of {certificate.measure}, not of {wanted}",
                remedy="Load it with Certificate.load.",
            )
        return certificate

    @classmethod
    def _kinds(cls) -> list[type[Certificate]]:
        """Return the classes of certificates that have a measure of their own."""
        own: list[type[Certificate]] = [cls] if hasattr(cls, "measure") else []
        return own + [kind for heir in cls.__subclasses__() for kind in heir._kinds()]  # noqa: SLF001

    def _check_numbers(self) -> None:
        """Reject bounds that are not numbers, or that contradict each other."""
        number("lower", self.lower)
        number("upper", self.upper)
        if not self.lower <= self.upper:
            fail(f"lower is {self.lower}, above upper, {self.upper}")

    @abstractmethod
    def _prove_lower(self) -> float:
        """Check the proof of the lower bound and return what it proves."""

    @abstractmethod
    def _prove_upper(self) -> float:
        """Check the proof of the upper bound and return what it proves."""

    @classmethod
    def _members(cls) -> tuple[set[str], set[str]]:
        """Return the names of the arrays in a file: those that must be there, those that may."""
        return {field.name for field in fields(cls)}, set()

    def _content(self) -> dict[str, Any]:
        """Return the vectors, numbers and words for a file."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def _from_content(cls, content: dict[str, NDArray[Any]]) -> Self:
        """Make a certificate of what :meth:`_content` gave."""
        return cls(**{name: _plain(array) for name, array in content.items()})


@dataclass(frozen=True, eq=False)
class JointCertificate(Certificate):
    """A proof of the value of a measure of a joint.

    Attributes
    ----------
    prediction, mass0, mass1
        The distribution that the value belongs to: distinct predictions, increasing, with the mass
        of label 0 and of label 1 at each.
    n_rows
        How many rows it was made of; None where that is not known.
    radius
        A bound on the mean distance by which the predictions were rounded.
    value
        The value, with lower ≤ value ≤ upper.
    """

    prediction: Vector
    mass0: Vector
    mass1: Vector
    n_rows: int | None
    radius: float
    value: float

    @classmethod
    def of(cls, joint: Joint, **proof: Any) -> Self:
        """Make the certificate of a joint; ``proof`` are the value, the bounds and their proof."""
        return cls(
            prediction=joint.prediction,
            mass0=joint.mass0,
            mass1=joint.mass1,
            n_rows=joint.n_rows,
            radius=joint.radius,
            **proof,
        )

    @cached_property
    def joint(self) -> Joint:
        """The distribution as a joint, which measures take in the place of rows."""
        from caldist.data.joint import Joint  # compiled, which no proof needs

        masses = (self.prediction, self.mass0, self.mass1)
        return Joint(*masses, n_rows=self.n_rows, radius=self.radius)

    def __str__(self) -> str:
        """Say what is proved of how many rows."""
        rows = self.n_rows
        of = "an unknown number of rows" if rows is None else f"{rows:,} rows"
        if self.radius > 0:
            of += f", their predictions rounded by at most {most(self.radius, 3)} on average"
        return (
            f"{self.measure} is {self.value!r}, at least {self.lower!r}, at most {self.upper!r}, "
            f"of {of}"
        )

    def _lines(self) -> list[dict[str, Any]]:
        [line] = super()._lines()
        measure = {"measure": line.pop("measure"), "value": self.value}
        return [measure | line | {"n_rows": self.n_rows, "rounding": self.radius}]

    def _check_numbers(self) -> None:
        number("value", self.value)
        super()._check_numbers()
        if not self.lower <= self.value <= self.upper:
            fail(f"value {self.value} does not lie between {self.lower} and {self.upper}")
        if self.n_rows is not None and not (type(self.n_rows) is int and self.n_rows > 0):
            fail(f"n_rows is {self.n_rows!r}, not a number of rows")
        number("radius", self.radius)
        if not 0 <= self.radius <= 1:
            fail(f"radius is {self.radius}, which predictions in [0, 1] are not rounded by")

    def _distribution(self) -> tuple[Vector, Vector, Vector]:
        """Return the predictions and the normalised masses of labels 0 and 1, checked."""
        v = support("prediction", self.prediction)
        mass0 = vector("mass0", self.mass0, v.size)
        mass1 = vector("mass1", self.mass1, v.size)
        if mass0.min() < 0 or mass1.min() < 0:
            fail("there are negative masses")
        with np.errstate(over="ignore"):
            total = float(mass0.sum() + mass1.sum())
        if not 0 < total < np.inf:
            fail(f"the masses add up to {total}, not to a positive finite number")
        return v, mass0 / total, mass1 / total

    def _content(self) -> dict[str, Any]:
        """Return the arrays for a file, an unknown number of rows as -1."""
        return super()._content() | {"n_rows": -1 if self.n_rows is None else self.n_rows}

    @classmethod
    def _from_content(cls, content: dict[str, NDArray[Any]]) -> Self:
        """Make a certificate of what :meth:`_content` gave."""
        found = super()._from_content(content)
        return replace(found, n_rows=None) if found.n_rows == -1 else found


def _plain(array: NDArray[Any]) -> Any:
    return array if array.ndim else array.item()


def fail(reason: str) -> None:
    """Reject a certificate."""
    message = f"the certificate is not valid: {reason}"
    raise CertificateError(message)


def number(name: str, value: object) -> None:
    """Reject what is not a finite float."""
    if not isinstance(value, float) or not np.isfinite(value):
        fail(f"{name} is {value!r}, not a finite float")


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
