"""Many groups, a worker that dies, and what is not imported."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from caldist import Joint, engines
from caldist.data.accumulator import Accumulator
from caldist.engines import summarize

pa = pytest.importorskip("pyarrow")

COLUMNS = {"y_true": "label", "y_prob": "score"}


@pytest.mark.slow
def test_a_million_groups_and_cells():
    groups, size = 2000, 500
    rng = np.random.default_rng(0)
    score = (np.arange(groups * size) % size + 0.5 * rng.random(groups * size)) / size
    label = (rng.random(score.size) < score).astype(np.int64)
    key = np.repeat(np.arange(groups), size)
    order = rng.permutation(score.size)
    table = {"label": label[order], "score": score[order], "k": key[order]}
    found = summarize(pa.table(table), **COLUMNS, by="k")
    assert sum(joint.prediction.size for joint in found.values()) == groups * size
    for k in rng.integers(0, groups, 20):
        rows = slice(k * size, (k + 1) * size)
        assert found[k] == Joint.from_arrays(label[rows], score[rows]).coarsen(16)


@pytest.mark.slow
def test_a_dask_worker_that_dies_changes_nothing(dask_client, tmp_path):
    import dask.dataframe as dd
    import pandas as pd

    parts, size, stuck = 8, 500, 3
    runs, armed = tmp_path / "runs", tmp_path / "armed"
    runs.mkdir()

    def part(number):
        """Say where this runs, and return rows that depend only on the number."""
        again = any(runs.glob(f"{number}-*"))
        path = runs / f"{number}-{time.monotonic_ns()}"
        path.write_text(str(os.getpid()), encoding="utf-8")
        if armed.exists() and number == stuck and not again:
            time.sleep(600)  # where it is killed
        rng = np.random.default_rng(number)
        score = rng.random(size)
        return pd.DataFrame({"label": (rng.random(size) < score).astype(int), "score": score})

    whole = Accumulator(16)
    for number in range(parts):
        rows = part(number)
        whole.update(rows["label"], rows["score"])
    table = dd.from_map(part, range(parts), meta=part(0).iloc[:0])
    for path in runs.iterdir():
        path.unlink()
    armed.touch()
    found = []
    workers = set(dask_client.run(os.getpid).values())  # before, as it takes a while
    run = threading.Thread(target=lambda: found.append(summarize(table, **COLUMNS)))
    run.start()
    deadline = time.monotonic() + 60
    victim = ""
    while not victim and time.monotonic() < deadline:
        time.sleep(0.01)
        victim = "".join(path.read_text(encoding="utf-8") for path in runs.glob(f"{stuck}-*"))
    assert int(victim) in workers
    os.kill(int(victim), signal.SIGKILL)
    run.join()
    assert found == [whole.joint]
    assert len(list(runs.glob(f"{stuck}-*"))) > 1  # it was done again
    dask_client.wait_for_workers(2)


def test_engines_are_not_imported_before_they_are_needed():
    modules = ["narwhals", "duckdb", "polars", "pandas", "pyarrow", "dask", "pyspark", "ibis"]
    code = (
        "import sys, caldist.engines\n"
        f"loaded = [name for name in {modules} if name in sys.modules]\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_the_benchmark_runs(monkeypatch, capsys):
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    root = Path(__file__).parents[2]
    if not (root / "benchmarks").is_dir():
        pytest.skip("the benchmarks are not part of an installation")
    monkeypatch.syspath_prepend(str(root))
    from benchmarks.engines import main

    assert main(["--quick", "--engines", "duckdb,polars"]) == 0
    shown = capsys.readouterr().out
    assert "| duckdb |" in shown
    assert "peak, MB" in shown


def test_public_names():
    assert engines.__all__ == [
        "open_files",
        "summarize",
        "summarize_one_vs_rest",
        "summarize_top_label",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 0}, "bits is 0"),
        ({"bits": 31}, "bits is 31: it must be at most 30"),
        ({"invalid": "drop"}, "invalid is 'drop'"),
        ({"memory_limit": 0}, "memory_limit is 0"),
    ],
)
def test_options_out_of_range(options, message):
    table = pa.table({"label": [0, 1], "score": [0.1, 0.2]})
    with pytest.raises(ValueError, match=message):
        summarize(table, **COLUMNS, **options)


def test_tables_and_names_of_a_wrong_type():
    table = pa.table({"label": [0, 1], "score": [0.1, 0.2]})
    with pytest.raises(TypeError, match=r"table is of type ndarray.*Joint\.from_arrays"):
        summarize(np.zeros((2, 2)), **COLUMNS)
    with pytest.raises(TypeError, match="table is of type list"):
        summarize(["a.csv", 3], **COLUMNS)
    with pytest.raises(TypeError, match="y_true is 3"):
        summarize(table, y_true=3, y_prob="score")
    for by in (3, []):
        with pytest.raises(TypeError, match=r"by is (3|\[\])"):
            summarize(table, **COLUMNS, by=by)
