"""The study of penalties in training, reduced: its rows, networks, arithmetic and files."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import caldist

ROOT = Path(__file__).resolve().parents[2]

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")


@pytest.fixture
def studies(monkeypatch):
    """Return a function that imports a module of the studies."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    return lambda name: import_module(f"studies.{name}")


@pytest.fixture(autouse=True)
def one_thread():
    """Let small products be made by one thread, as the study does."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def training(studies):
    return studies("training")


@pytest.fixture
def networks(studies):
    return studies("networks")


# -- rows ----------------------------------------------------------------------------------------


def test_rows_of_a_law_are_what_it_says(training):
    task = training.TASKS["linear"]
    setting = replace(training.SETTINGS["many rows"], rows=(4000, 2000))
    sample = training.draw(task, setting, training.QUICK)
    x, y = sample.train
    assert x.shape == (2, 4000, 20)
    rate = task.rate(x.astype(float))
    assert np.abs(np.mean((y - rate) * (rate > 0.5))) < 4 * 0.5 / np.sqrt(y.size)
    test = sample.tests[""]
    assert test.mass1 == pytest.approx(task.rate(test.x.astype(float)), abs=1e-6)
    assert test.mass0 + test.mass1 == pytest.approx(1)
    assert not np.array_equal(x[0], x[1])


@pytest.mark.parametrize("name", ["curved", "digits"])
def test_noise_flips_a_fifth_of_the_labels_and_nothing_else(training, name):
    task = training.TASKS[name]
    # Streams bear the name of the setting.
    plain, noisy, everywhere = (
        training.draw(task, replace(training.SETTINGS[like], name="one"), training.QUICK)
        for like in ("long training", "noisy training", "label noise")
    )
    for sample in (noisy, everywhere):
        assert np.array_equal(sample.train[0], plain.train[0])
        assert (sample.train[1] != plain.train[1]).mean() == pytest.approx(0.2, abs=0.04)
    assert np.array_equal(noisy.train[1], everywhere.train[1])
    assert np.array_equal(noisy.held[1], plain.held[1])
    assert (everywhere.held[1] != plain.held[1]).mean() == pytest.approx(0.2, abs=0.08)
    clean, flipped = plain.tests[""].mass1, everywhere.tests[""].mass1
    assert flipped == pytest.approx(0.2 + 0.6 * clean)
    assert np.array_equal(noisy.tests[""].mass1, clean)


@pytest.mark.parametrize("name", ["rare", "breast cancer"])
def test_shifts_move_features_or_drop_positives(training, name):
    sample = training.draw(training.TASKS[name], training.SETTINGS["standard"], training.QUICK)
    plain, moved, thinned = (sample.tests[name] for name in ("", *training.SHIFTS))
    assert moved.x.std() > 1.1 * plain.x.std()
    assert np.array_equal(thinned.x, plain.x)
    assert thinned.mass1 == pytest.approx(plain.mass1 / 4)
    assert np.array_equal(thinned.mass0, plain.mass0)
    for label in sample.new["prior shift"][1]:
        dropped = np.isnan(label).sum()
        assert dropped / (dropped + (label == 1).sum()) > 0.4
    assert not np.isnan(sample.new["covariate shift"][1]).any()


def test_rows_of_data_are_used_once(training):
    setting = training.SETTINGS["standard"]
    drawn = training._draw_data(training.TASKS["breast cancer"], setting, training.QUICK, 0)
    parts = [drawn[name][0] for name in ("train", "held", "prior shift", "test")]
    rows = np.concatenate(parts)
    assert len(rows) == 569
    assert len(np.unique(rows, axis=0)) == len(
        np.unique(training._data("load_breast_cancer")[0], axis=0)
    )


# -- networks ------------------------------------------------------------------------------------


def trained(networks, *ways, held=None, seeds=(3, 4), epochs=3):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 60, 3)).astype(np.float32)
    y = (rng.random((2, 60)) < 0.5).astype(np.float32)
    schedule = networks.Schedule(epochs, 20, hidden=8)
    found = networks.train(seeds, ways, (x, y), held and (x[:, :30], y[:, :30]), schedule, "cpu")
    return found, x, y


def one_by_one(networks, way, at, epochs=3):
    """Train a network of one seed as one usually does, with ``torch.nn`` and the public losses."""
    _, x, y = trained(networks, networks.Way("none"), epochs=1)
    first = networks.Networks.drawn((3, 4), 1, 3, 8)
    layers = []
    for weight, bias in first.layers:
        layer = torch.nn.Linear(*weight.shape[2:])
        layer.weight.data, layer.bias.data = weight[at, 0].T.clone(), bias[at, 0, 0].clone()
        layers.append(layer)
    network = torch.nn.Sequential(
        layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2], torch.nn.Flatten(0)
    )
    decaying = [layer.weight for layer in layers]
    optimiser = torch.optim.AdamW(
        [
            {"params": decaying, "weight_decay": way.decay},
            {"params": [layer.bias for layer in layers], "weight_decay": 0.0},
        ],
        lr=networks.LEARNING_RATE,
    )
    shuffle = torch.Generator().manual_seed(3)
    from caldist.torch import kernel_ce_loss, smooth_ce_loss

    log_loss = torch.nn.BCEWithLogitsLoss()
    for _ in range(epochs):
        order = torch.rand((2, 60), generator=shuffle).argsort(-1)[at]
        for rows in order.split(20):
            optimiser.zero_grad()
            logit, label = network(torch.tensor(x[at])[rows]), torch.tensor(y[at])[rows]
            p = torch.sigmoid(logit)
            loss = log_loss(logit, label * (1 - way.smoothing) + 0.5 * way.smoothing)
            loss = loss + way.kernel * kernel_ce_loss(p, label)
            loss = loss + way.smooth * smooth_ce_loss(p, label)
            loss.backward()
            optimiser.step()
    with torch.no_grad():
        return torch.sigmoid(network(torch.tensor(x[at])).double()).numpy()


def test_networks_trained_at_once_are_those_trained_one_by_one(networks):
    ways = (
        networks.Way("none"),
        networks.Way("kernel penalty", kernel=30.0),
        networks.Way("smooth penalty", smooth=3.0),
        networks.Way("label smoothing", smoothing=0.2),
        networks.Way("decay and penalty", decay=10.0, smooth=1.0),
    )
    found, x, _ = trained(networks, *ways)
    p = found["last"].predict(x)
    for way, of_way in zip(ways, p.transpose(1, 0, 2), strict=True):
        for at, ours in enumerate(of_way):
            assert ours == pytest.approx(one_by_one(networks, way, at), abs=1e-5), (way, at)
    assert np.abs(p[:, 1:] - p[:, :1]).max(axis=-1).min() > 1e-4


def test_ways_do_not_disturb_each_other(networks):
    none, kernel = networks.Way("none"), networks.Way("kernel penalty", kernel=30.0)
    held_out = networks.Way("held-out penalty", held_out=30.0)
    together, x, _ = trained(networks, none, kernel, held_out, held=True)
    for at, way in enumerate((none, kernel, held_out)):
        alone, _, _ = trained(networks, way, held=True)
        for stop in ("last", "early"):
            expected = alone[stop].predict(x)[:, 0]
            assert together[stop].predict(x)[:, at] == pytest.approx(expected, abs=1e-5)


def test_early_is_the_epoch_of_least_held_out_log_loss(networks):
    way = networks.Way("none")
    held_losses, predicted = [], []
    for epochs in range(1, 7):
        found, x, y = trained(networks, way, held=True, epochs=epochs)
        p = found["last"].predict(x)[:, 0]
        predicted.append(p)
        right = np.where(y == 1, p, 1 - p)[:, :30]
        held_losses.append(-np.log(right).mean(axis=1))
    best = np.argmin(held_losses, axis=0)
    early = found["early"].predict(x)[:, 0]
    for seed in (0, 1):
        assert early[seed] == pytest.approx(predicted[best[seed]][seed], abs=1e-6)
    assert "early" not in trained(networks, way)[0]


# -- results -------------------------------------------------------------------------------------


def test_quantities_against_scikit_learn(training):
    from sklearn import metrics

    rng = np.random.default_rng(0)
    p, y = rng.random(200).round(2).clip(0.01, 0.99), rng.integers(0, 2, 200)
    found = training.judge(p, 1.0 - y, 1.0 * y)
    expected = (
        metrics.log_loss(y, p), metrics.brier_score_loss(y, p), caldist.smooth_ce(y, p),
        metrics.roc_auc_score(y, p),
    )  # fmt: skip
    assert found == pytest.approx(expected)


def test_strengths_are_chosen_by_held_out_log_loss(training, networks):
    ways = [networks.Way("a"), networks.Way("b", kernel=1.0), networks.Way("b", kernel=2.0)]
    y = np.array([[1, 1], [0, 0]], dtype=np.float32)
    p = np.array([[[0.9, 0.9], [0.5, 0.6], [0.6, 0.6]], [[0.9, 0.9], [0.4, 0.4], [0.6, 0.6]]])
    assert training._choose(ways, "b", p, y) == [2, 1]
    assert training._choose(ways, "a", p, y) == [0, 0]


def test_a_recalibration_without_both_labels_changes_nothing(training):
    p = np.array([0.2, 0.7])
    assert training.recalibrated(np.array([1.0, np.nan]), p, p) is p
    assert training.recalibrated(np.array([1.0, 0.0] * 40), np.tile(p, 40), p)[0] > 0.4


def test_differences_are_paired(training):
    rng = np.random.default_rng(0)
    seeds = rng.normal(size=(7, 4))
    found = {
        ("none", "last", "as is"): [tuple(row) for row in seeds],
        ("none", "last", "recalibrated"): [tuple(row) for row in seeds - 0.25],
        ("weight decay", "last", "as is"): [tuple(row) for row in 2 * seeds],
    }
    for stop in ("last", "all rows"):
        key = ("kernel penalty", stop, "as is")
        row = training._summary({**found, key: [tuple(row) for row in seeds + 0.5]}, key)
        assert float(row["brier"]) == pytest.approx(seeds[:, 1].mean() + 0.5, rel=1e-3)
        assert float(row["brier_error"]) == pytest.approx(stats.sem(seeds[:, 1]), rel=0.05)
        assert float(row["auc_to_plain"]) == pytest.approx(0.5)
        assert float(row["auc_to_plain_error"]) < 1e-12
        assert float(row["log_loss_to_recalibrated"]) == pytest.approx(0.75)
        assert float(row["log_loss_to_decay_error"]) == pytest.approx(
            stats.sem(seeds[:, 0]), rel=0.05
        )


def test_intervals_are_student_s_and_verdicts_count_tasks(studies):
    page = studies("training_page")
    base = {"setting": "standard", "way": "none", "stop": "last", "after": "as is", "device": ""}
    changes = {"linear": ("-1", "0.1"), "curved": ("0.2", "0.1"), "rare": ("0.5", "0.2")}
    rows = []
    for task, (mean, error) in changes.items():
        row = base | {"task": task}
        for quantity in ("log_loss", "auc"):
            row |= {f"{quantity}_to_plain": mean, f"{quantity}_to_plain_error": error}
        rows.append(row)
    results = page.Results(rows, 20)
    quantile = stats.t.ppf(0.975, 19)
    change = results.change("standard", ("none", "last", "as is"), "plain")
    assert change.mean == pytest.approx(-0.1)
    assert change.half == pytest.approx(quantile * np.sqrt(0.01 + 0.01 + 0.04) / 3)
    assert (change.better, change.worse) == (1, 1)  # 0.2 is within 2.09 times 0.1
    larger_is_better = results.change("standard", ("none", "last", "as is"), "plain", "auc")
    assert (larger_is_better.better, larger_is_better.worse) == (1, 1)
    assert results.change("few rows", ("none", "last", "as is"), "plain") is None


# -- files ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_cell_has_all_outcomes_and_depends_on_its_seed_alone(training):
    plan = replace(training.QUICK, test_rows=100)
    rows = training.training_cell("digits", "few rows", plan=plan)
    assert rows == training.training_cell("digits", "few rows", plan=plan)
    other = training.training_cell("digits", "few rows", plan=replace(plan, seed=9))
    assert other[0]["log_loss"] != rows[0]["log_loss"]
    found = {(row["way"], row["stop"], row["after"]) for row in rows}
    for family in training.FAMILIES:
        for stop in ("last", "early"):
            for after in ("as is", "recalibrated"):
                assert (family, stop, after) in found
    assert ("weight decay", "all rows", "as is") in found
    assert ("held-out penalty", "all rows", "as is") not in found
    assert ("kernel penalty 30", "early", "as is") in found
    for row in rows:
        assert 0 < float(row["log_loss"]) < 2
        assert 0 <= float(row["smooth_ce"]) < 0.6
        assert 0 < float(row["auc"]) <= 1
        assert row["device"].startswith("CPU")


def test_a_cell_leaves_the_number_of_threads_as_it_is(training):
    torch.set_num_threads(2)
    training.training_cell("breast cancer", "few rows", plan=training.QUICK)
    assert torch.get_num_threads() == 2


@pytest.mark.slow
def test_page_and_figure_are_made_of_the_stored_table(studies, training, tmp_path):
    """Each number on the page comes from the stored table, and bears its sentence out."""
    pytest.importorskip("matplotlib")
    folder = ROOT / "docs" / "studies"
    table = (folder / "training.csv").read_bytes()
    (tmp_path / "training.csv").write_bytes(table)
    arguments = ["training", "--jobs", "1", "--device", "cpu", "--out", str(tmp_path)]
    assert studies("__main__").main(arguments) == 0
    assert (tmp_path / "training.csv").read_bytes() == table
    page = (tmp_path / "training.md").read_text(encoding="utf-8")
    assert b"<svg" in (tmp_path / "training.svg").read_bytes()
    assert studies("training_page").NOT_FOUND not in page
    assert f"with {training.FULL.seeds} seeds each" in page


def test_a_sentence_that_does_not_hold_says_so(studies, training):
    page, runs = studies("training_page"), studies("runs")
    rows = runs.read_rows(ROOT / "docs" / "studies" / "training.csv")
    turned = []
    for row in rows:
        ends = [
            name for name in row if name.endswith(("_to_plain", "_to_recalibrated", "_to_decay"))
        ]
        turned.append(row | {name: str(-float(row[name])) for name in ends})
    text = page.training_page(turned, training.FULL, "the command")
    assert text.count(page.NOT_FOUND) >= 6
