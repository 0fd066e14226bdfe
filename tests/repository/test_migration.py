"""docs/migration.md: what other packages return, next to ours, where they are installed."""

import numpy as np
import pytest

import caldist

# Their imports and calls warn about things of their own.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    truth = rng.random(1500)
    y_prob = truth**2 / (truth**2 + (1 - truth) ** 2)
    return (rng.random(1500) < truth).astype(int), y_prob


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(1)
    return rng.integers(0, 3, 500), rng.dirichlet([1, 1, 1], 500)


# 0.3 is an edge of ten bins; as a float it is below 0.30000000000000004, the edge of linspace.
ON_EDGES = np.array([0.25, 0.3] * 50)
EDGE_LABELS = np.array([1, 0] * 50)


def test_netcal(rows, classes):
    metrics = pytest.importorskip("netcal.metrics")
    y, p = rows
    assert metrics.ECE(bins=10).measure(p, y) == pytest.approx(caldist.binned_ece(y, p, n_bins=10))
    y, p = classes
    ours = caldist.binned_ece(*caldist.multiclass.top_label(y, p), n_bins=15)
    assert metrics.ECE(bins=15).measure(p, y) == pytest.approx(ours)
    assert metrics.ECE(bins=10).measure(ON_EDGES, EDGE_LABELS) == pytest.approx(0.225)
    assert caldist.binned_ece(EDGE_LABELS, ON_EDGES, n_bins=10) == pytest.approx(0.525)
    assert isinstance(float(metrics.ECE(bins=10).measure(rows[1], rows[0] * 2)), float)
    with pytest.raises(ValueError, match="label"):
        caldist.binned_ece(rows[0] * 2, rows[1])


def test_torchmetrics(rows, classes):
    torch = pytest.importorskip("torch")
    classification = pytest.importorskip("torchmetrics.classification")

    def theirs(metric, y, p):
        metric.update(torch.tensor(p), torch.tensor(y))
        return float(metric.compute())

    y, p = rows
    metric = classification.BinaryCalibrationError(n_bins=15, norm="l1")
    assert theirs(metric, y, p) == pytest.approx(caldist.binned_ece(y, p, n_bins=15), rel=1e-5)
    y, p = classes
    metric = classification.MulticlassCalibrationError(num_classes=3, n_bins=15, norm="l1")
    ours = caldist.binned_ece(*caldist.multiclass.top_label(y, p), n_bins=15)
    assert theirs(metric, y, p) == pytest.approx(ours, rel=1e-5)
    metric = classification.BinaryCalibrationError(n_bins=10, norm="l1")
    assert theirs(metric, EDGE_LABELS, ON_EDGES) == pytest.approx(0.225)


def test_torchmetrics_applies_a_sigmoid_where_we_refuse(rows):
    torch = pytest.importorskip("torch")
    classification = pytest.importorskip("torchmetrics.classification")
    y, p = rows
    slightly_above = np.append(p, 1.0000002)
    metric = classification.BinaryCalibrationError(n_bins=15, norm="l1")
    metric.update(torch.tensor(slightly_above), torch.tensor(np.append(y, 1)))
    assert abs(float(metric.compute()) - caldist.binned_ece(y, p, n_bins=15)) > 0.02
    with pytest.raises(ValueError, match=r"y_prob\[1500\] is 1.0000002"):
        caldist.binned_ece(np.append(y, 1), slightly_above)


def test_relplot(rows):
    relplot = pytest.importorskip("relplot")
    y, p = rows
    theirs = relplot.smECE(p, y.astype(float))
    assert theirs == pytest.approx(caldist.measures.kernel_smoothed_ece(y, p), abs=0.005)


def test_uncertainty_calibration(rows):
    calibration = pytest.importorskip("calibration")
    y, p = rows
    ours = {
        "uniform": caldist.binned_ece(y, p, n_bins=15),
        "quantile": caldist.binned_ece(y, p, n_bins=15, strategy="quantile"),
        "debiased": caldist.measures.debiased_ece(y, p),
    }
    assert calibration.get_ece(p, y, num_bins=15) == pytest.approx(ours["uniform"])
    assert calibration.get_ece_em(p, y, num_bins=15) == pytest.approx(ours["quantile"])
    assert calibration.get_calibration_error(p, y) == pytest.approx(ours["debiased"])


def test_scikit_learn(rows):
    metrics = pytest.importorskip("sklearn.metrics")
    curves = pytest.importorskip("sklearn.calibration")
    y, p = rows
    assert metrics.brier_score_loss(y, p) == pytest.approx(caldist.brier_score(y, p))
    assert metrics.log_loss(y, p) == pytest.approx(caldist.log_loss(y, p))
    assert metrics.log_loss([1, 0], [0.0, 0.5]) < 40
    assert caldist.log_loss([1, 0], [0.0, 0.5]) == np.inf
    frequency, mean = curves.calibration_curve(y, p, n_bins=10)
    share = np.bincount(np.minimum((p * 10).astype(int), 9)) / p.size
    assert share @ np.abs(frequency - mean) == pytest.approx(caldist.binned_ece(y, p, n_bins=10))
