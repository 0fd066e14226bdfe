"""Measures as scorers of scikit-learn, and the data set that loads."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate

import caldist
from caldist.measures.registry import all_measures
from caldist.sklearn import SCORERS


def data(labels=("no", "yes")):
    x, y = make_classification(300, random_state=0)
    return x, np.array(labels, dtype=object)[y]


@pytest.mark.slow
@pytest.mark.parametrize("labels", [(0, 1), ("no", "yes"), (-1, 1), (1, 2), (False, True)])
def test_cross_validation_by_name(labels):
    x, y = data(labels)
    y = y.astype(type(labels[0]))
    chosen = {
        name: SCORERS[name] for name in ("neg_smooth_ce", "neg_brier_score", "neg_binned_ece")
    }
    found = cross_validate(LogisticRegression(), x, y, scoring=chosen, cv=3)
    model = LogisticRegression().fit(x, y)
    for name in chosen:
        assert (found[f"test_{name}"] <= 0).all()
        value = getattr(caldist.measures, name.removeprefix("neg_"))(
            y == labels[1], model.predict_proba(x)[:, 1]
        )
        assert SCORERS[name](model, x, y) == -value


def test_every_measure_that_needs_no_options_is_there_and_travels():
    assert {f"neg_{name}" for name in all_measures()} - set(SCORERS) == {"neg_weighted_ce"}
    x, y = data()
    model = LogisticRegression().fit(x, y)
    weight = np.arange(300) % 3
    for name in ("neg_smooth_ce", "neg_ece"):
        scorer = pickle.loads(pickle.dumps(SCORERS[name]))
        assert scorer == SCORERS[name]
        kept = weight > 0
        found = scorer(model, x, y, sample_weight=weight)
        assert found == pytest.approx(
            -getattr(caldist.measures, name[4:])(
                (y == "yes")[kept], model.predict_proba(x)[kept, 1], sample_weight=weight[kept]
            )
        )
    search = GridSearchCV(LogisticRegression(), {"C": [0.01, 1]}, scoring=SCORERS["neg_smooth_ce"])
    assert search.fit(x, y).best_score_ <= 0


def test_what_is_no_classifier_of_two_classes():
    x, y = data()
    with pytest.raises(TypeError, match="predict_proba"):
        SCORERS["neg_smooth_ce"](object(), x, y)
    three = LogisticRegression().fit(x, np.arange(300) % 3)
    with pytest.raises(ValueError, match="only two are supported"):
        SCORERS["neg_smooth_ce"](three, x, y)


def test_the_demo_loads():
    demo = caldist.datasets.load_demo()
    assert demo.y_true.size == 1797
    assert all(values.shape == (1797,) for values in demo.y_prob.values())
    frame = demo.to_frame("polars")
    assert frame.columns == ["label", *demo.y_prob]
    assert frame["label"].sum() == demo.y_true.sum()
