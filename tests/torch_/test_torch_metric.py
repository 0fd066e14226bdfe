"""CalibrationDistance: the same bits whatever the batches and processes."""

import os
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

import caldist
from caldist.measures.registry import shown_in
from torch_support import DEVICES, torch

from caldist.torch import _sums  # isort: skip -- after the check that torch is there


@pytest.fixture
def metric_class():
    pytest.importorskip("torchmetrics")
    from caldist.torch import CalibrationDistance

    return CalibrationDistance


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    preds = torch.tensor(np.r_[rng.random(3000), 0.0, 1.0, 0.5, 0.5], dtype=torch.float32)
    return preds, (torch.tensor(rng.random(3004)) < preds).long()


def whole(rows, bits=16):
    preds, target = (part.numpy() for part in rows)
    return caldist.Joint.from_arrays(target, preds.astype(np.float64)).coarsen(bits)


@pytest.mark.parametrize("size", [1, 7, 1000, 5000])
def test_batches_do_not_matter(metric_class, rows, size):
    some = tuple(part[:300] for part in rows) if size == 1 else rows
    metric = metric_class()
    for batch in zip(*(part.split(size) for part in some), strict=True):
        metric.update(*batch)
    assert metric.joint() == whole(some)


@pytest.mark.skipif("cuda" not in DEVICES, reason="needs a GPU")
@pytest.mark.parametrize(
    ("kind", "dtype", "bits"),
    [
        *((kind, torch.float32, 16) for kind in ("spread", "constant", "tenths", "half", "few")),
        *(("sure", torch.float32, bits) for bits in (1, 16, 20)),
        ("tiny", torch.float64, 16),
        ("sure", torch.bfloat16, 16),
    ],
)
def test_a_gpu_counts_the_same(metric_class, kind, dtype, bits):
    """Bad values leave no trace, and the bits are those of the CPU."""
    rng = np.random.default_rng(5)
    p = rng.random(3 if kind == "few" else 50_003)
    p = {
        "sure": 1 / (1 + np.exp(-20 * np.log(p / (1 - p)))),
        "constant": np.full_like(p, 0.3),
        "tenths": np.round(p, 1),
        "half": np.where(rng.random(p.size) < 0.5, 0.5, p),
        "tiny": p**40,
    }.get(kind, p)
    preds, target = torch.tensor(p, dtype=dtype), torch.tensor(rng.random(p.size) < p)
    metric, reference = metric_class(bits=bits).to("cuda"), metric_class(bits=bits)
    on_gpu = preds.to("cuda"), target.to("cuda")
    for _ in range(2):
        reference.update(preds, target)
        metric.update(*on_gpu)
        assert torch.equal(metric.cells.cpu(), reference.cells)
        bad = on_gpu[0].index_fill(0, torch.tensor(2, device="cuda"), np.nan)
        with pytest.raises(ValueError, match=r"preds\[2\] is nan"):
            metric.update(bad, on_gpu[1])
        assert torch.equal(metric.cells.cpu(), reference.cells)


def test_copies_of_the_cells_do_not_matter(metric_class, rows, monkeypatch):
    """A GPU's rows take turns at several; and batches of more rows than cells go another way."""
    monkeypatch.setattr(_sums, "copies_for", lambda *_: 16)
    metric = metric_class(bits=6)
    for size in (3004, 100):
        for batch in zip(*(part.split(size) for part in rows), strict=True):
            metric.update(*batch)
        assert metric.joint() == whole(rows, 6)
        metric.reset()


@pytest.mark.slow
def test_every_number_of_bits(metric_class):
    preds = [0.0, -0.0, 5e-324, 1e-300, 2**-24, 2**-55, 0.1, 1 / 3, 1 - 2**-53, 1.0]
    preds = torch.tensor(preds, dtype=torch.float64)
    target = torch.tensor([0, 1, 1, 0, 1, 0, 1, 1, 0, 1])
    for bits in (1, 16, 24):
        metric = metric_class(bits=bits)
        metric.update(preds, target)
        assert metric.joint() == whole((preds, target), bits)
        grid, expected = metric.joint().grid, whole((preds, target), bits).grid
        assert (grid.square0 == expected.square0).all()


def test_values_and_certain_bounds(metric_class, rows):
    metric = metric_class(measures=[measure.name for measure in shown_in("evaluate")], bits=10)
    metric.update(*rows)
    found = metric.compute()
    preds, target = (part.numpy() for part in rows)
    for name, evaluation in caldist.evaluate(whole(rows, 10)).items():
        assert found[name].item() == evaluation.value
        assert (f"{name}_lower" in found) == (evaluation.lower is not None)
    for name in ("smooth_ce", "kernel_ce", "lower_distance", "brier_score"):
        exact = getattr(caldist.measures, name)(target, preds.astype(np.float64))
        assert found[f"{name}_lower"] <= exact <= found[f"{name}_upper"]


def test_calling_it_returns_the_batch_and_keeps_the_sum(metric_class, rows):
    metric = metric_class()
    metric.update(*(part[:1000] for part in rows))
    batch = tuple(part[1000:] for part in rows)
    expected = caldist.evaluate(whole(batch), measures=["smooth_ce"])["smooth_ce"].value
    assert metric(*batch)["smooth_ce"].item() == expected
    assert metric.joint() == whole(rows)
    metric.reset()
    assert metric.joint().n_rows == 0


@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn],
    ids=str,
)
def test_every_precision_is_taken_as_it_is(metric_class, rows, dtype):
    preds, target = rows[0].to(dtype), rows[1]
    metric = metric_class()
    metric.update(preds, target.bool())
    assert metric.joint() == whole((preds.double(), target))


def test_a_gradient_is_left_aside(metric_class, rows):
    preds = rows[0].clone().requires_grad_()
    metric = metric_class()
    metric.update(preds * 1, rows[1])
    assert metric.joint() == whole(rows)
    assert not metric.cells.requires_grad


def test_shapes_are_flattened(metric_class, rows):
    metric = metric_class()
    metric.update(rows[0][:3000].reshape(3, 10, 100), rows[1][:3000].reshape(3, 10, 100))
    assert metric.joint() == whole(tuple(part[:3000] for part in rows))


@pytest.mark.parametrize("from_logits", [False, True])
def test_top_label(metric_class, from_logits):
    rng = np.random.default_rng(1)
    logits = torch.tensor(rng.normal(size=(500, 4)))
    probability = logits.softmax(dim=1)
    target = torch.tensor(rng.integers(0, 4, 500))
    metric = metric_class(reduction="top_label", from_logits=from_logits)
    metric.update(logits if from_logits else probability, target)
    label, confidence = caldist.multiclass.top_label(target.numpy(), probability.numpy())
    assert metric.joint() == caldist.Joint.from_arrays(label, confidence).coarsen(16)


@pytest.mark.parametrize(
    ("preds", "target", "error", "message"),
    [
        ([1.0000002], [1], ValueError, r"preds\[0\] is 1.0000002"),
        ([0.5, float("nan")], [0, 1], ValueError, r"preds\[1\] is nan"),
        ([-3.0, 2.0], [0, 1], ValueError, r"preds\[0\] is -3\.0: .*logits"),
        ([0.5], [2], ValueError, r"target\[0\] is 2"),
        ([0.0, 1.0], [0.25, 0.5], ValueError, r"look swapped.* The order is \(preds, target\)"),
        ([0.5, 0.5], [1], ValueError, r"preds has shape \(2,\) and target \(1,\)"),
        ([[0.5, 0.5]], [1], ValueError, "reduction='top_label'"),
        ([], [], ValueError, "preds is empty"),
    ],
)
def test_bad_values_raise_and_change_nothing(metric_class, rows, preds, target, error, message):
    metric = metric_class()
    metric.update(*rows)
    with pytest.raises(error, match=message):
        metric.update(torch.tensor(preds), torch.tensor(target))
    assert metric.joint() == whole(rows)


def test_a_call_that_fails_loses_no_rows(metric_class, rows):
    metric = metric_class()
    metric.update(*rows)
    with pytest.raises(ValueError, match=r"preds\[0\] is 2"):
        metric(torch.tensor([2.0]), torch.tensor([1]))
    assert metric.joint() == whole(rows)


def test_lists_and_complex_numbers_are_refused(metric_class):
    with pytest.raises(TypeError, match="preds is of type list"):
        metric_class().update([0.5], [1])
    with pytest.raises(TypeError, match=r"preds has dtype torch\.complex64"):
        metric_class().update(torch.tensor([0.5 + 0j]), torch.tensor([1]))


@pytest.mark.filterwarnings("ignore:The ``compute`` method")  # of torchmetrics, in its own words
def test_without_rows(metric_class):
    metric = metric_class()
    assert metric.joint().n_rows == 0
    with pytest.raises(ValueError, match=r"no rows\. Add some with update\(preds, target\)"):
        metric.compute()


def test_the_state_moves_and_stays_whole_numbers(metric_class, rows):
    metric = metric_class()
    metric.update(*rows)
    for change in ("half", "double"):
        getattr(metric, change)()
        assert metric.joint() == whole(rows)
    assert torch.nn.ModuleList([metric]).to("meta")[0].cells.device.type == "meta"
    assert metric.device.type == "meta"


def test_a_copy_counts_by_itself(metric_class, rows):
    metric = metric_class()
    metric.update(*rows)
    copy = deepcopy(metric)
    copy.update(*rows)
    assert metric.joint() == whole(rows)
    assert copy.joint().n_rows == 2 * whole(rows).n_rows


def test_a_collection_of_torchmetrics(rows):
    torchmetrics = pytest.importorskip("torchmetrics")
    from caldist.torch import CalibrationDistance

    both = [["smooth_ce"], ["ece", "brier_score"]]
    collection = torchmetrics.MetricCollection(
        {str(at): CalibrationDistance(measures=names) for at, names in enumerate(both)}
    )
    for batch in zip(*(part.split(1000) for part in rows), strict=True):
        collection.update(*batch)
    found = collection.compute()
    expected = caldist.evaluate(whole(rows), measures=[*both[0], *both[1]])
    assert {name: found[name].item() for name in expected} == {
        name: evaluation.value for name, evaluation in expected.items()
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": ["smce"]}, r"measures\[0\] is 'smce'"),
        ({"reduction": "top_label"}, "reduction is .*both for several classes"),
        ({"from_logits": True}, "reduction is .*both for several classes"),
        ({"reduction": "classwise", "from_logits": True}, "reduction is 'classwise'"),
        ({"bits": 0}, "bits is 0"),
    ],
)
def test_bad_options(metric_class, options, message):
    with pytest.raises(ValueError, match=message):
        metric_class(**options)


WORKER = """
import sys
import numpy as np, torch
from torch import distributed
rank, folder = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
from caldist.torch import CalibrationDistance
rng = np.random.default_rng(0)
preds = torch.tensor(rng.random(2000), dtype=torch.float32)
target = (torch.tensor(rng.random(2000)) < preds).long()
metric = CalibrationDistance(measures=["smooth_ce", "lower_distance", "ece"])
shares = (slice(0, 700), slice(700, 2000))[rank]
for batch in zip(preds[shares].split(64), target[shares].split(64)):
    metric.update(*batch)
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line, self.metric = torch.nn.Linear(1, 1), metric
    def forward(self, x):
        return self.line(x)
# It overwrites buffers with those of process 0, so that the counts must not be buffers.
torch.nn.parallel.DistributedDataParallel(Model())(torch.zeros(3, 1))
try:
    metric(preds + 2, target)
except ValueError:
    pass  # and the processes must still find each other
values = {name: value.item().hex() for name, value in metric.compute().items()}
from caldist import Joint, evaluate
def joint(part):
    return Joint.from_arrays(target[part].numpy(), preds[part].double().numpy()).coarsen(16)
expected = evaluate(joint(slice(None)))
assert values["smooth_ce"] == expected["smooth_ce"].value.hex(), (values, expected)
assert values["ece"] == expected["ece"].value.hex()
assert values["lower_distance_upper"] == expected["lower_distance"].upper.hex()
assert metric.joint() == joint(shares)  # by itself it is of this process
with metric.sync_context():
    assert metric.joint() == joint(slice(None))
assert metric.joint() == joint(shares)
batch = slice(10 * rank, 10 * rank + 10)  # and so are the values of a batch
assert metric(preds[batch], target[batch])["ece"] == evaluate(joint(batch))["ece"].value
assert metric.joint().n_rows == joint(shares).n_rows + 10
# The metric of several classes.
from caldist.torch import MulticlassCalibrationDistance
logits, target = torch.tensor(rng.normal(size=(600, 3))), torch.tensor(rng.integers(0, 3, 600))
whole, metric = (MulticlassCalibrationDistance(3, from_logits=True) for _ in range(2))
shares = (slice(0, 200), slice(200, 600))[rank]
for batch in zip(logits[shares].split(64), target[shares].split(64)):
    metric.update(*batch)
found = metric.compute()
own = metric.joints()
assert own[0].n_rows == logits[shares].shape[0]
with metric.sync_context():
    together = metric.joints()
assert metric.joints() == own
whole.update(logits, target)
assert whole.joints() == together
assert found == whole(logits, target)  # which is of this process
distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_two_processes_give_the_bits_of_one(tmp_path):
    pytest.importorskip("torchmetrics")
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    environment = os.environ | {"PYTHONPATH": str(Path(caldist.__file__).parents[1])}
    workers = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", str(script), str(rank), str(tmp_path)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    for worker in workers:
        _, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors


@pytest.mark.slow
def test_importing_the_losses_does_not_import_torchmetrics():
    code = "import sys, caldist.torch; assert 'torchmetrics' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_without_torchmetrics_the_losses_work_and_a_metric_says_what_to_install():
    code = """
import sys; sys.modules["torchmetrics"] = None
import torch
import caldist.torch
caldist.torch.kernel_ce_loss(torch.tensor([0.5]), torch.tensor([1]))
try:
    caldist.torch.CalibrationDistance
except ImportError as error:
    assert "torchmetrics" in str(error) and 'pip install "caldist[torch]"' in str(error), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)
