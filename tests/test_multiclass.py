"""From several classes to binary problems."""

import numpy as np
import pytest

import caldist

RNG = np.random.default_rng(0)
MATRIX = RNG.dirichlet([1, 1, 1, 1], 200)
CLASSES = np.array([RNG.choice(4, p=row) for row in MATRIX])


def test_top_label_is_confidence_and_correctness():
    correct, confidence = caldist.top_label(CLASSES, MATRIX)
    assert confidence == pytest.approx(MATRIX.max(axis=1))
    assert correct.tolist() == (MATRIX.argmax(axis=1) == CLASSES).astype(int).tolist()


def test_of_equal_probabilities_the_first_counts():
    correct, confidence = caldist.top_label([1, 0], [[0.5, 0.5], [0.5, 0.5]])
    assert correct.tolist() == [0, 1]
    assert confidence.tolist() == [0.5, 0.5]


def test_one_vs_rest_has_one_pair_per_class():
    pairs = caldist.one_vs_rest(CLASSES, MATRIX)
    assert len(pairs) == 4
    for k, (y, p) in enumerate(pairs):
        assert y.tolist() == (k == CLASSES).astype(int).tolist()
        assert p.tolist() == MATRIX[:, k].tolist()
        assert 0 <= caldist.smooth_ce(y, p) < 0.1


def test_two_columns_are_the_binary_problem():
    p = MATRIX[:, 0]
    y = (CLASSES == 0).astype(int)
    (y0, p0), (y1, p1) = caldist.one_vs_rest(y, np.stack([1 - p, p], axis=1))
    assert caldist.smooth_ce(y1, p1) == caldist.smooth_ce(y, p)
    assert caldist.smooth_ce(y0, p0) == pytest.approx(caldist.smooth_ce(y, p))


def test_lists_floats_and_float32_are_taken():
    rows = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
    expected = caldist.top_label([0, 2], rows)
    for y, matrix in [([0.0, 2.0], rows), ((0, 2), np.array(rows, np.float32))]:
        correct, confidence = caldist.top_label(y, matrix)
        assert correct.tolist() == expected[0].tolist()
        assert confidence.tolist() == expected[1].tolist()
        assert confidence.dtype == np.float64


def test_softmax_in_half_precision_is_taken():
    logits = RNG.normal(size=(50, 100)).astype(np.float16)
    matrix = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    caldist.top_label(np.zeros(50, int), matrix.astype(np.float16))
