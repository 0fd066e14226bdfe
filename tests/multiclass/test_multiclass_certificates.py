"""Several classes: brackets, couplings in fractions, and certificates that were tampered with."""

import dataclasses
import functools
from fractions import Fraction

import numpy as np
import pytest

import caldist
import class_oracles as oracles
from caldist import multiclass
from caldist.certificates import (
    ClassCertificate,
    JointCertificate,
    SmoothCertificate,
)
from caldist.data.class_rows import ClassRows
from caldist.errors import CertificateError
from caldist.kernels import loader
from caldist.multiclass.coupling import couple
from certificate_checks import VIOLATION, assert_proves
from command_lines import run

SEEDS = range(8) if loader.COMPILED else range(2)
TOL = 1e-6 if loader.COMPILED else 1e-3
needs_speed = pytest.mark.skipif(not loader.COMPILED, reason="takes minutes with plain kernels")
every = pytest.mark.parametrize("seed", SEEDS)


# -- brackets --------------------------------------------------------------------------------------


@every
def test_the_bracket_holds_the_distance(seed):
    y, V = oracles.instance(seed)
    bracket = multiclass.distance_bracket(y, V, tol=TOL)
    above = oracles.distance_lp(y, V)  # at least the distance
    assert bracket.lower <= above + TOL
    assert bracket.upper >= above - 0.02
    assert bracket.lower >= multiclass.classwise_distance(y, V, tol=TOL) - TOL
    assert bracket.upper <= 2 * multiclass.smooth_ce(y, V) + 1e-12
    assert "total variation" in str(bracket)
    assert bracket.to_dict()["upper"] == bracket.upper


@every
def test_the_distance_is_at_most_that_of_the_best_partition(seed):
    y, V = oracles.instance(seed, n=6)
    best = oracles.distance_over_partitions(y, V)
    assert oracles.distance_lp(y, V) <= best + 1e-9
    assert multiclass.distance_bracket(y, V, tol=TOL).lower <= best + TOL


def test_the_bracket_of_softmax_data_is_close_to_the_linear_program():
    y, V = oracles.softmax(60, 3, 1.5, 2.0, 0)
    bracket = multiclass.distance_bracket(y, V, tol=TOL)
    judge = oracles.distance_lp(y, V, steps=14)
    assert bracket.lower <= judge + TOL
    assert judge / 1.05 <= bracket.upper <= 1.1 * judge


def test_two_classes_have_the_bracket_of_the_lower_distance():
    y, V = oracles.softmax(200, 2, 1.5, 2.0, 0)
    bracket = multiclass.distance_bracket(y, V, tol=TOL)
    proof = caldist.certify(y, V[:, 1], tol=TOL)
    assert (bracket.lower, bracket.upper) == (proof.lower, proof.upper)
    assert isinstance(bracket, caldist.measures.DistanceBracket)
    assert str(bracket).startswith("The least distance to calibration that these rows allow")


@needs_speed
def test_merging_classes_brings_predictions_no_farther_from_calibrated():
    y, V = oracles.softmax(80, 4, 1.5, 2.0, 0)
    merged = np.column_stack((V[:, 0] + V[:, 1], V[:, 2], V[:, 3]))
    fewer = multiclass.classwise_distance(np.array([0, 0, 1, 2])[y], merged, tol=TOL)
    assert fewer <= multiclass.distance_bracket(y, V, tol=TOL).upper + TOL


@needs_speed
def test_the_bracket_of_the_ring():
    y, V, weight = oracles.ring()
    bracket = multiclass.distance_bracket(y, V, tol=TOL, sample_weight=weight)
    assert bracket.lower_measure == "smooth_ce"
    assert 0.0155 < bracket.lower < 0.0467 < bracket.upper < 0.0469


# -- couplings -------------------------------------------------------------------------------------


@every
def test_the_coupling_in_fractions(seed):
    y, V = oracles.instance(seed, n=12)
    weight = np.random.default_rng(seed).integers(1, 5, 12) if seed % 2 else np.ones(12, int)
    rows = ClassRows.of(y, V, sample_weight=weight)
    mass = [Fraction(int(w), int(weight.sum())) for w in weight]
    shares = couple(rows)
    k = V.shape[1]
    sums = [Fraction(0)] * len(y)
    received = {}
    for row, group, share in zip(shares.row, shares.group, shares.share, strict=True):
        assert share >= 0
        sums[row] += Fraction(float(share))
        part = mass[row] * Fraction(float(share))
        received.setdefault(int(group), [Fraction(0)] * k)[y[row]] += part
    assert all(abs(total - 1) < Fraction(1, 10**12) for total in sums)
    cost = Fraction(0)
    target = {g: [part / sum(parts) for part in parts] for g, parts in received.items()}
    for row, group, share in zip(shares.row, shares.group, shares.share, strict=True):
        apart = sum(
            abs(Fraction(float(v)) - u) for v, u in zip(V[row], target[int(group)], strict=True)
        )
        cost += mass[row] * Fraction(float(share)) * apart / 2
    assert float(cost) == pytest.approx(shares.cost, abs=1e-12)
    below = multiclass.classwise_distance(y, V, tol=TOL, sample_weight=weight)
    assert shares.cost >= below - 1e-9
    for group, mean in target.items():
        assert shares.target[group] == pytest.approx([float(part) for part in mean], abs=1e-9)


def test_the_coupling_is_never_worse_than_the_labels_themselves():
    V = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert couple(ClassRows.of([0, 1], V)).cost == 0
    assert couple(ClassRows.of([1, 0], V)).cost <= 1


# -- certificates ----------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("k", [2, 3, 5])
def test_our_certificates_are_accepted(seed, k):
    y, V = oracles.instance(seed, n=15, k=k)
    weight = np.random.default_rng(seed).exponential(size=15) if seed % 2 else None
    if weight is not None:
        weight[0] = 0
    proof = multiclass.certify(y, V, tol=TOL, sample_weight=weight)
    proof.verify()
    value = multiclass.classwise_distance(y, V, tol=TOL, sample_weight=weight)
    assert proof.lower == pytest.approx(value, abs=2 * TOL)
    assert proof.gap >= 0
    assert proof.targets().sum(axis=1).max() == pytest.approx(1)
    if k == 2:
        assert proof.gap <= 3 * TOL


@functools.cache
def example():
    y, V = oracles.softmax(30, 3, 1.5, 2.0, 0)
    return multiclass.certify(y, V, tol=1e-4)


def changed(name, how):
    value = getattr(example(), name)
    if not isinstance(value, np.ndarray):
        return dataclasses.replace(example(), **{name: how(value)})
    array = value.copy()
    return dataclasses.replace(example(), **{name: how(array)})


def lifted(array):
    array += 1e-3
    return array


def swapped(array):
    return array[::-1].copy()


def first_up(array):
    array.flat[0] += 1
    return array


TAMPERED = {
    "prediction lifted": ("prediction", lifted),
    "prediction of other rows": ("prediction", swapped),
    "prediction in single precision": ("prediction", lambda a: a.astype(np.float32)),
    "prediction without rows": ("prediction", lambda a: a[:0]),
    "prediction of nan": ("prediction", lambda a: a * np.nan),
    "label": ("label", lambda a: (a + 1) % 3),
    "label beyond the classes": ("label", lambda a: a + 2),
    "label as numbers": ("label", lambda a: a.astype(float)),
    "label too short": ("label", lambda a: a[:-1]),
    "weight": ("weight", lambda a: a * np.linspace(1, 2, a.size)),
    "weight below 0": ("weight", lambda a: -a),
    "weight of 0": ("weight", lambda a: 0 * a),
    "lower": ("lower", lambda x: x + 1e-6),
    "lower as text": ("lower", str),
    "upper": ("upper", lambda x: x - 1e-6),
    "upper infinite": ("upper", lambda _: float("inf")),
    "upper below lower": ("upper", lambda _: 0.0),
    "start": ("start", lambda a: np.array([0, 1, 2, a[-1]])),
    "start that goes back": ("start", swapped),
    "start too short": ("start", lambda a: a[:-1]),
    "node": ("node", lambda a: a**2),
    "node of other order": ("node", swapped),
    "potential0": ("potential0", lifted),
    "potential0 steep": ("potential0", lambda a: 3 * a),
    "potential1": ("potential1", lifted),
    "potential1 too short": ("potential1", lambda a: a[:-1]),
    "row": ("row", swapped),
    "row beyond the rows": ("row", lambda a: a + 30),
    "group": ("group", swapped),
    "group below 0": ("group", lambda a: a - a.max() - 1),
    "share": ("share", lifted),
    "share below 0": ("share", lambda a: np.where(np.arange(a.size) == 0, a - 1, a)),
    "share of nan": ("share", lambda a: a * np.nan),
    "share too short": ("share", lambda a: a[:-1]),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_a_tampered_certificate_is_rejected(case):
    example().verify()
    name, how = TAMPERED[case]
    with pytest.raises(CertificateError, match="not valid"):
        changed(name, how).verify()


def test_every_field_was_tampered_with():
    assert {name for name, _ in TAMPERED.values()} == {
        field.name for field in dataclasses.fields(ClassCertificate)
    }


# -- files -----------------------------------------------------------------------------------------


def assert_same(one, other):
    assert type(one) is type(other)
    for field in dataclasses.fields(one):
        mine, others = getattr(one, field.name), getattr(other, field.name)
        assert type(mine) is type(others), field.name
        assert np.array_equal(mine, others), field.name
        if isinstance(mine, np.ndarray):
            assert mine.dtype == others.dtype, field.name
            assert not others.flags.writeable


@pytest.mark.parametrize("k", [2, 3, 7])
def test_a_certificate_comes_back_to_the_bit(tmp_path, k):
    y, V = oracles.instance(0, n=11, k=k)
    proof = multiclass.certify(y, V, tol=1e-3)
    proof.save(tmp_path / "proof.npz")
    for kind in (caldist.certificates.Certificate, ClassCertificate):
        found = kind.load(tmp_path / "proof.npz")
        found.verify()
        assert_same(proof, found)


@pytest.mark.parametrize("case", TAMPERED)
def test_what_was_tampered_with_is_rejected_through_a_file(tmp_path, case):
    changed(*TAMPERED[case]).save(tmp_path / "proof.npz")
    with pytest.raises(CertificateError, match="not valid"):
        caldist.certificates.Certificate.load(tmp_path / "proof.npz").verify()
    result = run("verify", tmp_path / "proof.npz")
    assert result.exit_code == 1
    assert "the certificate is not valid" in result.stderr


def test_certificates_are_not_taken_for_each_other(tmp_path):
    path = tmp_path / "proof.npz"
    example().save(path)
    with pytest.raises(
        ValueError, match=r"of multiclass_distance, not of smooth_ce\. Load it with"
    ):
        SmoothCertificate.load(path)
    with pytest.raises(ValueError, match=r"not of .*lower_distance.*\. Load it with"):
        JointCertificate.load(path)
    caldist.certify([0, 1], [0.2, 0.7], measure="smooth_ce").save(path)
    with pytest.raises(ValueError, match="of smooth_ce, not of multiclass_distance"):
        ClassCertificate.load(path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: content.pop("share"), "share is missing"),
        (lambda content: content.pop("n_classes"), "n_classes is missing"),
        (lambda content: content.update(curve=np.ones(3)), "curve is no part"),
        (lambda content: content.update(mass0=np.ones(3)), "mass0 is no part"),
        (lambda content: content.update(n_classes=np.int64(4)), "valid certificate.*reshape"),
        (lambda content: content.update(n_classes=np.int64(0)), "valid certificate.*reshape"),
        (lambda content: content.update(n_classes=np.ones(2)), "valid certificate"),
        (lambda content: content.update(prediction=np.ones((10, 3))), "neither a vector"),
        (
            lambda content: content.update(measure="smooth_ce"),
            "is missing from the proof of smooth_ce",
        ),
    ],
)
def test_a_foreign_file_is_refused(tmp_path, change, reason):
    path = tmp_path / "proof.npz"
    example().save(path)
    with np.load(path) as archive:
        content = dict(archive)
    change(content)
    np.savez(path, **content)
    with pytest.raises(ValueError, match=reason) as caught:
        caldist.certificates.Certificate.load(path)
    assert not isinstance(caught.value, CertificateError)
    assert str(path) in str(caught.value)


def small_proof():
    """Return a valid proof of few numbers, whose bounds are far apart."""
    return ClassCertificate(
        prediction=np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]),
        label=np.array([0, 1]),
        weight=np.array([1.0, 3.0]),
        lower=0.0,
        upper=0.5,
        start=np.array([0, 2, 4, 6]),
        node=np.array([0.0, 1.0] * 3),
        potential0=np.zeros(6),
        potential1=np.zeros(6),
        row=np.array([0, 1]),
        group=np.array([0, 1]),
        share=np.ones(2),
    )


@pytest.mark.parametrize(
    ("changes", "bounds"),
    [
        ({"share": np.array([1 - VIOLATION, 1.0])}, {"upper": 0.5 + 0.125 * VIOLATION}),
        ({"share": np.array([1.0, 1 + VIOLATION])}, {"upper": 0.5 + 1.125 * VIOLATION}),
        (
            {"potential0": np.full(6, VIOLATION), "potential1": np.full(6, VIOLATION)},
            {"lower": 0.0},
        ),
    ],
)
def test_what_is_violated_is_charged(changes, bounds):
    assert_proves(dataclasses.replace(small_proof(), **changes), **bounds)


def test_flipped_bits_and_truncations_are_noticed_or_do_no_harm(tmp_path):
    """Some bits of a valid proof of few numbers; all are tried on joints, read the same way."""
    proof = small_proof()
    proof.verify()
    path = tmp_path / "proof.npz"
    proof.save(path)
    whole = path.read_bytes()
    for at in np.random.default_rng(0).choice(8 * len(whole), 400, replace=False).tolist():
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << at % 8
        path.write_bytes(flipped)
        try:
            found = caldist.certificates.Certificate.load(path)
        except ValueError:
            continue
        assert_same(proof, found)
    for size in range(0, len(whole), 71):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="damaged"):
            caldist.certificates.Certificate.load(path)


def test_verify_says_what_is_proved_of_several_classes(tmp_path):
    example().save(tmp_path / "classes.npz")
    caldist.certify([0, 1], [0.2, 0.7], measure="smooth_ce").save(tmp_path / "binary.npz")
    result = run("verify", tmp_path / "classes.npz", tmp_path / "binary.npz")
    assert result.exit_code == 0, result.stderr
    classes, binary = result.stdout.splitlines()
    ends = f"at least {example().lower!r}, at most {example().upper!r}"
    assert f"multiclass_distance is {ends}, of 30 rows and 3 classes: the proof holds" in classes
    assert binary.endswith("2 rows: the proof holds")
