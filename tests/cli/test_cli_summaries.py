"""The command line on saved summaries: wherever a file is taken, and what they cannot say."""

import csv
import io
import json

import pytest

import caldist
from caldist._util.numbers import down, up
from caldist.measures.registry import shown_in
from command_lines import HAS_DUCKDB, run, sample_rows, write_csv

NAMES = ("--label", "won", "--score", "first")
COMMANDS = ["measure", "test", "compare", "summarize", "report"]
needs_duckdb = pytest.mark.skipif(not HAS_DUCKDB, reason="duckdb is not installed")


@pytest.fixture
def rows():
    return sample_rows()


@pytest.fixture
def joints(tmp_path, rows, monkeypatch):
    """Save two summaries, of different rows, as a.npz and b.npz in the working directory."""
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "rows.csv", rows)
    found = {}
    for at, name in enumerate(("a.npz", "b.npz")):
        part = slice(at, None, 2)
        joint = caldist.Joint.from_arrays(rows["won"][part], rows["first"][part]).coarsen(16)
        joint.save(name)
        found[name] = joint
    return found


def results(*arguments):
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["results"]


def command_line(command, *files):
    out = {"summarize": ("-o", "out.npz"), "report": ("-o", "out.json")}
    return (command, *files, *out.get(command, ()))


def test_measure_gives_a_line_for_each_file_and_measure(joints):
    shown = run("measure", *joints, "--format", "csv").stdout
    found = list(csv.DictReader(io.StringIO(shown)))
    assert [(line["file"], line["measure"]) for line in found] == [
        (name, str(measure)) for name in joints for measure in shown_in("measure")
    ]
    for line in found:
        joint = joints[line["file"]]
        expected = caldist.evaluate(joint, measures=[line["measure"]])[line["measure"]]
        known = expected.to_dict()
        if expected.lower is None:
            known["value"] = None
        assert line == {
            "file": line["file"],
            "rows": "100",
            "measure": line["measure"],
            **{key: "" if value is None else repr(value) for key, value in known.items()},
        }


def test_json_has_one_shape_from_rows_and_from_summaries(joints, rows):
    """Keys are the same; a number that cells do not tell is null."""
    options = ("--measure", "smooth_ce,ece", "--fail-above", "0.9", "--format", "json")
    of_rows = json.loads(run("measure", "rows.csv", *NAMES, *options).stdout)
    of_summary = json.loads(run("measure", "a.npz", *options).stdout)
    assert list(of_rows) == list(of_summary)
    [line], [other] = of_rows["results"], of_summary["results"]
    assert list(line) == list(other)
    assert (line["score"], line["file"], other["score"], other["file"]) == (
        "first", None, None, "a.npz",
    )  # fmt: skip
    assert line["ece"] == line["lower"]["ece"] == caldist.ece(rows["won"], rows["first"])
    assert (other["ece"], other["lower"]["ece"], other["upper"]["ece"]) == (None, None, None)
    assert other["lower"]["smooth_ce"] <= other["smooth_ce"] <= other["upper"]["smooth_ce"]
    for command in (("test",), ("compare",)):
        scores = ("--score", "second") if command[0] == "compare" else ()
        files = joints if command[0] == "compare" else ["a.npz"]
        shared = (*command[1:], "--format", "json")
        first = json.loads(run(command[0], "rows.csv", *NAMES, *scores, *shared).stdout)
        second = json.loads(run(command[0], *files, *shared).stdout)
        assert list(first) == list(second)
        assert list(first["results"][0]) == list(second["results"][0])


def test_only_what_was_rounded_is_said_to_be(joints, rows):
    caldist.Joint.from_arrays(rows["won"], rows["first"]).save("exact.npz")
    assert "before they were rounded" not in run("measure", "exact.npz").stdout
    assert "before they were rounded" in run("measure", "exact.npz", "a.npz").stdout


def test_what_has_no_bound_is_empty_in_every_format(joints):
    command = ("measure", "a.npz", "--measure", "ece,smooth_ce", "--format")
    ece, smooth = csv.DictReader(io.StringIO(run(*command, "csv").stdout))
    assert (ece["value"], ece["lower"], ece["upper"]) == ("", "", "")
    assert float(smooth["lower"]) <= float(smooth["value"]) <= float(smooth["upper"])
    assert run(*command, "markdown").stdout.splitlines()[2].endswith("| - | - | - |")
    table = run(*command, "table").stdout.splitlines()
    assert table[0].split() == ["file", "rows", "measure", "value", "lower", "upper"]
    assert table[1].split() == ["a.npz", "100", "ece", "-", "-", "-"]
    assert len(table[0]) == len(table[2])  # numbers end where their heads do


def test_test_is_that_of_each_summary(joints):
    found = results("test", *joints)
    for line, (name, joint) in zip(found, joints.items(), strict=True):
        expected = caldist.calibration_test(joint, n_resamples=99, rng=0)
        assert line == {
            "score": None,
            "file": name,
            "rows": 100,
            "measure": "auto",
            "statistic": expected.statistic,
            "pvalue": expected.pvalue,
            "rounding": expected.rounding,
        }
        assert 0 < line["rounding"] < 1e-6


def test_compare_is_that_of_independent_samples(joints):
    command = ("compare", *joints)
    [line] = results(*command, "--measure", "kernel_ce", "--confidence-level", "0.9")
    expected = caldist.compare(
        *joints.values(), measure="kernel_ce", confidence_level=0.9, n_resamples=99, rng=0
    )
    shown = ("difference", "lower", "upper", "pvalue", "rounding")
    assert line == {
        "score_a": None,
        "file_a": "a.npz",
        "score_b": None,
        "file_b": "b.npz",
        "kernel_ce_a": expected.value_a,
        "kernel_ce_b": expected.value_b,
        **{key: getattr(expected, key) for key in shown},
    }
    assert "independent samples" in run(*command).stdout


@pytest.mark.parametrize("number", [1, 3])
def test_two_summaries_are_compared(joints, number):
    joints["a.npz"].save("c.npz")
    result = run("compare", *["a.npz", "b.npz", "c.npz"][:number])
    assert result.exit_code == 2
    assert f"FILE names {number} summaries, and two are compared" in result.stderr
    assert "--score A --score B" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["", "other/"])
def test_report_takes_each_summary_for_a_model(joints, tmp_path, folder):
    (tmp_path / "other").mkdir()
    second = f"{folder}{'a' if folder else 'b'}.npz"
    joints["b.npz"].save(second)
    result = run("report", "a.npz", second, "-o", "out.json")
    assert result.exit_code == 0, result.stderr
    names = [model["name"] for model in json.loads((tmp_path / "out.json").read_text())["models"]]
    assert names == (["a.npz", "other/a.npz"] if folder else ["a", "b"])


@needs_duckdb
def test_summaries_merge_to_what_one_pass_gives(tmp_path, rows):
    halves = [{name: column[part::2] for name, column in rows.items()} for part in (0, 1)]
    for at, half in enumerate(halves):
        path = write_csv(tmp_path / f"{at}.csv", half)
        result = run("summarize", path, *NAMES, "-o", tmp_path / f"{at}.npz")
        assert result.exit_code == 0, result.stderr
    merged = tmp_path / "all.npz"
    parts = (tmp_path / "1.npz", tmp_path / "0.npz")
    assert run("summarize", *parts, "-o", merged).exit_code == 0
    whole = caldist.Joint.from_arrays(rows["won"], rows["first"]).coarsen(16)
    assert caldist.Joint.load(merged) == whole
    [found] = json.loads(run("measure", merged, "--format", "json").stdout)["results"]
    exact = caldist.smooth_ce(rows["won"], rows["first"])
    assert found["lower"]["smooth_ce"] <= exact <= found["upper"]["smooth_ce"]
    assert run("measure", merged, "--fail-above", "0").exit_code == 0  # it may be calibrated
    assert run("measure", merged, "--require-below", "0.001").exit_code == 3
    assert run("measure", merged, "--label", "won").exit_code == 2


def test_summarize_brings_summaries_to_one_grid_and_merges(joints):
    a, b = joints.values()
    b.coarsen(12).save("coarse.npz")
    exact = caldist.Joint.from_arrays([0, 1], [0.25, 0.7])
    exact.save("exact.npz")
    for files, options, expected in (
        (["a.npz", "b.npz"], (), a + b),
        (["a.npz", "b.npz"], ("--bits", "10"), (a + b).coarsen(10)),
        (["a.npz", "coarse.npz"], (), a.coarsen(12) + b.coarsen(12)),
        (["exact.npz"], (), exact.coarsen(16)),
        (["exact.npz", "coarse.npz"], (), exact.coarsen(12) + b.coarsen(12)),
    ):
        result = run("summarize", *files, *options, "-o", "out.npz")
        assert result.exit_code == 0, result.stderr
        assert caldist.Joint.load("out.npz") == expected


def test_a_grid_finer_than_that_of_a_summary_is_refused(joints):
    result = run("summarize", "a.npz", "--bits", "20", "-o", "out.npz")
    assert result.exit_code == 2
    assert "--bits is 20: a.npz has only 16" in result.stderr


@needs_duckdb
def test_summarize_reads_standard_input(joints, tmp_path):
    for name, options in (("rows.csv", NAMES), ("a.npz", ())):
        content = (tmp_path / name).read_bytes()
        assert run("summarize", name, *options, "-o", "file.npz").exit_code == 0
        result = run("summarize", "-", *options, "-o", "out.npz", stdin=content)
        assert result.exit_code == 0, result.stderr
        assert caldist.Joint.load("out.npz") == caldist.Joint.load("file.npz")


def test_a_summary_on_standard_input(joints, tmp_path):
    content = (tmp_path / "a.npz").read_bytes()
    found = json.loads(run("measure", "-", "--format", "json", stdin=content).stdout)["results"]
    assert [line | {"file": "a.npz"} for line in found] == results("measure", "a.npz")
    assert found[0]["file"] == "-"


def test_a_glob_of_summaries(joints):
    assert results("measure", "*.npz") == results("measure", *joints)
    assert run("summarize", "*.npz", "-o", "out.npz").exit_code == 0
    assert caldist.Joint.load("out.npz") == sum(joints.values())


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["a.npz", "rows.csv"], "a.npz is a summary and rows.csv is not"),
        (["rows.csv", "a.npz"], "make summaries of the tables first, with caldist summarize"),
        (["a.npz", "./a.npz"], "a.npz is named twice"),
        (["a.npz", "away.npz"], "away.npz: there is no such file"),
        (["a.npz", "-"], "cannot be combined"),
        (["damaged.npz"], "damaged.npz is not a saved joint"),
    ],
)
def test_files_that_do_not_go_together_are_refused(joints, tmp_path, command, files, message):
    (tmp_path / "damaged.npz").write_bytes(b"PK not really")
    result = run(*command_line(command, *files))
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert not list(tmp_path.glob("out.*"))


@pytest.mark.parametrize(
    ("command", "option", "remedy"),
    [
        *((command, option, "Leave it out") for command in COMMANDS[:4]
          for option in ("label", "score", "weight")),
        ("measure", "by", "Summarise each sub-group into a file of its own"),
        ("test", "clusters", "Pass the table itself"),
        ("compare", "clusters", "Pass the table itself"),
        ("report", "label", "Leave it out"),
        ("report", "clusters", "Pass the table itself"),
        ("report", "by", "into a file of its own"),
    ],
)  # fmt: skip
def test_what_a_summary_cannot_honour_is_refused(joints, command, option, remedy):
    result = run(*command_line(command, *joints), f"--{option}", "x")
    assert result.exit_code == 2
    assert f"--{option} was given with a summary" in result.stderr
    assert remedy in result.stderr


@pytest.mark.parametrize("measure", ["ece", "binned_ece", "log_loss"])
def test_a_limit_is_not_judged_by_a_value_without_a_bound(joints, measure):
    options = ("--measure", f"{measure},smooth_ce")
    result = run("measure", *joints, *options, "--fail-above", "0.9")
    assert result.exit_code == 2
    assert f"--fail-above cannot be judged by {measure}, which has no limits" in result.stderr
    assert "--measure smooth_ce" in result.stderr
    assert result.stdout == ""
    assert run("measure", *joints, *options).exit_code == 0


@pytest.mark.parametrize(("limit", "code"), [("0.001", 3), ("0.9", 0)])
def test_a_limit_on_summaries_with_a_bound(joints, limit, code):
    options = ("--measure", "smooth_ce,ece", "--require-below", limit)
    result = run("measure", *joints, *options)
    assert result.exit_code == code
    for name, joint in joints.items():
        found = caldist.gate(joint, tolerance=float(limit), measure="smooth_ce")
        assert (f"{name} (at most {up(found.upper, 6)})" in result.stderr) == (code == 3)


def test_a_limit_on_a_summary_of_exact_predictions(joints, rows):
    exact = caldist.Joint.from_arrays(rows["won"], rows["second"])
    exact.save("exact.npz")
    for limit, code in (("0.001", 1), ("0.9", 0)):
        options = ("--measure", "smooth_ce", "--fail-above", limit)
        result = run("measure", "exact.npz", *options)
        assert result.exit_code == code
        found = caldist.gate(
            rows["won"], rows["second"], tolerance=float(limit), measure="smooth_ce"
        )
        assert (f"exact.npz (at least {down(found.lower, 6)})" in result.stderr) == (code == 1)


def test_a_summary_of_no_rows_merges_and_says_nothing_else(joints):
    caldist.Joint.empty(16).save("empty.npz")
    for command in ("measure", "test"):
        result = run(command, "a.npz", "empty.npz")
        assert result.exit_code == 2
        assert "empty.npz is a summary of no rows" in result.stderr
    assert run("summarize", "a.npz", "empty.npz", "-o", "out.npz").exit_code == 0
    assert caldist.Joint.load("out.npz") == joints["a.npz"]


def test_weighted_rows_and_their_summary_agree(joints, rows):
    joint = caldist.Joint.from_arrays(rows["won"], rows["first"], sample_weight=rows["weight"])
    joint.save("weighted.npz")
    [line] = results("measure", "weighted.npz", "--measure", "smooth_ce")
    table = ("measure", "rows.csv", *NAMES, "--weight", "weight", "--measure", "smooth_ce")
    [expected] = results(*table)
    assert (line["smooth_ce"], line["rows"]) == (expected["smooth_ce"], expected["rows"])
