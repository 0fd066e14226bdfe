"""Proofs of values that anyone can re-check.

A certificate holds the distribution it speaks of, a lower and an upper bound, and the arrays that
prove them. ``verify()`` recomputes both bounds from the distribution and those arrays alone, with
NumPy and in O(n log n); no code is shared with the solvers that found them.
"""

from caldist.certificates._base import Certificate, CertificateError
from caldist.certificates._classes import ClassCertificate
from caldist.certificates._gap import GapCertificate
from caldist.certificates._lower import LowerCertificate
from caldist.certificates._smooth import SmoothCertificate
from caldist.certificates._upper import UpperCertificate

__all__ = [
    "Certificate",
    "CertificateError",
    "ClassCertificate",
    "GapCertificate",
    "LowerCertificate",
    "SmoothCertificate",
    "UpperCertificate",
]
