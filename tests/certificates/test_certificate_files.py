"""Certificates as files: they come back to the bit, prove the same, and hide nothing."""

import dataclasses
import functools

import numpy as np
import pytest
from hypothesis import given

import caldist
from caldist import Joint
from caldist.certificates import (
    Certificate,
    GapCertificate,
    LowerCertificate,
    SmoothCertificate,
    UpperCertificate,
)
from caldist.errors import CertificateError
from caldist.kernels import loader
from command_lines import run
from strategies import samples

KINDS = {
    "smooth_ce": SmoothCertificate,
    "lower_distance": LowerCertificate,
    "upper_distance": UpperCertificate,
    "post_processing_gap": GapCertificate,
}
TOL = 1e-6 if loader.COMPILED else 1e-3  # plain kernels need seconds for 1e-6
each = pytest.mark.parametrize("measure", KINDS)


@functools.cache
def example(measure):
    y_true, y_prob = [0, 1, 0, 1, 1], [0.25, 0.5, 0.5, 0.75, 0.8]
    return caldist.certify(y_true, y_prob, measure=measure, tol=TOL)


def assert_same(one, other):
    assert type(one) is type(other)
    for field in dataclasses.fields(one):
        mine, others = getattr(one, field.name), getattr(other, field.name)
        assert type(mine) is type(others), field.name
        if isinstance(mine, np.ndarray):
            assert mine.dtype == others.dtype
            assert mine.tobytes() == others.tobytes(), field.name
            assert not others.flags.writeable
        else:
            assert mine == others, field.name


@each
@given(sample=samples(max_size=14))
def test_a_certificate_comes_back_to_the_bit_and_proves_the_same(tmp_path_factory, measure, sample):
    y_true, y_prob, weight = sample
    proof = caldist.certify(y_true, y_prob, measure=measure, tol=TOL, sample_weight=weight)
    path = tmp_path_factory.mktemp("proof") / "proof"
    assert proof.save(path) is None
    for kind in (Certificate, KINDS[measure]):
        found = kind.load(path)
        found.verify()
        assert_same(proof, found)
    assert [file.name for file in path.parent.iterdir()] == ["proof"]


@each
def test_a_summary_inside_keeps_its_rows_and_its_rounding(tmp_path, measure):
    y_true, y_prob = [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4]
    summary = Joint.from_arrays(y_true, y_prob).coarsen(3)
    proof = caldist.certify(summary, measure=measure, tol=TOL)
    proof.save(tmp_path / "proof.npz")
    found = Certificate.load(tmp_path / "proof.npz").verify()
    assert_same(proof, found)
    assert (found.n_rows, found.radius) == (4, summary.radius)
    assert found.joint == Joint(
        summary.prediction, summary.mass0, summary.mass1, n_rows=4, radius=summary.radius
    )


def test_a_certificate_of_another_measure_is_refused(tmp_path):
    path = tmp_path / "proof.npz"
    example("smooth_ce").save(path)
    with pytest.raises(ValueError, match=r"of smooth_ce, not of lower_distance\. Load it with"):
        LowerCertificate.load(path)


def rewritten(path, change):
    """Replace members of a saved certificate."""
    with np.load(path) as archive:
        content = dict(archive)
    change(content)
    np.savez(path, **content)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: content.pop("curve"), "curve is missing"),
        (lambda content: content.update(node=np.ones(3)), "node is no part"),
        (lambda content: content.update(extra=np.ones(3)), "extra is no array"),
        (lambda content: content.pop("measure"), "measure is 'unknown'"),
        (lambda content: content.update(measure="ece"), "measure is 'ece': .*smooth_ce"),
        (lambda content: content.update(format="caldist-certificate-2"), "reads 'caldist-cert.*1'"),
        (lambda content: content.pop("format"), "format is 'unknown'"),
        (lambda content: content.pop("mass0"), "mass0 is missing"),
        (lambda content: content.update(n_rows=np.ones(2)), "valid certificate"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path, change, reason):
    path = tmp_path / "proof.npz"
    example("smooth_ce").save(path)
    rewritten(path, change)
    with pytest.raises(ValueError, match=reason) as caught:
        Certificate.load(path)
    assert not isinstance(caught.value, CertificateError)
    assert str(path) in str(caught.value)


def test_joints_and_certificates_are_not_taken_for_each_other(tmp_path):
    path = tmp_path / "file.npz"
    example("smooth_ce").save(path)
    with pytest.raises(ValueError, match="not a saved joint: its format is 'caldist-cert"):
        Joint.load(path)
    example("smooth_ce").joint.save(path)
    with pytest.raises(ValueError, match="not a certificate: its format is 'caldist-joint"):
        Certificate.load(path)
    with pytest.raises(IsADirectoryError, match="is a folder, not a certificate"):
        Certificate.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        Certificate.load(tmp_path / "absent.npz")


def small_proof(measure):
    """Return a valid proof of few numbers."""
    if measure == "smooth_ce":
        return example(measure)
    dual = {"node": np.array([0.0, 1.0]), "potential0": np.zeros(2), "potential1": np.zeros(2)}
    return dataclasses.replace(example("upper_distance"), lower=0.0, **dual)


@pytest.mark.parametrize("measure", ["smooth_ce", "upper_distance"])
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 13])
def test_flipped_bits_and_truncations_are_noticed_or_do_no_harm(tmp_path, measure, step):
    """One bit of every byte; all bits are tried on joints, whose files are read the same way.

    In the fast tier, of every 13th byte.
    """
    proof = small_proof(measure)
    proof.verify()
    path = tmp_path / "proof.npz"
    proof.save(path)
    whole = path.read_bytes()
    bits = np.random.default_rng(0).integers(0, 8, len(whole))
    for at, bit in list(enumerate(bits.tolist()))[::step]:
        flipped = bytearray(whole)
        flipped[at] ^= 1 << bit
        path.write_bytes(flipped)
        try:
            found = Certificate.load(path)
        except ValueError:
            continue
        assert_same(proof, found)
    for size in range(0, len(whole), 7 * step):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="damaged"):
            Certificate.load(path)


@each
def test_a_false_proof_is_loaded_but_not_verified(tmp_path, measure):
    path = tmp_path / "proof.npz"
    for name, other in (
        ("lower", example(measure).lower - 1e-3),
        ("value", float("nan")),
        ("upper", np.ones(2)),
        ("value", "much"),
        ("value", True),
    ):
        dataclasses.replace(example(measure), **{name: other}).save(path)
        with pytest.raises(CertificateError, match=name):
            Certificate.load(path).verify()


def test_what_is_not_numbers_is_not_saved(tmp_path):
    with pytest.raises(TypeError, match="value is None: only numbers"):
        dataclasses.replace(example("smooth_ce"), value=None).save(tmp_path / "proof.npz")
    assert list(tmp_path.iterdir()) == []


# -- the command line ---------------------------------------------------------------------------


@pytest.fixture
def proofs(tmp_path):
    paths = {}
    for measure in KINDS:
        paths[measure] = tmp_path / f"{measure}.npz"
        example(measure).save(paths[measure])
    paths["false"] = tmp_path / "false.npz"
    proof = example("smooth_ce")
    dataclasses.replace(proof, upper=proof.upper + 0.25).save(paths["false"])
    paths["foreign"] = tmp_path / "foreign.npz"
    proof.joint.save(paths["foreign"])
    paths["absent"] = tmp_path / "absent.npz"
    return paths


def test_verify_says_what_is_proved(proofs):
    result = run("verify", *(proofs[measure] for measure in KINDS))
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    for measure, line in zip(KINDS, lines, strict=True):
        proof = example(measure)
        assert line.startswith(f"{proofs[measure]}: {measure} is {proof.value!r}, ")
        assert f"at least {proof.lower!r}, at most {proof.upper!r}" in line
        assert line.endswith("5 rows: the proof holds")
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("false", 1, "the certificate is not valid: upper is"),
        ("foreign", 2, "is not a certificate"),
        ("absent", 2, "absent.npz"),
    ],
)
def test_verify_says_what_is_not(proofs, name, code, reason):
    result = run("verify", proofs[name], proofs["smooth_ce"])
    assert result.exit_code == code
    assert reason in result.stderr
    assert str(proofs[name]) in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.output
    [line] = result.stdout.splitlines()  # the other file is checked all the same
    assert line.endswith("the proof holds")


def test_verify_checks_every_file_and_ends_with_the_worst(proofs):
    result = run("verify", proofs["foreign"], proofs["false"], proofs["absent"])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 3
    assert run("verify").exit_code == 2


def test_verify_says_where_predictions_were_rounded_and_rows_are_unknown(tmp_path):
    joint = Joint.from_masses([0.5], [1.0], [1.0], radius=0.12344)
    caldist.certify(joint, measure="smooth_ce").save(tmp_path / "proof.npz")
    result = run("verify", tmp_path / "proof.npz")
    assert result.exit_code == 0, result.stderr
    assert "an unknown number of rows" in result.stdout
    assert "rounded by at most 0.124 on average" in result.stdout
