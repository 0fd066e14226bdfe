"""Several classes: brackets, couplings in fractions, and certificates that were tampered with."""

import dataclasses
import functools
from fractions import Fraction

import numpy as np
import pytest

import caldist
import class_oracles as oracles
from caldist import _kernels, multiclass
from caldist.certificates import CertificateError, ClassCertificate
from caldist.data.class_rows import ClassRows
from caldist.multiclass.coupling import couple

SEEDS = range(8) if _kernels.COMPILED else range(2)
TOL = 1e-6 if _kernels.COMPILED else 1e-3
needs_speed = pytest.mark.skipif(not _kernels.COMPILED, reason="takes minutes with plain kernels")
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
    options = {"confidence_level": 0.9, "rng": 3, "tol": TOL}
    found = multiclass.distance_bracket(y, V, **options)
    assert found == caldist.distance_bracket(y, V[:, 1], **options)


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


def test_certificates_as_files(tmp_path):
    example().save(tmp_path / "proof.npz")
    received = ClassCertificate.load(tmp_path / "proof.npz")
    received.verify()
    for field in dataclasses.fields(ClassCertificate):
        assert np.array_equal(getattr(received, field.name), getattr(example(), field.name))
    with pytest.raises(ValueError, match="certificate"):
        caldist.Certificate.load(tmp_path / "proof.npz")
    caldist.certify([0, 1], [0.2, 0.7], measure="smooth_ce").save(tmp_path / "binary.npz")
    with pytest.raises(ValueError, match="several classes"):
        ClassCertificate.load(tmp_path / "binary.npz")
    content = (tmp_path / "proof.npz").read_bytes()
    (tmp_path / "damaged.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="damaged"):
        ClassCertificate.load(tmp_path / "damaged.npz")
