"""What a certificate proves, to 1e-11, seen through what its verifier accepts."""

import dataclasses

import pytest

from caldist.certificates import UpperCertificate
from caldist.errors import CertificateError

VIOLATION = 4e-10  # of constraints of a proof: less than the verifier lets pass


def assert_proves(proof, **bounds):
    """Move the stored bounds to both ends of the tolerance, 1e-9, and beyond."""
    for name, bound in bounds.items():
        for apart, accepted in ((0.99e-9, True), (1.01e-9, False)):
            for stored in (bound - apart, bound + apart):
                other = dataclasses.replace(proof, **{name: stored})
                if isinstance(proof, UpperCertificate) and name == "upper":
                    other = dataclasses.replace(other, value=stored)
                if accepted:
                    other.verify()
                else:
                    with pytest.raises(CertificateError, match=f"{name} is"):
                        other.verify()
