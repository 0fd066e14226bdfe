"""Make the predictions that ``caldist demo`` evaluates: ``src/caldist/datasets/demo.csv``.

The task is "is this handwritten digit 5 or larger?" on the 1,797 images that scikit-learn bundles.
The digits were chosen over the breast cancer data (569 rows) because the picture is clearer. There
are three times the rows; the smCE of nearest neighbours and of logistic regression is what
calibrated predictions would show in a sample of this size, that of the other four is above it. The
ECE goes wrong in plain sight: it puts logistic regression, which never predicts the same value
twice, behind a decision tree that only ever says 0 or 1.

All models run with scikit-learn's defaults; a fixed seed makes the folds and the random models
repeatable. Run with scikit-learn installed: ``python scripts/make_demo_data.py``. It takes about
fifteen seconds.
"""

from __future__ import annotations

import csv
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

DATA = Path(__file__).resolve().parents[1] / "src" / "caldist" / "datasets"
SEED = 0

README = """\
# demo.csv

Labels and out-of-fold predictions of six classifiers, for `caldist demo`.

- **Task.** Is a handwritten digit, an image of 8 x 8 pixels, 5 or larger? {rows:,} rows, {ones:,}
  of them with label 1.
- **Columns.** `label` (0 or 1), then each model's predicted probability of label 1:
  {models}.
  Every number is written so that it reads back as exactly the same float64.
- **How made.** `scripts/make_demo_data.py`, with scikit-learn {version}: 10-fold stratified cross
  validation, shuffled with seed {seed}; every row is predicted by a model that did not see it. The
  models have scikit-learn's default settings; logistic regression gets standardised pixels. The
  rows are in the order of `sklearn.datasets.load_digits`. The folds mix the 13 writers, so the
  accuracies are those for writers already seen.
- **Source.** E. Alpaydin and C. Kaynak, *Optical Recognition of Handwritten Digits*, UCI Machine
  Learning Repository, 1998, <https://doi.org/10.24432/C50P49>; the test set, as bundled with
  scikit-learn.
- **Licence.** The source is published under
  [CC BY 4.0](https://creativecommons.org/licenses/by/4.0/); so is this file. Changed: the images
  are left out, the ten digits became two labels, the predictions were added.
"""


def models() -> dict[str, Any]:
    """Return the classifiers, under the names of their columns."""
    return {
        "logistic_regression": make_pipeline(StandardScaler(), LogisticRegression()),
        "naive_Bayes": MultinomialNB(),  # a pixel counts the inked points of a 4 x 4 block
        "nearest_neighbours": KNeighborsClassifier(),
        "decision_tree": DecisionTreeClassifier(random_state=SEED),
        "random_forest": RandomForestClassifier(random_state=SEED),
        "gradient_boosting": GradientBoostingClassifier(random_state=SEED),
    }


def predict(
    images: NDArray[np.float64], label: NDArray[np.int64]
) -> dict[str, NDArray[np.float64]]:
    """Return each model's out-of-fold probabilities of label 1."""
    folds = StratifiedKFold(10, shuffle=True, random_state=SEED)
    predictions = {}
    for name, model in models().items():
        both = cross_val_predict(model, images, label, cv=folds, method="predict_proba")
        predictions[name] = both[:, 1]
    return predictions


def main() -> None:
    """Write the table and the note beside it."""
    images, digit = load_digits(return_X_y=True)
    label = (digit >= 5).astype(np.int64)
    predictions = predict(images, label)
    DATA.mkdir(exist_ok=True)
    with (DATA / "demo.csv").open("w", encoding="ascii", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["label", *predictions])
        columns = [column.tolist() for column in (label, *predictions.values())]
        writer.writerows(zip(*columns, strict=True))
    note = README.format(
        rows=label.size,
        ones=int(label.sum()),
        models=fill(", ".join(f"`{name}`" for name in predictions), 97).replace("\n", "\n  "),
        version=sklearn.__version__,
        seed=SEED,
    )
    (DATA / "README.md").write_text(note, encoding="ascii")
    print(f"{label.size} rows, {len(predictions)} models: {DATA / 'demo.csv'}")


if __name__ == "__main__":
    main()
