"""Penalties in training against recalibration afterwards, on networks that overfit more or less.

A cell is a task and a setting. In each, networks are trained in all ways and with all seeds; kept
are the last weights and those of the epoch with the least log loss on rows held out. The same rows
choose the strength of a family of ways, and fit the recalibration: what is compared has seen the
same.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import caldist
from caldist import Joint
from studies.laws import stream
from studies.runs import Row
from studies.ways import Way

__all__ = [
    "FULL",
    "QUICK",
    "SETTINGS",
    "SHIFTS",
    "TASKS",
    "Plan",
    "cells",
    "default_device",
    "training_cell",
]

Vector = NDArray[np.float64]
Numbers = NDArray[np.float32]

QUANTITIES = ("log_loss", "brier", "smooth_ce", "auc")
FAMILIES = (
    "none", "kernel penalty", "smooth penalty", "label smoothing", "weight decay",
    "decay and penalty", "held-out penalty",
)  # fmt: skip
REFERENCES = {
    "plain": ("none", "as is"),
    "recalibrated": ("none", "recalibrated"),
    "decay": ("weight decay", "as is"),
}
"""What others are compared with, seed by seed: log loss alone, that recalibrated, decay."""

CERTAIN = 1e-7  # for the log loss predictions are kept that far from 0 and 1
NOISE = 0.2  # the share of labels that are flipped
KEPT = 0.25  # the share of rows of label 1 that the shift of the prior keeps
SHIFTS = ("covariate shift", "prior shift")
_INPUTS = 20


# -- tasks ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """What is to be predicted: a law with a known probability, or a data set."""

    name: str
    text: str
    rate: Callable[[Vector], Vector] | None = None
    loader: str = ""

    @property
    def synthetic(self) -> bool:
        """Whether the true probabilities are known."""
        return self.rate is not None


def _sigmoid(z: Vector) -> Vector:
    return np.asarray(1 / (1 + np.exp(-z)))


def _linear(x: Vector) -> Vector:
    direction = np.random.default_rng(1).normal(size=_INPUTS)
    return _sigmoid(2 * x @ (direction / np.linalg.norm(direction)))


def _curved(x: Vector) -> Vector:
    rng = np.random.default_rng(1)
    inner, outer = rng.normal(size=(_INPUTS, 8)), rng.normal(size=8)
    return _sigmoid(1.3 * np.tanh(x @ inner * (2 / _INPUTS**0.5)) @ outer)


def _rare(x: Vector) -> Vector:
    return _sigmoid(1.3 * (x[..., 0] + x[..., 1] * x[..., 2] + np.abs(x[..., 3])) - 5)


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("linear", "20 normal features, a linear logit of standard deviation 2", _linear),
        Task("curved", "20 normal features, the logit a network of 8 hidden units", _curved),
        Task("rare", "20 normal features, one row in fifteen positive, interactions", _rare),
        Task("digits", "1,797 images of digits: is it 5 or larger?", loader="load_digits"),
        Task("breast cancer", "569 tumours: is it benign?", loader="load_breast_cancer"),
    )
}


@dataclass(frozen=True)
class Setting:
    """What is hard: numbers of rows for training and held out, noise, length.

    ``scarce`` are the same numbers for the two data sets, as shares of their rows.
    """

    name: str
    text: str
    rows: tuple[int, int] = (2000, 500)
    scarce: tuple[float, float] | None = (0.44, 0.11)
    train_noise: float = 0.0
    noise: float = 0.0
    epochs: int = 60
    refit: bool = False


SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting(
            "standard", "2,000 rows and 500 held out, of data sets 44% and 11%; 60 epochs",
            refit=True,
        ),
        Setting("long training", "300 epochs", epochs=300),
        Setting(
            "label noise", "a fifth of all labels flipped, those of the test too",
            train_noise=NOISE, noise=NOISE,
        ),
        Setting(
            "noisy training", "a fifth of the training labels flipped, no others",
            train_noise=NOISE,
        ),
        Setting(
            "few rows", "200 rows and 50 held out, of data sets 10% and 2.5%; 150 epochs",
            rows=(200, 50), scarce=(0.1, 0.025), epochs=150, refit=True,
        ),
        Setting(
            "many rows", "20,000 rows and 5,000 held out, 30 epochs; laws only",
            rows=(20_000, 5_000), scarce=None, epochs=30,
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """How much is computed.

    Attributes
    ----------
    seed
        Of all random streams.
    seeds
        Data sets, with their networks, of each cell.
    test_rows
        Rows of a law that networks are judged on, with their true probabilities.
    share
        Of the epochs.
    """

    seed: int = 2
    seeds: int = 20
    test_rows: int = 20_000
    share: float = 1.0

    def __str__(self) -> str:
        return f"seed {self.seed}; {self.seeds} seeds; {self.test_rows} rows; epochs {self.share:g}"


FULL = Plan()
QUICK = Plan(seeds=2, test_rows=500, share=0.02)


def cells() -> list[tuple[str | int, ...]]:
    """Return (task, setting) of all cells, the slow ones first."""
    order = sorted(SETTINGS.values(), key=lambda setting: -setting.epochs * setting.rows[0])
    return [
        (task.name, setting.name)
        for setting in order
        for task in TASKS.values()
        if task.synthetic or setting.scarce is not None
    ]


def default_device() -> str:
    """Return "cuda" if there is a GPU that PyTorch can use, else "cpu"."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


# -- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Test:
    """Rows to judge on, as masses of both labels: exact where the probabilities are known.

    The first axis is that of the seeds; of length 1 where they share the rows.
    """

    x: Numbers
    mass0: Vector
    mass1: Vector

    @classmethod
    def of(cls, x: Vector, rate: Vector, noise: float = 0.0, kept: float = 1.0) -> Test:
        """Make it of probabilities, with flipped labels or fewer positives."""
        rate = rate * (1 - 2 * noise) + noise
        return cls(x.astype(np.float32), 1 - rate, kept * rate)

    def of_seed(self, at: int) -> tuple[Vector, Vector]:
        return self.mass0[at % len(self.mass0)], self.mass1[at % len(self.mass1)]


@dataclass(frozen=True)
class Sample:
    """Rows of all seeds: to train on, held out, and new ones after each shift; and the tests."""

    train: tuple[Numbers, Numbers]
    held: tuple[Numbers, Numbers]
    tests: Mapping[str, Test]
    new: Mapping[str, tuple[Numbers, list[Vector]]]


def draw(task: Task, setting: Setting, plan: Plan) -> Sample:
    """Draw the rows of a cell, each seed's from a stream of its own."""
    drawer = _draw_law if task.synthetic else _draw_data
    drawn = [drawer(task, setting, plan, seed) for seed in range(plan.seeds)]
    n, m = (drawn[0][part][0].shape[0] for part in ("train", "held"))
    noisy = []
    for seed, rows in enumerate(drawn):
        # One flip for each row, so that noise changes nothing else.
        flips = stream(plan.seed, task.name, setting.name, "noise", seed).random(n + m)
        shares = np.repeat([setting.train_noise, setting.noise], [n, m])
        labels = np.concatenate([rows["train"][1], rows["held"][1]])
        noisy.append(np.where(flips < shares, 1 - labels, labels))
    labels = np.stack(noisy).astype(np.float32)
    features = np.stack([np.concatenate([r["train"][0], r["held"][0]]) for r in drawn])
    features = features.astype(np.float32)
    tests = {"": _test(task, drawn, plan, noise=setting.noise)}
    new = {}
    if setting.name == "standard":
        tests |= {shift: _test(task, drawn, plan, shift=shift) for shift in SHIFTS}
        for shift in SHIFTS:
            parts = [rows[shift] for rows in drawn]
            new[shift] = (
                np.stack([x for x, _ in parts]).astype(np.float32),
                [labels_of for _, labels_of in parts],
            )
    return Sample((features[:, :n], labels[:, :n]), (features[:, n:], labels[:, n:]), tests, new)


Drawn = dict[str, tuple[Vector, Vector]]


def _draw_law(task: Task, setting: Setting, plan: Plan, seed: int) -> Drawn:
    assert task.rate is not None
    found: Drawn = {}
    for part, size in zip(("train", "held"), setting.rows, strict=True):
        rng = stream(plan.seed, task.name, setting.name, part, seed)
        x = rng.normal(size=(size, _INPUTS))
        found[part] = x, (rng.random(size) < task.rate(x)).astype(np.float64)
    for shift in SHIFTS:
        rng = stream(plan.seed, task.name, setting.name, shift, seed)
        x = _moved(rng.normal(size=(setting.rows[1], _INPUTS)), shift, rng, task)
        y = (rng.random(len(x)) < task.rate(x)).astype(np.float64)
        found[shift] = x, _thinned(y, shift, rng)
    return found


@cache
def _data(loader: str) -> tuple[Vector, Vector]:
    """Return standardised features and labels of a set that comes with scikit-learn."""
    from sklearn import datasets

    x, y = getattr(datasets, loader)(return_X_y=True)
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9)
    return x, (y >= 5 if loader == "load_digits" else y == 1).astype(np.float64)


def _draw_data(task: Task, setting: Setting, plan: Plan, seed: int) -> Drawn:
    """Split the rows: to train, held out, as many new ones, and the rest to judge."""
    assert setting.scarce is not None
    x, y = _data(task.loader)
    order = stream(plan.seed, task.name, setting.name, "split", seed).permutation(len(y))
    x, y = x[order], y[order]
    n, m = (round(share * len(y)) for share in setting.scarce)
    found = {"train": (x[:n], y[:n]), "held": (x[n : n + m], y[n : n + m])}
    found["test"] = x[n + 2 * m :], y[n + 2 * m :]
    for shift in SHIFTS:
        rng = stream(plan.seed, task.name, setting.name, shift, seed)
        fresh = slice(n + m, n + 2 * m)
        found[shift] = _moved(x[fresh], shift, rng, task), _thinned(y[fresh], shift, rng)
        found[f"test, {shift}"] = _moved(found["test"][0], shift, rng, task), found["test"][1]
    return found


def _moved(x: Vector, shift: str, rng: np.random.Generator, task: Task) -> Vector:
    """Return features after a shift: of a law moved and stretched, of data with noise added."""
    if shift != "covariate shift":
        return x
    return 1.5 * x + 0.3 if task.synthetic else x + 0.7 * rng.normal(size=x.shape)


def _thinned(y: Vector, shift: str, rng: np.random.Generator) -> Vector:
    """Return labels with NaN in place of the rows that a shift of the prior drops."""
    dropped = (y == 1) & (rng.random(y.size) >= KEPT)
    return np.where(dropped, np.nan, y) if shift == "prior shift" else y


def _test(
    task: Task, drawn: Sequence[Drawn], plan: Plan, *, noise: float = 0.0, shift: str = ""
) -> Test:
    kept = KEPT if shift == "prior shift" else 1.0
    if task.rate is not None:
        rng = stream(plan.seed, task.name, "test")
        x = _moved(rng.normal(size=(1, plan.test_rows, _INPUTS)), shift, rng, task)
        return Test.of(x, task.rate(x), noise, kept)
    name = f"test, {shift}" if shift else "test"
    x, y = (np.stack([rows[name][at] for rows in drawn]) for at in (0, 1))
    return Test.of(x, y, noise, kept)


# -- ways ----------------------------------------------------------------------------------------


def ways() -> list[Way]:
    """Return all ways to train, the one with rows held out in its loss last.

    Their strengths are from ranges in which something happens and nothing collapses: ten times the
    largest weight of a penalty leaves constant predictions.
    """
    none, kernel, smooth, smoothing, decay, both, held_out = FAMILIES
    return [
        Way(none),
        *(Way(kernel, kernel=weight) for weight in (3.0, 10.0, 30.0)),
        *(Way(smooth, smooth=weight) for weight in (0.3, 1.0, 3.0)),
        *(Way(smoothing, smoothing=share) for share in (0.05, 0.2)),
        *(Way(decay, decay=rate) for rate in (1.0, 3.0, 10.0)),
        *(
            Way(both, decay=rate, smooth=weight)
            for rate in (1.0, 3.0, 10.0)
            for weight in (0.3, 1.0)
        ),
        Way(held_out, held_out=30.0),
    ]


# -- results -------------------------------------------------------------------------------------


def judge(p: Vector, mass0: Vector, mass1: Vector) -> tuple[float, ...]:
    """Return the quantities of predictions, in the order of ``QUANTITIES``."""
    joint = Joint.from_masses(p, mass0, mass1)
    mass0, mass1 = joint.normalized()
    p = np.clip(joint.prediction, CERTAIN, 1 - CERTAIN)
    log_loss = -float(mass1 @ np.log(p) + mass0 @ np.log1p(-p))
    return log_loss, caldist.brier_score(joint), caldist.smooth_ce(joint), auc(joint)


def auc(joint: Joint) -> float:
    """Return the probability that a positive has the larger prediction, ties counted half."""
    mass0, mass1 = joint.normalized()
    below = np.cumsum(mass0) - mass0 / 2
    return float(below @ mass1 / (mass0.sum() * mass1.sum()))


def recalibrated(y: Vector, p: Vector, other: Vector) -> Vector:
    """Return other predictions, mapped as these labels teach; as they are where one is missing."""
    p, y = p[~np.isnan(y)], y[~np.isnan(y)]
    if min(y.sum(), (1 - y).sum()) == 0:
        return other
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that ranks are no better than chance
        found = caldist.recalibrate(y.astype(np.int64), p, confidence_level=None, rng=0)
    assert found.map is not None
    return np.asarray(found.map(other))


Judgement = tuple[float, ...]
Outcome = tuple[str, str, str]  # way, stop, after
Outcomes = dict[str, dict[Outcome, list[Judgement]]]


def training_cell(task: str, setting: str, *, plan: Plan, device: str = "cpu") -> list[Row]:
    """Train and judge all networks of a cell; return a row for each way, stop and recalibration."""
    import torch

    from studies import networks

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # cells share the cores already
    try:
        with mock.patch.dict(os.environ, CALDIST_NUM_THREADS="1"):
            outcomes = _outcomes(TASKS[task], SETTINGS[setting], plan, device)
    finally:
        torch.set_num_threads(threads)
    rows = []
    for shift, found in outcomes.items():
        for outcome in found:
            row = dict(zip(("way", "stop", "after"), outcome, strict=True))
            names = {"task": task, "setting": shift or setting, **row}
            rows.append(names | _summary(found, outcome) | {"device": networks.device_name(device)})
    return rows


def _outcomes(task: Task, setting: Setting, plan: Plan, device: str) -> Outcomes:
    from studies.networks import Schedule, train

    tried = ways()
    sample = draw(task, setting, plan)
    epochs = max(1, round(plan.share * setting.epochs))
    schedule = Schedule(epochs, batch=min(250, sample.train[1].shape[1] // 2))
    seeds = range(plan.seeds)
    trained = train(seeds, tried, sample.train, sample.held, schedule, device)
    outcomes: Outcomes = {shift: {} for shift in sample.tests}
    best: dict[str, list[int]] = {}
    for stop in ("early", "last"):
        held = trained[stop].predict(sample.held[0])
        best = {family: _choose(tried, family, held, sample.held[1]) for family in FAMILIES}
        for shift, test in sample.tests.items():
            p, found = trained[stop].predict(test.x), outcomes[shift]
            for at, way in enumerate(tried):
                if not shift and way.family not in (FAMILIES[0], FAMILIES[-1]):
                    found[str(way), stop, "as is"] = _judged(p[:, at], test)
            for family, places in best.items():
                value = _picked(p, places)
                found[family, stop, "as is"] = _judged(value, test)
                taught = _recalibrated(sample.held[1], _picked(held, places), value)
                found[family, stop, "recalibrated"] = _judged(taught, test)
                if shift:
                    x, labels = sample.new[shift]
                    fresh = _picked(trained[stop].predict(x), places)
                    taught = _recalibrated(labels, fresh, value)
                    found[family, stop, "recalibrated on new rows"] = _judged(taught, test)
    if setting.refit:
        # As is usual: the strengths that were best without the rows held out, now with them.
        pairs = zip(sample.train, sample.held, strict=True)
        x, y = (np.concatenate(pair, axis=1) for pair in pairs)
        *alike, held_out = tried
        refitted = train(seeds, alike, (x, y), None, schedule, device)["last"]
        for shift, test in sample.tests.items():
            p = refitted.predict(test.x)
            for family, places in best.items():
                if family != held_out.family:
                    judged = _judged(_picked(p, places), test)
                    outcomes[shift][family, "all rows", "as is"] = judged
    if task.synthetic:
        for shift, test in sample.tests.items():
            (mass0,), (mass1,) = test.mass0, test.mass1
            truth = judge(mass1 / (mass0 + mass1), mass0, mass1)
            outcomes[shift]["the truth", "last", "as is"] = [truth] * plan.seeds
    return outcomes


def _choose(tried: Sequence[Way], family: str, p: Vector, y: Numbers) -> list[int]:
    """Return for each seed which way of a family has the least log loss on rows held out."""
    p = np.clip(p, CERTAIN, 1 - CERTAIN)
    likely = np.where(y[:, None] == 1, p, 1 - p)
    loss = -np.log(likely).mean(axis=-1)
    places = [at for at, way in enumerate(tried) if way.family == family]
    return [places[at] for at in loss[:, places].argmin(axis=1)]


def _picked(p: Vector, places: Sequence[int]) -> list[Vector]:
    """Return the predictions of one network for each seed."""
    return [p[seed, at] for seed, at in enumerate(places)]


def _judged(values: Iterable[Vector], test: Test) -> list[Judgement]:
    return [judge(value, *test.of_seed(seed)) for seed, value in enumerate(values)]


def _recalibrated(
    labels: Iterable[Vector], p: Iterable[Vector], others: Iterable[Vector]
) -> list[Vector]:
    return [recalibrated(*of_seed) for of_seed in zip(labels, p, others, strict=True)]


def _summary(found: Mapping[Outcome, list[Judgement]], outcome: Outcome) -> Row:
    """Return means over seeds with standard errors, and paired differences to all references.

    References are stopped in the same way; what was trained on all rows was not stopped early.
    """
    stop = "early" if outcome[1] == "early" else "last"
    values = np.array(found[outcome])
    row: Row = {}
    for at, quantity in enumerate(QUANTITIES):
        columns = {quantity: values[:, at]}
        for name, (way, after) in REFERENCES.items():
            columns[f"{quantity}_to_{name}"] = (
                values[:, at] - np.array(found[way, stop, after])[:, at]
            )
        for name, column in columns.items():
            error = column.std(ddof=1) / math.sqrt(column.size)
            row |= {name: f"{column.mean():.4g}", f"{name}_error": f"{error:.2g}"}
    return row
