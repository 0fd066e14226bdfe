"""Certificates: the verifier accepts ours, and rejects every field that was tampered with."""

import ast
import dataclasses
import functools
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caldist
import oracles
from caldist.certificates import (
    Certificate,
    GapCertificate,
    LowerCertificate,
    SmoothCertificate,
    UpperCertificate,
    _base,
)
from caldist.errors import CertificateError
from caldist.kernels import loader
from certificate_checks import VIOLATION, assert_proves
from strategies import FAMILIES, family, samples

MEASURES = ["smooth_ce", "lower_distance", "upper_distance", "post_processing_gap"]
LARGE = 3000 if loader.COMPILED else 60
TOL = 1e-6 if loader.COMPILED else 1e-3  # plain kernels need seconds for 1e-6
each = pytest.mark.parametrize("measure", MEASURES)


@each
@given(samples(max_size=14))
def test_our_certificates_are_accepted(measure, sample):
    y, p, weight = sample
    proof = caldist.certify(y, p, measure=measure, tol=TOL, sample_weight=weight)
    assert proof.verify() is proof
    assert proof.lower <= proof.value <= proof.upper
    assert proof.gap == proof.upper - proof.lower
    joint = caldist.Joint.from_arrays(y, p, sample_weight=weight)
    for name in ("prediction", "mass0", "mass1"):
        assert np.array_equal(getattr(proof, name), getattr(joint, name))
    assert proof.n_rows == len(y)
    assert proof.radius == 0
    if weight is None:
        assert proof.joint == joint
    assert proof.measure == measure


@each
@pytest.mark.parametrize("kind", FAMILIES)
def test_certificates_of_many_predictions(measure, kind):
    rng = np.random.default_rng(1)
    y, p = family(kind, LARGE, rng)
    for weight in (None, rng.exponential(size=LARGE) ** 2):
        proof = caldist.certify(y, p, measure=measure, tol=TOL, sample_weight=weight)
        proof.verify()
        if measure == "smooth_ce":
            assert proof.gap < 1e-13
            assert proof.value == caldist.smooth_ce(y, p, sample_weight=weight)
        elif measure == "lower_distance":
            assert proof.gap <= TOL


@functools.cache
def example(measure):
    y, p = family("beta3", 40, np.random.default_rng(0))
    return caldist.certify(y, p, measure=measure, tol=TOL)


def fields(measure):
    return [field.name for field in dataclasses.fields(example(measure))]


TAMPERED = [(measure, name) for measure in MEASURES for name in fields(measure) if name != "exact"]


def changes(name, value):
    """Yield other values for a field."""
    if name == "radius":
        yield from (-1e-9, 1.5, 0, float("nan"), float("inf"))
    elif isinstance(value, float):
        yield from (value + 2 * TOL, value - 2 * TOL, -value - 1, float("nan"), float("inf"))
    elif isinstance(value, int):
        yield from (-1, 0, True, float(value), str(value))
    else:
        yield value[:-1]
        yield np.append(value, value[-1])
        yield value[None, :]
        if value.size > 1:
            yield value[::-1].copy()
        if value.dtype.kind == "f":
            for at in {0, value.size // 2, value.size - 1}:
                for step in (0.2, -0.2, float("nan")):
                    other = value.copy()
                    other[at] += step
                    yield other
        else:
            other = value.copy()
            other[0] = value.max() + 1
            yield other
            other = value.copy()
            other[0] = -1
            yield other
            other = value.copy()
            other[0] = other[-1]
            yield other


@pytest.mark.parametrize(("measure", "name"), TAMPERED)
def test_tampering_is_noticed(measure, name):
    proof = example(measure)
    for other in changes(name, getattr(proof, name)):
        with pytest.raises(caldist.errors.CertificateError):
            dataclasses.replace(proof, **{name: other}).verify()


# -- what a proof gives, to 1e-11 --------------------------------------------------------------


def loss(joint, fitted):
    """Return the mean squared error of predictions that a map has changed."""
    total = joint.mass0.sum() + joint.mass1.sum()
    return float((joint.mass0 * fitted**2 + joint.mass1 * (1 - fitted) ** 2).sum() / total)


def gap_proof(joint, fitted, max_slope=1.0, excess=0.0):
    """Return what any map proves of the post-processing gap: its bounds step by step."""
    v, share = joint.prediction, 1 / (joint.mass0.sum() + joint.mass1.sum())
    gain = loss(joint, v) - loss(joint, fitted)
    above = prefix = 0.0
    for i, (zeros, ones) in enumerate(zip(joint.mass0, joint.mass1, strict=True)):
        prefix += share * (ones - fitted[i] * (zeros + ones))
        if i + 1 < v.size:
            step = fitted[i + 1] - fitted[i]
            longest = min(1.0, max_slope * (v[i + 1] - v[i]))
            above += prefix * step if prefix > 0 else -prefix * (longest - step)
    above += abs(prefix) * max(fitted[-1], 1 - fitted[-1])
    lower, upper = float(gain - 2 * excess * (1 + excess)), float(gain + 2 * above)
    return GapCertificate.of(
        joint,
        value=(lower + upper) / 2,
        lower=lower,
        upper=upper,
        max_slope=max_slope,
        fitted=fitted,
    )


def loose(measure):
    """Return a valid proof whose bounds are apart."""
    proof = example(measure)
    if measure == "smooth_ce":
        proof = dataclasses.replace(proof, height=np.zeros(proof.height.size), lower=0.0)
    if measure == "post_processing_gap":
        proof = gap_proof(proof.joint, proof.joint.prediction)
    if measure == "upper_distance":
        return proof
    return dataclasses.replace(proof, value=(proof.lower + proof.upper) / 2)


@each
def test_a_better_bound_than_the_proof_gives_is_refused(measure):
    proof = loose(measure)
    assert proof.gap > 1e-8
    assert_proves(proof, lower=proof.lower, upper=proof.upper)


@pytest.mark.parametrize(
    ("mass0", "potential0", "potential1", "bound"),
    [
        (0.5, [VIOLATION, VIOLATION], [VIOLATION, VIOLATION], 0.0),
        # r1 is too steep; (1 - u) r0(u) + u r1(u) is 4 u (1 - u) times the violation over 4
        (0.1, [0.0, -1.0], [1.0 + VIOLATION, 0.0], 0.4 + (0.45 - 2 - 0.25) * VIOLATION),
        (0.1, [0.0, -1.0 - VIOLATION], [1.0, 0.0], 0.4 - (0.05 + 2) * VIOLATION),
    ],
)
def test_what_potentials_violate_is_charged(mass0, potential0, potential1, bound):
    proof = LowerCertificate.of(
        caldist.Joint.from_masses([0.5], [mass0], [1 - mass0]),
        value=0.45,
        lower=bound,
        upper=0.5,
        node=np.array([0.0, 1.0]),
        potential0=np.array(potential0),
        potential1=np.array(potential1),
        calibrated=np.array([0.0, 1.0]),
        calibrated_mass=np.array([mass0, 1 - mass0]),
    )
    assert_proves(proof, lower=bound)


@pytest.mark.parametrize("label", [0, 1])
def test_labels_that_a_calibrated_distribution_misses_are_charged(label):
    """Rows of one label have to go from one end to the other. Of label 0, what is missed at 0 was
    not moved; of label 1, what is left at 0 was counted as if it were."""
    proof = LowerCertificate.of(
        caldist.Joint.from_masses([1.0 - label], [1.0 - label], [float(label)]),
        value=0.5,
        lower=0.0,
        upper=1.0,
        node=np.array([0.0, 1.0]),
        potential0=np.zeros(2),
        potential1=np.zeros(2),
        calibrated=np.array([float(label)]),
        calibrated_mass=np.array([1 - VIOLATION]),
    )
    assert_proves(proof, upper=1.0 + label * VIOLATION)


@pytest.mark.parametrize(
    ("label", "name", "values", "bounds"),
    [
        (1, "height", [1 + VIOLATION, 1 + VIOLATION], {"lower": 0.5 - 0.5 * VIOLATION}),
        (1, "height", [1.0, -VIOLATION], {"lower": 0.5 - VIOLATION}),
        (1, "curve", [-VIOLATION, 0.5], {"upper": 1 + 3 * VIOLATION}),
        (1, "curve", [0.0, 0.5 + VIOLATION], {"upper": 1 + 2 * VIOLATION}),
        (0, "height", [-1 - VIOLATION, -1 - VIOLATION], {"lower": 0.5 - 0.5 * VIOLATION}),
        (0, "height", [VIOLATION, -1.0], {"lower": 0.5 - VIOLATION}),
        (0, "curve", [-0.5 - VIOLATION, -0.5], {"upper": 1 + 3 * VIOLATION}),
        (0, "curve", [-0.5, -0.5 - VIOLATION], {"upper": 1 + 2 * VIOLATION}),
    ],
)
def test_what_a_witness_and_a_curve_violate_is_charged(label, name, values, bounds):
    """Predictions 0 and 1 of one label: the residuals are 1/2 and 0, or 0 and -1/2."""
    valid = {"height": [2.0 * label - 1] * 2, "curve": [0.5 * label - 0.5, label - 0.5]}
    height, curve = ((valid | {name: values})[key] for key in ("height", "curve"))
    proof = SmoothCertificate.of(
        caldist.Joint.from_masses([0.0, 1.0], [1.0 - label] * 2, [float(label)] * 2),
        value=0.75,
        lower=bounds.get("lower", 0.5),
        upper=bounds.get("upper", 1.0),
        knot=np.array([0.0, 1.0]),
        height=np.array(height),
        curve=np.array(curve),
    )
    assert_proves(proof, **bounds)


@pytest.mark.parametrize(
    ("fitted", "excess"),
    [
        ([0.25, 0.25 - VIOLATION, 0.25], VIOLATION),
        ([0.25, 0.5 + VIOLATION, 0.75 + VIOLATION], VIOLATION),
        ([0.25, 0.25 - VIOLATION, 0.5], 2 * VIOLATION),
    ],
)
def test_slopes_that_a_map_may_not_have_are_charged(fitted, excess):
    joint = caldist.Joint.from_masses([0.25, 0.5, 0.75], [1.0, 2.0, 0.5], [1.0, 0.5, 3.0])
    proof = gap_proof(joint, np.array(fitted), excess=excess)
    assert_proves(proof, lower=proof.lower, upper=proof.upper)


def test_no_step_of_a_map_is_counted_as_longer_than_1():
    joint = caldist.Joint.from_masses([0.0, 1.0], [1.0, 0.0], [0.0, 1.0])
    proof = gap_proof(joint, np.full(2, 0.5), max_slope=2.0)
    assert (proof.lower, proof.upper) == (-0.25, 0.25)
    assert_proves(proof, lower=proof.lower, upper=proof.upper)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_a_map_to_the_wrong_end_proves_no_small_gap(label):
    """All rows have one label and are mapped to the other: the best map goes the whole way."""
    joint = caldist.Joint.from_masses([0.25, 0.5], [1 - label] * 2, [label] * 2)
    proof = gap_proof(joint, np.full(2, 1 - label))
    assert proof.lower < 0 < loss(joint, joint.prediction) < proof.upper
    assert_proves(proof, upper=proof.upper)


@pytest.mark.parametrize("off", [-VIOLATION, VIOLATION])
def test_a_map_that_is_nearly_calibrated_costs_what_the_calibrated_one_does(off):
    proof = UpperCertificate.of(
        caldist.Joint.from_masses([0.2, 0.9], [3.0, 1.0], [3.0, 1.0]),
        value=0.325,
        lower=0.0,
        upper=0.325,
        group=np.zeros(2, np.int64),
        recalibrated=np.array([0.5 + off]),
        node=np.array([0.0, 1.0]),
        potential0=np.zeros(2),
        potential1=np.zeros(2),
        exact=False,
    )
    assert_proves(proof, upper=0.75 * 0.3 + 0.25 * 0.4)


def test_specific_lies_are_named():
    smooth = example("smooth_ce")
    steep = smooth.height.copy()
    steep[1] = steep[0] + 2 * (smooth.knot[1] - smooth.knot[0]) + 1e-6
    with pytest.raises(caldist.errors.CertificateError, match="Lipschitz"):
        dataclasses.replace(smooth, height=steep).verify()
    with pytest.raises(caldist.errors.CertificateError, match=r"\[-1, 1\]"):
        dataclasses.replace(smooth, height=smooth.height + 2).verify()
    bumpy = smooth.curve.copy()
    bumpy[5] += 1.0
    with pytest.raises(caldist.errors.CertificateError, match="monotone"):
        dataclasses.replace(smooth, curve=bumpy).verify()
    lower = example("lower_distance")
    with pytest.raises(caldist.errors.CertificateError, match="violate"):
        dataclasses.replace(lower, potential0=lower.potential0 + 0.1).verify()
    with pytest.raises(caldist.errors.CertificateError, match="totals"):
        dataclasses.replace(lower, calibrated_mass=lower.calibrated_mass * 1.01).verify()
    upper = example("upper_distance")
    with pytest.raises(caldist.errors.CertificateError, match="frequency"):
        dataclasses.replace(upper, recalibrated=upper.recalibrated + 1e-6).verify()


def test_a_violation_between_nodes_is_noticed():
    """With nodes 0 and 1 only, r0 = u - ½ and r1 = ½ - u hold at both nodes with room, and peak
    at 0 between them if shifted."""
    joint = caldist.Joint.from_arrays([0, 1], [0.3, 0.6])
    for shift, valid in ((0.0, True), (0.01, False)):
        r0 = np.array([-0.5, 0.5]) + shift - 0.0
        r1 = np.array([0.5, -0.5]) + shift
        # (1-u) r0 + u r1 = (u - ½)(1 - 2u) + shift = -2 (u - ½)² + shift
        bound = 0.5 * (0.3 - 0.5 + shift) + 0.5 * (0.5 - 0.6 + shift)
        proof = LowerCertificate.of(
            joint,
            value=0.3,
            lower=bound,
            upper=0.3 / 2 + 0.4 / 2,
            node=np.array([0.0, 1.0]),
            potential0=r0,
            potential1=r1,
            calibrated=np.array([0.0, 1.0]),
            calibrated_mass=np.array([0.5, 0.5]),
        )
        if valid:
            proof.verify()
        else:
            with pytest.raises(caldist.errors.CertificateError, match="violate"):
                proof.verify()


@given(samples(), st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_the_witness_is_lipschitz_anywhere_and_attains_the_value(sample, points):
    y, p, weight = sample
    proof = caldist.certify(y, p, measure="smooth_ce", sample_weight=weight)
    assert isinstance(proof, SmoothCertificate)
    at = np.sort(points)
    w = proof.witness(at)
    assert (np.abs(np.diff(w)) <= np.diff(at) + 1e-12).all()
    assert (np.abs(w) <= 1 + 1e-12).all()
    attained = float(np.average((y - p) * proof.witness(p), weights=weight))
    assert attained == pytest.approx(caldist.smooth_ce(y, p, sample_weight=weight), abs=1e-12)


@given(samples())
def test_the_coupling_moves_the_data_to_a_calibrated_distribution(sample):
    y, p, weight = sample
    proof = caldist.certify(y, p, tol=TOL, sample_weight=weight)
    assert isinstance(proof, LowerCertificate)
    moves = proof.coupling()
    assert (moves.mass > 0).all()
    assert moves.mass.sum() == pytest.approx(1)
    v, g0, g1 = oracles.distribution(y, p, weight)
    for label, mass in ((0, g0), (1, g1)):
        for place, expected in zip(v, mass, strict=True):
            here = moves.mass[(moves.label == label) & (moves.source == place)].sum()
            assert here == pytest.approx(expected, abs=1e-9)
    for u in np.unique(moves.target):
        there = moves.target == u
        ones = moves.mass[there & (moves.label == 1)].sum()
        assert ones == pytest.approx(u * moves.mass[there].sum(), abs=1e-9)
    cost = float(moves.mass @ np.abs(moves.source - moves.target))
    assert cost == pytest.approx(proof.upper, abs=1e-9)


def test_the_map_of_the_upper_distance_is_calibrated():
    y, p = family("beta3", 200, np.random.default_rng(2))
    proof = caldist.certify(y, p, measure="upper_distance", tol=TOL)
    assert isinstance(proof, UpperCertificate)
    assert not proof.exact
    recalibrated = proof.recalibrated[proof.group[np.searchsorted(proof.joint.prediction, p)]]
    assert caldist.ece(y, recalibrated) == pytest.approx(0, abs=1e-12)
    assert np.abs(p - recalibrated).mean() == pytest.approx(proof.value)


def test_certificates_cannot_be_changed():
    proof = example("smooth_ce")
    with pytest.raises(dataclasses.FrozenInstanceError):
        proof.value = 0.0


def certificates(folder):
    """Write a valid certificate of every kind, and return the files by measure."""
    proofs = [example(measure) for measure in MEASURES]
    proofs.append(caldist.multiclass.certify([0, 2, 2, 1], np.full((4, 3), 1 / 3)))
    for proof in proofs:
        proof.save(folder / f"{proof.measure}.npz")
    kinds = {kind.measure for kind in Certificate._kinds()}
    assert {proof.measure for proof in proofs} == kinds
    return {proof.measure: folder / f"{proof.measure}.npz" for proof in proofs}


def test_the_verifier_runs_without_kernels_measures_and_sorting(tmp_path):
    code = """
        import sys
        for name in ("measures", "kernels", "_compiled", "data.sorting"):
            sys.modules[f"caldist.{name}"] = None
        from caldist.certificates import Certificate
        for file in sys.argv[1:]:
            print(repr(Certificate.load(file).verify()))
    """
    files = certificates(tmp_path)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *files.values()],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    for measure, line in zip(files, done.stdout.splitlines(), strict=True):
        assert f"Certificate: {measure} is" in line
        assert len(line) <= 300


def test_the_verifier_imports_no_solver():
    folder = Path(_base.__file__).parent
    anywhere = {
        "caldist._util.numbers",  # how they are read, not how they are verified
        "caldist._util.cached",  # of the joint
        "caldist._util.results",
        "caldist._util.types",
        "caldist.data.joint",
        "caldist.errors",
        "abc",
        "dataclasses",
        "os",
        "typing",
        "__future__",
    }
    for path in folder.glob("*.py"):
        files = {"caldist.data.files", "caldist._util.invalid", "collections.abc"}
        allowed = anywhere | (files if path.name == "_files.py" else set())
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module]
            for name in names:
                own = name.partition(".")[0] == "numpy" or name.startswith("caldist.certificates")
                assert own or name in allowed, (path, name)


@pytest.mark.parametrize(
    "options",
    [{"measure": "ece"}, {"tol": 0}, {"tol": "small"}, {"tol": float("nan")}, {"progress": 1}],
)
def test_bad_options(options):
    with pytest.raises((TypeError, ValueError)) as caught:
        caldist.certify([0, 1], [0.2, 0.7], **options)
    assert next(iter(options)) in str(caught.value)


def test_many_small_violations_add_up():
    """Steps that are each too long by less than any tolerance must not buy a better bound."""
    joint = caldist.Joint.from_masses([0.5], [0.1], [0.9])  # its lower distance is 0.4
    node = np.linspace(0, 1, 100_001)
    rise = np.concatenate(([0.0], np.cumsum(np.diff(node) + 0.99e-10)))
    proof = LowerCertificate.of(
        joint,
        value=0.45,
        lower=0.1 * -rise[50_000] + 0.9 * (rise[-1] - rise[50_000]),
        upper=0.5,
        node=node,
        potential0=-rise,
        potential1=rise[-1] - rise,
        calibrated=np.array([0.0, 1.0]),
        calibrated_mass=np.array([0.1, 0.9]),
    )
    assert proof.lower > 0.4 + 1e-6
    with pytest.raises(caldist.errors.CertificateError, match="Lipschitz"):
        proof.verify()


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("other", [None, "0.1", [0.1], 1j, True, {}, "abc", np.array([0.1 + 1j])])
def test_fields_of_the_wrong_type_are_certificate_errors(measure, other):
    proof = example(measure)
    for name in fields(measure):
        if (name == "exact" and other is True) or (name == "n_rows" and other is None):
            continue
        with pytest.raises(caldist.errors.CertificateError):
            dataclasses.replace(proof, **{name: other}).verify()


@pytest.mark.parametrize("mass", [1.7e308, np.inf])
def test_a_total_that_overflows_proves_nothing(mass):
    """Divided by an infinite total every mass is 0, and so is whatever it costs to move them."""
    joint = caldist.Joint.from_masses([0.2, 0.9], [1.0, 1.0], [1.0, 1.0])
    proof = LowerCertificate.of(
        joint,
        value=0.0,
        lower=0.0,
        upper=0.0,
        node=np.array([0.0, 1.0]),
        potential0=np.zeros(2),
        potential1=np.zeros(2),
        calibrated=np.array([0.0, 1.0]),
        calibrated_mass=np.zeros(2),
    )
    with pytest.raises(caldist.errors.CertificateError):
        proof.verify()
    masses = np.full(2, mass)
    with pytest.raises(ValueError, match="finite"):
        caldist.Joint(joint.prediction, masses, masses)
    forged = dataclasses.replace(proof, mass0=masses, mass1=masses)
    with pytest.raises(caldist.errors.CertificateError, match="finite"):
        forged.verify()


@pytest.mark.parametrize("name", ["mass0", "mass1"])
def test_a_negative_mass_is_refused(name):
    proof = example("smooth_ce")
    mass = getattr(proof, name) - 2.0  # which no joint would take
    with pytest.raises(CertificateError, match="negative masses"):
        dataclasses.replace(proof, **{name: mass}).verify()


@pytest.mark.parametrize("node", [[0.0, 0.5], [0.5, 1.0]])
def test_nodes_that_leave_out_an_end_are_refused(node):
    """Beyond its nodes a function stays as it is, where no constraint is checked."""
    proof = dataclasses.replace(
        example("lower_distance"),
        node=np.array(node),
        potential0=np.full(2, 0.5 - node[1]) / 2,
        potential1=np.full(2, 0.5 - node[0]) / -2,
    )
    with pytest.raises(CertificateError, match="reach from 0 to 1"):
        proof.verify()


@given(st.data())
def test_numbers_that_overflow_are_refused_without_a_warning(data):
    """A proof may come from anyone; a warning would be an error here."""
    extreme = st.sampled_from([5e-324, 1e-9, 1e154, -1e300, 1.7e308, -1.7e308])
    measure = data.draw(st.sampled_from(MEASURES))
    proof = example(measure)
    arrays = [name for name in fields(measure) if type(getattr(proof, name)) is np.ndarray]
    name = data.draw(st.sampled_from([name for name in arrays if name != "group"]))
    other = getattr(proof, name).copy()
    places = st.integers(0, other.size - 1)
    for at in data.draw(st.lists(places, min_size=1, max_size=3, unique=True)):
        other[at] += data.draw(extreme)
    try:
        dataclasses.replace(proof, **{name: other}).verify()
    except caldist.errors.CertificateError:
        return
    np.testing.assert_allclose(other, getattr(proof, name), rtol=0, atol=1e-8)


def test_nodes_too_close_to_compute_with_are_refused():
    """Over a step of 5e-324 a rise within the tolerance has a slope beyond all numbers."""
    rise = np.array([0.0, 1e-10, 1e-10])
    proof = dataclasses.replace(
        example("lower_distance"),
        node=np.array([0.0, 5e-324, 1.0]),
        potential0=rise - 1e-10,
        potential1=-rise,
    )
    with pytest.raises(caldist.errors.CertificateError, match="too short"):
        proof.verify()


def test_a_joint_without_mass_is_refused():
    with pytest.raises(ValueError, match="positive"):
        caldist.Joint(np.array([0.5]), np.zeros(1), np.zeros(1))


def test_proof_arrays_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        example("smooth_ce").height[0] = 1.0


def test_the_tolerance_of_the_verifier_is_what_its_docstring_says():
    assert _base.AGREEMENT == _base.SLACK == 1e-9
    assert "at most 1e-9" in " ".join(Certificate.verify.__doc__.split())
    proof = caldist.certify([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    dataclasses.replace(proof, lower=proof.lower - 0.9e-9).verify()
    with pytest.raises(CertificateError):
        dataclasses.replace(proof, lower=proof.lower - 1.1e-9).verify()
