"""What the verifier refuses by name, though a bound could be made of it."""

import dataclasses

import numpy as np
import pytest

import caldist

JOINT = caldist.Joint.from_masses([0.2, 0.4, 0.7], [3, 2, 1], [1, 2, 3])


def test_a_group_without_mass():
    proof = caldist.certify(JOINT, measure="upper_distance")
    forged = dataclasses.replace(proof, recalibrated=np.append(proof.recalibrated, 0.5))
    with pytest.raises(caldist.errors.CertificateError, match="lists a group without mass"):
        forged.verify()


@pytest.mark.parametrize("measure", ["lower_distance", "upper_distance"])
def test_a_node_that_is_listed_twice(measure):
    proof = caldist.certify(JOINT, measure=measure)
    names = [
        field.name for field in dataclasses.fields(proof) if field.name.startswith("potential")
    ]
    doubled = {name: np.append(getattr(proof, name), getattr(proof, name)[-1]) for name in names}
    forged = dataclasses.replace(proof, node=np.append(proof.node, proof.node[-1]), **doubled)
    with pytest.raises(caldist.errors.CertificateError, match="node does not increase"):
        forged.verify()
