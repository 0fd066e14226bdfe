"""Proofs of values that anyone can re-check.

A certificate holds the distribution or the rows that it describes, a lower and an upper bound, and
the arrays that prove them. ``verify()`` recomputes both bounds from those alone, with NumPy and in
O(n log n) for each class; no code is shared with the solvers that found them.
"""

from caldist.certificates._base import Certificate, JointCertificate
from caldist.certificates._classes import ClassCertificate
from caldist.certificates._gap import GapCertificate
from caldist.certificates._lower import Coupling, LowerCertificate
from caldist.certificates._smooth import SmoothCertificate
from caldist.certificates._upper import UpperCertificate

__all__ = [
    "Certificate",
    "ClassCertificate",
    "Coupling",
    "GapCertificate",
    "JointCertificate",
    "LowerCertificate",
    "SmoothCertificate",
    "UpperCertificate",
]
