"""``caldist monitor``: each date once, whatever happens to the run."""

import bz2
import csv
import datetime as dt
import gzip
import io
import json
import lzma
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest

import caldist
from caldist._util.locks import locked
from caldist.cli import _days, _source
from caldist.cli.monitor import _until
from command_lines import run, write_csv, write_json_lines

pytest.importorskip("duckdb")

FIRST = dt.date(2026, 1, 1)
COLUMNS = ("--label", "y", "--score", "p", "--date", "day")


def make_days(count, size=120, drift=None, seed=0, groups=()):
    """Rows of many days; from the day ``drift`` on predictions are too low."""
    rng = np.random.default_rng(seed)
    parts = []
    for at in range(count):
        p = rng.beta(2, 3, size)
        moved = 0.2 if drift is not None and at >= drift else 0.0
        part = {
            "day": [FIRST + dt.timedelta(at)] * size,
            "y": (rng.random(size) < np.clip(p + moved, 0, 1)).astype(int),
            "p": p,
            "week": [at // 7] * size,
        }
        if groups:
            part["site"] = [groups[k % len(groups)] for k in range(size)]
        parts.append(part)
    return parts


def together(parts):
    return {name: [x for part in parts for x in part[name]] for name in parts[0]}


def expected(parts, **settings):
    monitor = caldist.Monitor(**settings)
    for part in parts:
        by = part.get("site") if settings.get("by") else None
        monitor.update(part["y"], part["p"], batch=part["day"][0], by=by)
    return monitor


PASSED = ("older", "late", "epochs")  # what lines of JSON have besides the fields of a step


def lines_of(result):
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return [{key: line[key] for key in line if key not in PASSED} for line in lines]


def passed_of(result):
    """Return what the lines, all of them, say of dates that were not taken: dates and rows."""
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    [found] = {tuple(tuple(line[key].values()) for key in PASSED) for line in lines}
    return dict(zip(PASSED, found, strict=True))


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_line_a_date_with_what_the_monitor_says(place):
    parts = make_days(12, drift=6)
    write_csv(place / "rows.csv", together(parts))
    result = run("monitor", "rows.csv", *COLUMNS, "--tolerance", 0.02, "--state", "s.npz",
                 "--format", "json")  # fmt: skip
    steps = expected(parts, tolerance=0.02).steps
    assert lines_of(result) == [step.to_dict() for step in steps]
    assert steps[-1].alarm
    assert "alarm on 2026-01-0" in result.stderr
    assert caldist.Monitor.load("s.npz").steps == steps


@pytest.mark.slow
def test_only_dates_after_the_last_one_are_taken(place):
    parts = make_days(9, drift=4)
    command = ("monitor", "day*.csv", *COLUMNS, "--tolerance", 0.02, "--state", "s.npz",
               "--format", "json")  # fmt: skip
    for at, part in enumerate(parts[:5]):
        write_csv(place / f"day{at}.csv", part)
    assert len(lines_of(run(*command))) == 5
    before = (place / "s.npz").read_bytes()
    again = run(*command)
    assert (again.exit_code, again.stdout) == (0, "")
    assert "no new dates after 2026-01-05" in again.stderr
    assert (place / "s.npz").read_bytes() == before
    for at, part in enumerate(parts[5:], start=5):
        write_csv(place / f"day{at}.csv", part)
    assert [line["batch"] for line in lines_of(run(*command))] == [
        str(FIRST + dt.timedelta(at)) for at in range(5, 9)
    ]
    assert caldist.Monitor.load("s.npz").steps == expected(parts, tolerance=0.02).steps
    for style in ("table", "csv"):
        nothing = run(*command[:-1], style)
        assert (nothing.exit_code, nothing.stdout) == (0, "")


def test_what_was_read_before_is_not_read_again(place):
    parts = make_days(3)
    write_csv(place / "rows.csv", together(parts))
    command = ("monitor", "rows.csv", *COLUMNS, "--state", "s.npz", "--format", "json")
    lines_of(run(*command))
    parts[0]["y"] = [7] * len(parts[0]["y"])  # long past
    parts += make_days(4)[3:]
    write_csv(place / "rows.csv", together(parts))
    assert [line["batch"] for line in lines_of(run(*command))] == ["2026-01-04"]


@pytest.mark.slow
def test_an_alarm_ends_with_exit_code_1_until_there_is_a_new_state(place):
    write_csv(place / "rows.csv", together(make_days(12, drift=3)))
    command = ("monitor", "rows.csv", *COLUMNS, "--tolerance", 0.02, "--state", "s.npz")
    assert run(*command).exit_code == 0
    again = run(*command, "--fail-on-alarm")
    assert again.exit_code == 1
    assert "the distance to calibration exceeds 0.02; probably since 2026-01-04" in again.stderr
    caldist.Monitor.load("s.npz").reset(dt.date(2026, 2, 1)).save("s.npz")
    assert run(*command, "--fail-on-alarm").exit_code == 0
    later = make_days(33)[31:]
    write_csv(place / "rows.csv", together(later))
    found = lines_of(run(*command, "--fail-on-alarm", "--format", "json"))
    assert [line["batch"] for line in found] == ["2026-02-01", "2026-02-02"]


def test_dates_are_taken_at_a_fixed_age(place, monkeypatch):
    write_csv(place / "rows.csv", together(make_days(10)))
    command = ("monitor", "rows.csv", *COLUMNS, "--state", "s.npz", "--format", "json")
    mature = ("--maturity", "30d")
    monkeypatch.setattr(sys.modules["caldist.cli.monitor"], "_today", lambda: dt.date(2026, 1, 30))
    early = run(*command, *mature)
    assert (early.exit_code, early.stdout) == (0, "")
    assert "no new dates up to 2025-12-31" in early.stderr
    assert not (place / "s.npz").exists()
    monkeypatch.setattr(sys.modules["caldist.cli.monitor"], "_today", lambda: dt.date(2026, 2, 3))
    taken = lines_of(run(*command, *mature))
    assert [line["batch"] for line in taken] == [f"2026-01-0{day}" for day in (1, 2, 3, 4)]
    taken = lines_of(run(*command, "--maturity", "4w"))
    assert [line["batch"] for line in taken] == ["2026-01-05", "2026-01-06"]


def test_age_is_counted_from_the_clock():
    today = dt.datetime.now(dt.UTC).date()
    assert _until("30d") in {today - dt.timedelta(30), today - dt.timedelta(29)}
    assert _until(None) is None


@pytest.mark.slow
def test_killed_at_any_moment_the_state_is_whole_or_unchanged(place):
    parts = make_days(6)
    write_csv(place / "rows.csv", together(parts[:3]))
    command = ["monitor", "rows.csv", *COLUMNS, "--state", "s.npz", "--format", "json"]
    lines_of(run(*command))
    before = (place / "s.npz").read_bytes()
    write_csv(place / "rows.csv", together(parts))
    kill = "os.kill(os.getpid(), signal.SIGKILL)"
    passed = {name: {"dates": 0, "rows": 0} for name in PASSED}
    passed["older"] = {"dates": 3, "rows": 360}
    lines = "".join(
        json.dumps(step.to_dict() | passed) + "\n" for step in expected(parts).steps[3:]
    )
    moments = {  # where it ends, and what was printed until then
        "caldist.monitoring.Monitor.update": "",
        "caldist.cli.monitor._show": "",
        "caldist.cli.monitor.keep_output": lines,
        "os.fsync": lines,
        "pathlib.Path.replace": lines,
    }
    for moment, printed in moments.items():
        module, _, name = moment.rpartition(".")
        code = (
            "import os, signal, pathlib, sys, caldist.monitoring, caldist.cli\n"
            f"owner = sys.modules.get({module!r}) or {module}\n"
            f"setattr(owner, {name!r}, lambda *a, **k: {kill})\n"
            f"caldist.cli.main({command!r})\n"
        )
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        assert ended.returncode == -signal.SIGKILL, (moment, ended.stderr)
        assert ended.stdout.decode() == printed, moment
        assert (place / "s.npz").read_bytes() == before
    assert run(*command).stdout == lines
    assert caldist.Monitor.load("s.npz").steps == expected(parts).steps
    assert run(*command).stdout == ""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_lines_that_could_not_be_printed_are_printed_by_the_next_run(place):
    write_csv(place / "rows.csv", together(make_days(3)))
    command = f'"{sys.executable}" -m caldist monitor rows.csv {" ".join(COLUMNS)} --state s.npz'

    def shell(streams):
        text = f"{command} --format json {streams}"
        return subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False)

    for streams in (">/dev/full", ">&-"):
        done = shell(streams)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1  # no traceback
        assert not (place / "s.npz").exists()
    log = place / "log.jsonl"
    log.write_text('{"batch": "2025-12-31"}\n{"batch": "2026-01', encoding="utf-8")  # cut off
    assert shell(">> log.jsonl").returncode == 0
    first, cut, *lines = log.read_text(encoding="utf-8").splitlines()
    assert (first, cut) == ('{"batch": "2025-12-31"}', '{"batch": "2026-01')
    assert [json.loads(line)["batch"] for line in lines] == [
        "2026-01-01", "2026-01-02", "2026-01-03"
    ]  # fmt: skip


@pytest.mark.slow
def test_killed_at_random_moments(place):
    parts = make_days(40, size=60)
    write_csv(place / "rows.csv", together(parts))
    command = [sys.executable, "-m", "caldist", "monitor", "rows.csv", *COLUMNS]
    command += ["--state", "s.npz", "--format", "json"]
    whole = expected(parts).steps
    rng = np.random.default_rng(1)
    days, printed = {step.batch.isoformat() for step in whole}, place / "log.jsonl"
    waits = [*rng.uniform(0.1, 2.5, 4), None]  # the last one ends by itself
    for wait in waits:
        with printed.open("ab") as log, subprocess.Popen(command, stdout=log) as job:
            try:
                job.wait(wait)
            except subprocess.TimeoutExpired:
                job.kill()
        if (place / "s.npz").exists():
            assert caldist.Monitor.load("s.npz").steps == whole
            lines = printed.read_text(encoding="utf-8").splitlines()
            assert {json.loads(line)["batch"] for line in lines} == days
    assert (place / "s.npz").exists()


def test_two_at_once(place):
    write_csv(place / "rows.csv", together(make_days(2)))
    command = ("monitor", "rows.csv", *COLUMNS, "--state", "s.npz")
    with locked(place / "s.npz"):
        refused = run(*command)
        child = subprocess.run(
            [sys.executable, "-m", "caldist", *command], capture_output=True, text=True, check=False
        )
    for code, words in ((refused.exit_code, refused.stderr), (child.returncode, child.stderr)):
        assert code == 2
        assert "'s.npz' is in use by another run" in words
        assert "Traceback" not in words
    assert not (place / "s.npz").exists()
    assert run(*command).exit_code == 0


@pytest.mark.slow
def test_many_sub_groups(place):
    names = [f"site {at:02}" for at in range(20)]
    parts = make_days(8, size=2_000, groups=names)
    bad = set(names[:3])
    rng = np.random.default_rng(3)
    for part in parts:
        off = np.array([0.3 if site in bad else 0.0 for site in part["site"]])
        part["y"] = (rng.random(2_000) < np.clip(part["p"] + off, 0, 1)).astype(int)
    write_csv(place / "rows.csv", together(parts))
    command = ("monitor", "rows.csv", *COLUMNS, "--tolerance", 0.02, "--by", "site")
    found = lines_of(run(*command, "--state", "s.npz", "--format", "json"))
    monitor = expected(parts, tolerance=0.02, by=names)
    assert found == [step.to_dict() for step in monitor.steps]
    assert {name for name, part in found[-1]["by"].items() if part["alarm"]} == bad
    table = run(*command, "--state", "t.npz")
    assert table.stdout.splitlines()[8].endswith("site 00, site 01, site 02")
    metrics = run(*command, "--state", "t.npz", "--format", "prometheus").stdout
    assert 'caldist_monitor_group_alarm{monitor="t",group="site 01"} 1' in metrics
    assert metrics.count("\ncaldist_monitor_group_alarm{") == 20


def test_a_new_sub_group_is_said_and_left_out(place):
    parts = make_days(4, groups=("north", "south"))
    write_csv(place / "rows.csv", together(parts[:3]))
    command = ("monitor", "rows.csv", *COLUMNS, "--by", "site", "--state", "s.npz",
               "--format", "json")  # fmt: skip
    lines_of(run(*command))
    parts[3]["site"] = ["west" if site == "south" else site for site in parts[3]["site"]]
    write_csv(place / "rows.csv", together(parts))
    result = run(*command)
    [line] = lines_of(result)
    assert line["n_rows"] == 60
    assert line["by"]["south"]["n_rows"] == 0
    assert "60 rows of the sub-group 'west' are left out" in result.stderr


def test_days_of_one_label_and_days_without_rows(place):
    parts = make_days(3)
    parts[1]["y"] = np.zeros(120, int)
    for part in parts:
        joint = caldist.Joint.from_arrays(part["y"], part["p"]).coarsen(14)
        joint.save(place / f"{part['day'][0]}.npz")
    caldist.Joint.empty(14).save(place / "2026-01-04.npz")
    found = lines_of(run("monitor", "2026*.npz", "--state", "s.npz", "--format", "json"))
    assert [line["n_rows"] for line in found] == [120, 120, 120, 0]
    state = caldist.Monitor.load("s.npz")
    assert state.last_batch == dt.date(2026, 1, 4)
    assert state.steps[:3] == expected(parts).steps
    assert "no new dates" in run("monitor", "2026*.npz", "--state", "s.npz").stderr


def test_the_first_day_may_have_no_rows(place):
    caldist.Joint.empty(14).save(place / "2026-01-04.npz")
    first = run("monitor", "2026-01-04.npz", "--state", "s.npz", "--format", "json")
    assert lines_of(first)[0]["value"] is None


def test_summaries_in_folders_and_in_several_files(place):
    parts = make_days(2, groups=("north", "south"))
    for part in parts:
        for site in ("north", "south"):
            folder = place / f"day={part['day'][0]}" / f"site={site}"
            folder.mkdir(parents=True)
            inside = np.array(part["site"]) == site
            for half in (0, 1):
                here = np.flatnonzero(inside)[half::2]
                joint = caldist.Joint.from_arrays(np.array(part["y"])[here], part["p"][here])
                joint.coarsen(16).save(folder / f"{half}.npz")
    options = ("--date", "day", "--by", "site", "--state", "s.npz", "--format", "json")
    found = lines_of(run("monitor", "day=*/*/*.npz", *options))
    steps = expected(parts, by=("north", "south")).steps
    for line, step in zip(found, steps, strict=True):
        assert line["log_e_value"] == pytest.approx(step.log_e_value, abs=1e-9)
        assert line["by"]["south"]["n_rows"] == 60


def test_coarse_summaries(place):
    for part in make_days(2):
        joint = caldist.Joint.from_arrays(part["y"], part["p"]).coarsen(10)
        joint.save(place / f"{part['day'][0]}.npz")
    command = ("monitor", "*.npz", "--state", "s.npz")
    assert len(lines_of(run(*command, "--format", "json"))) == 2
    assert caldist.Monitor.load("s.npz").bits == 10
    again = run(*command)  # though the pattern matches the state
    assert (again.exit_code, again.stdout) == (0, "")


def test_weights_and_rows_without_a_label(place):
    parts = make_days(3)
    rng = np.random.default_rng(2)
    rows = together(parts)
    rows["w"] = rng.integers(1, 4, len(rows["y"]))
    rows["y"] = ["" if at == 5 else y for at, y in enumerate(rows["y"])]
    write_csv(place / "rows.csv", rows)
    command = ("monitor", "rows.csv", *COLUMNS, "--weight", "w", "--state", "s.npz")
    refused = run(*command)
    assert refused.exit_code == 2
    assert (
        "rows.csv, line 7: column 'y' is empty: a value is missing. Fill it, or leave such rows out"
        in refused.stderr
    )
    assert "1 with a missing label" in refused.stderr
    assert "--invalid count" in refused.stderr
    assert not (place / "s.npz").exists()
    counted = run(*command, "--invalid", "count", "--format", "json")
    assert [line["n_rows"] for line in lines_of(counted)] == [119, 120, 120]
    assert "1 rows were left out: 1 with a missing label" in counted.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_first_bad_cell_is_named(place, kind):
    """Of the dates that are taken: what is wrong with others is not asked."""
    frame = pd.DataFrame(together(make_days(3))).astype({"p": object, "day": str})
    frame["p"] = frame["p"].astype(str) if kind == "csv" else frame["p"].astype(float)
    good = frame.copy()
    frame.loc[[3, 250, 300], "p"] = ["1.5", "61%", "1.7"] if kind == "csv" else [1.5, 1.6, 1.7]
    written = (place / f"rows.{kind}", {"index": False})

    def write(table):
        (table.to_csv if kind == "csv" else table.to_parquet)(written[0], **written[1])

    command = ("monitor", written[0].name, *COLUMNS, "--state", "s.npz")
    write(frame)
    refused = run(*command)
    assert refused.exit_code == 2
    if kind == "csv":
        assert "rows.csv, line 252: column 'p' is '61%': it is a percentage" in refused.stderr
    else:
        assert "rows.parquet, row 4: column 'p' is '1.5'" in refused.stderr
    assert "3 with a bad prediction" in refused.stderr
    write(good.iloc[:120])
    assert run(*command).exit_code == 0
    write(frame)  # whose first day is taken already
    again = run(*command)
    line = "line 252" if kind == "csv" else "row 251"
    assert f"rows.{kind}, {line}: column 'p'" in again.stderr
    assert "2 with a bad prediction" in again.stderr


def test_files_too_large_to_be_read_again_are_refused_by_counts(place, monkeypatch):
    rows = together(make_days(2))
    rows["p"][5] = 1.5
    write_csv(place / "rows.csv", rows)
    monkeypatch.setattr(_source, "_READ_AGAIN", 100)
    refused = run("monitor", "rows.csv", *COLUMNS, "--state", "s.npz")
    assert refused.exit_code == 2
    assert "Error: rows.csv has rows that are not valid: 1 with a bad prediction" in refused.stderr


ROWS = {"y": [0, 1, 0, 1], "p": [0.1, 0.5, 0.3, 0.7]}
DAYS = ["2026-01-02", "2026-01-02", "2026-01-03", "2026-02-01"]
WRITTEN = [dt.date.fromisoformat(day) for day in DAYS]


def write_dates(place, kind, values, encoding="utf-8"):
    """Write four rows with such dates; return what to pass."""
    if kind == "folders":
        for at, value in enumerate(values):
            folder = place / f"day={quote(str(value), safe='')}"
            folder.mkdir(exist_ok=True)
            pd.DataFrame({name: [column[at]] for name, column in ROWS.items()}).to_parquet(
                folder / f"{at}.parquet"
            )
        return "day=*/*.parquet"
    if kind == "summaries":
        for at, value in enumerate(values):
            joint = caldist.Joint.from_arrays(ROWS["y"][at : at + 1], ROWS["p"][at : at + 1])
            folder = place / f"day={value}"
            folder.mkdir(exist_ok=True)
            joint.coarsen(14).save(folder / f"{at}.npz")
        return "day=*/*.npz"
    rows = {"day": values, **ROWS}
    if kind == "parquet":
        pd.DataFrame(rows).to_parquet(place / "rows.parquet")
    elif kind == "jsonl":
        write_json_lines(place / "rows.jsonl", rows)
    else:
        write_csv(place / f"rows.{kind}", rows)
        content = (place / f"rows.{kind}").read_text(encoding="utf-8")
        (place / f"rows.{kind}").write_text(content, encoding=encoding)
    return f"rows.{kind}"


def monitored(files, *options, state="s.npz", style="json"):
    columns = () if "npz" in files else COLUMNS[:4]
    given = (*columns, "--date", "day", "--state", state, "--format", style, *options)
    return run("monitor", files, *given)


KINDS = ("csv", "jsonl", "parquet", "folders", "summaries")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("%d/%m/%Y", "it is not an ISO date such as 2026-11-15. It may be %d/%m/%Y or %m/%d/%Y"),
        ("%d-%m-%Y", "It may be %d-%m-%Y or %m-%d-%Y: say which with --date-format."),
        ("%d-%m-%y", "It may be %d-%m-%y or"),
        ("%Y%m%d", "It looks like %Y%m%d: pass --date-format '%Y%m%d'."),
        ("%d %b %Y", "It looks like %d %b %Y"),
        ("day %j of %Y", "pass the format of the dates, such as --date-format %d/%m/%Y."),
    ],
)
def test_dates_that_are_not_iso_are_refused_until_their_format_is_named(
    place, kind, written, message
):
    """As text 01/02/2026 is before 02/01/2026, and a reader that guesses takes it for January."""
    if kind == "summaries" and "/" in written:
        written, message = "%d.%m.%Y", "It looks like %d.%m.%Y"
    texts = [day.strftime(written) for day in WRITTEN]
    files = write_dates(place, kind, texts)
    refused = monitored(files)
    assert (refused.exit_code, refused.stdout) == (2, ""), refused.output
    assert message in refused.stderr
    assert any(repr(text) in refused.stderr for text in texts)
    where = {"csv": "rows.csv, line 2: column 'day'", "jsonl": "rows.jsonl, line 1: column 'day'"}
    where |= {"parquet": "rows.parquet, row 1: column 'day'", "folders": "the folder of day="}
    assert where.get(kind, "the date of day=") in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert not (place / "s.npz").exists()
    found = monitored(files, "--date-format", written)
    assert [line["batch"] for line in lines_of(found)] == [*dict.fromkeys(DAYS)]
    again = monitored(files, "--date-format", written)
    assert (again.exit_code, again.stdout) == (0, "")


@pytest.mark.parametrize("kind", KINDS)
def test_iso_dates_of_every_kind(place, kind):
    files = write_dates(place, kind, DAYS)
    assert [line["batch"] for line in lines_of(monitored(files))] == [*dict.fromkeys(DAYS)]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_times_of_day_are_taken_for_their_date_in_utc(place, kind):
    times = ["2026-01-01T01:00:00", "2026-01-01 23:00", "2026-01-02T00:30:00+01:00", "2026-01-05"]
    found = lines_of(monitored(write_dates(place, kind, times)))
    assert [(line["batch"], line["n_rows"]) for line in found] == [
        ("2026-01-01", 3), ("2026-01-05", 1)
    ]  # fmt: skip


def test_the_first_date_of_another_format_is_named(place):
    """The days tell the formats apart, wherever they stand."""
    files = write_dates(place, "csv", ["2026-01-02", "05/01/2026", "31/01/2026", "01/02/2026"])
    refused = monitored(files)
    assert "rows.csv, line 3: column 'day' is '05/01/2026'" in refused.stderr
    assert "It looks like %d/%m/%Y: pass --date-format '%d/%m/%Y'." in refused.stderr
    other = monitored(files, "--date-format", "%d/%m/%Y")
    assert other.exit_code == 2
    assert "line 2: column 'day' is '2026-01-02': it does not follow --date-f" in other.stderr


@pytest.mark.parametrize("pack", [gzip, bz2, lzma], ids=lambda pack: pack.__name__)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_files_that_are_compressed(place, kind, pack):
    name = write_dates(place, kind, DAYS)
    suffix = {gzip: "gz", bz2: "bz2", lzma: "xz"}[pack]
    packed = pack.compress((place / name).read_bytes())
    (place / f"{name}.{suffix}").write_bytes(packed)
    found = lines_of(monitored(f"{name}.{suffix}"))
    assert [line["batch"] for line in found] == [*dict.fromkeys(DAYS)]
    (place / f"{name}.{suffix}").write_bytes(packed[:-9])
    damaged = monitored(f"{name}.{suffix}", state="t.npz")
    assert (damaged.exit_code, damaged.stdout) == (2, "")
    assert f"{name}.{suffix} cannot be unpacked, it is damaged or cut off" in damaged.stderr
    assert not (place / "t.npz").exists()


def test_dates_of_files_that_are_read_in_memory(place):
    texts = [day.strftime("%d%m%Y") for day in WRITTEN]  # 02012026 is no number
    files = write_dates(place, "csv", texts, encoding="utf-16")
    assert "rows.csv, line 2: column 'day' is '02012026'" in monitored(files).stderr
    found = lines_of(monitored(files, "--date-format", "%d%m%Y"))
    assert [line["batch"] for line in found] == [*dict.fromkeys(DAYS)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([1, 1, 2, 10], (), "is '1': it is not an ISO date"),
        ([1767312000] * 4, (), "It looks like seconds since 1970: make dates of them first."),
        ([1767312000123] * 4, (), "It looks like milliseconds since 1970"),
        (["2026-W01"] * 4, (), "is '2026-W01': it is not an ISO date"),
        (["epoch", "infinity", "a", "b"], (), "is 'epoch': it is not an ISO date"),
        (["2026-02-30"] * 4, (), "is '2026-02-30': it is not an ISO date"),
        (["02/01/26"] * 4, ("%d/%m/%Y",), "is '02/01/26': it does not follow"),
        (WRITTEN, ("%d/%m/%Y",), "column 'day' holds DATE, which is no text. Leave --date-for"),
        (DAYS, ("%d/%m",), "--date-format is '%d/%m': it does not say year, month and day"),
        (DAYS, ("%Q",), "--date-format is '%Q'"),
        ([0.5] * 4, (), "column 'day' holds DOUBLE, which names no days"),
        (np.array([58000 - 1970] * 4, "M8[Y]").astype("M8[s]"), (), "mixed up?"),
    ],
    ids=str,
)
def test_what_is_no_date_is_refused(place, values, options, message):
    files = write_dates(place, "parquet", values)
    refused = monitored(files, *(("--date-format", *options) if options else ()))
    assert refused.exit_code == 2, refused.output
    assert message in refused.stderr
    assert not (place / "s.npz").exists()


def test_months_and_long_formats_are_dates_too(place):
    files = write_dates(place, "csv", ["2026-01", "2026-01", "2026-02", "2026-03"])
    found = lines_of(monitored(files, "--date-format", "%Y-%m"))
    assert [line["batch"] for line in found] == ["2026-01-01", "2026-02-01", "2026-03-01"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_dates_that_the_state_is_past_are_counted(place, kind):
    rows_known = kind != "summaries"
    files = write_dates(place, kind, ["2026-01-02", "2026-01-02", "2026-01-05", "2026-01-05"])
    first = monitored(files)
    nothing = (0, 0)
    assert passed_of(first) == dict.fromkeys(PASSED, nothing)
    assert first.stderr == ""
    for path in place.glob("day=*/*"):
        path.unlink()
    files = write_dates(place, kind, ["2026-01-02", "2026-01-03", "2026-01-04", "2026-01-06"])
    second = monitored(files)
    rows = {key: count if rows_known else None for key, count in (("older", 3), ("late", 2))}
    assert passed_of(second) == {
        "older": (3, rows["older"]), "late": (2, rows["late"]), "epochs": nothing
    }  # fmt: skip
    late = (
        "2 dates came too late, before the last date in the state, and were never counted: 2026-01-"
    )
    assert late in second.stderr
    third = monitored(files)
    assert (third.exit_code, third.stdout) == (0, "")
    assert "no new dates after 2026-01-06." in third.stderr
    assert "4 dates: not later than the last date in the state." in third.stderr
    table = monitored(files, "--format", "table", state="t.npz")
    assert "Skipped" not in table.output


def test_csv_files_in_folders_of_dates(place):
    """The column of dates is in the names of folders, and in no file."""
    for at, value in enumerate(["2026-01-02", "2026-01-03"]):
        folder = place / f"day={value}"
        folder.mkdir()
        write_csv(folder / "rows.csv", {name: column[2 * at :] for name, column in ROWS.items()})
    found = monitored("day=*/*.csv")
    assert found.exit_code == 0, found.stderr
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    assert [line["batch"] for line in lines] == ["2026-01-02", "2026-01-03"]


def test_dates_before_a_reset_are_not_late(place):
    assert monitored(write_dates(place, "csv", DAYS)).exit_code == 0
    caldist.Monitor.load("s.npz").reset(dt.date(2026, 2, 5)).save("s.npz")
    days = ["2026-01-02", "2026-01-20", "2026-02-05", "2026-02-07"]
    again = monitored(write_dates(place, "csv", days))
    assert [line["batch"] for line in lines_of(again)] == days[2:]
    assert passed_of(again) == {"older": (2, 2), "late": (0, 0), "epochs": (0, 0)}
    days = ["2026-01-02", "2026-02-05", "2026-02-06", "2026-02-08"]
    again = monitored(write_dates(place, "csv", days))
    assert passed_of(again) == {"older": (3, 3), "late": (1, 1), "epochs": (0, 0)}


@pytest.mark.parametrize("style", ["json", "table"])
def test_dates_where_clocks_begin_are_counted(place, style):
    """A date that is missing, and seconds that were read as milliseconds."""
    files = write_dates(
        place, "parquet", ["1970-01-01", "1970-01-21", "2026-01-02", "2026-01-02"]
    )  # fmt: skip
    for epochs, taken in ((True, 3), (True, 0)):
        result = monitored(files, style=style)
        said = "2 rows of 2 dates in January 1970, the Unix epoch: are dates missing, or sec"
        assert (said in result.output) == epochs
        if style == "json" and taken:
            assert passed_of(result)["epochs"] == (2, 2)
            assert len(lines_of(result)) == taken


def test_a_day_without_rows_in_a_file_of_its_own_is_no_empty_input(place):
    for at, part in enumerate(make_days(2)):
        pd.DataFrame(part if at else {k: v[:0] for k, v in part.items()}).astype(
            {"day": "datetime64[s]", "y": float, "p": float, "week": float}
        ).to_parquet(place / f"{at}.parquet")
    assert run("monitor", "0.parquet", *COLUMNS, "--state", "s.npz").exit_code == 2
    found = lines_of(run("monitor", "?.parquet", *COLUMNS, "--state", "s.npz", "--format", "json"))
    assert [line["batch"] for line in found] == ["2026-01-02"]


def test_a_state_whose_last_batch_is_no_date_is_refused(place):
    monitor = caldist.Monitor()
    monitor.update([0, 1], [0.2, 0.7], batch=5)
    monitor.save("s.npz")
    refused = monitored(write_dates(place, "csv", DAYS))
    assert refused.exit_code == 2
    assert "the last date of the state is 5: it is no date. Go on in Python" in refused.stderr


def test_folders_and_times_of_day_in_parquet(place):
    parts = make_days(4)
    for part in parts:
        folder = place / f"day={part['day'][0]}"
        folder.mkdir()
        times = pd.to_datetime(part["day"]) + pd.to_timedelta(np.arange(120), "min")
        content = {"y": part["y"], "p": part["p"], "at": times, "zoned": times.tz_localize("UTC")}
        pd.DataFrame(content).to_parquet(folder / "rows.parquet")
    steps = [step.to_dict() for step in expected(parts).steps]
    for column in ("day", "at", "zoned"):
        found = run("monitor", "day=*/*.parquet", *COLUMNS[:-1], column, "--state",
                    f"{column}.npz", "--format", "json")  # fmt: skip
        assert lines_of(found) == steps


def test_days_are_read_in_pieces_that_fit_in_memory(place, monkeypatch):
    parts = make_days(7, groups=("north", "south"))
    write_csv(place / "rows.csv", together(parts))
    monkeypatch.setattr(_days, "_MEMORY", 250 * 448)
    command = ("monitor", "rows.csv", *COLUMNS, "--by", "site", "--state", "s.npz")
    found = lines_of(run(*command, "--format", "json"))
    assert found == [step.to_dict() for step in expected(parts, by=("north", "south")).steps]


HOSTILE = ('a"b\\c\nd', "<script>alert('x')</script>", "=1+1", "{x}", "-", "a, b")


@pytest.mark.slow
def test_hostile_names(place):
    parts = make_days(4, size=600, groups=HOSTILE, drift=0)
    write_csv(place / "rows.csv", together(parts))
    command = ("monitor", "rows.csv", *COLUMNS, "--by", "site", "--tolerance", 0.01)
    for style in ("table", "json", "csv", "prometheus"):
        result = run(*command, "--state", f"{style}.npz", "--format", style)
        assert result.exit_code == 0, result.output
        assert len(result.stderr.splitlines()) <= 1
        if style == "table":
            assert len(result.stdout.splitlines()) == 5
        elif style == "json":
            assert set(lines_of(result)[-1]["by"]) == set(HOSTILE)
        elif style == "csv":
            lines = list(csv.DictReader(io.StringIO(result.stdout)))
            assert [line["date"] for line in lines][-1] == "2026-01-04"
            assert HOSTILE[0] in lines[-1]["groups"]
        else:
            assert 'group="a\\"b\\\\c\\nd"}' in result.stdout
            for line in result.stdout.splitlines():
                assert line.startswith(("# HELP caldist_", "# TYPE caldist_", "caldist_monitor_"))


def test_pvalues_below_all_floats_are_not_shown_as_0(place):
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    columns = {"y": (rng.random(p.size) < p**3).astype(int), "p": p}
    write_csv(place / "rows.csv", columns | {"day": np.full(p.size, "2026-01-01")})
    done = run("monitor", "rows.csv", *COLUMNS, "--state", "s.npz")
    assert "  < 1e-300  " in done.stdout
    (step,) = caldist.Monitor.load("s.npz").steps
    assert step.pvalue == 0
    assert ": ALARM, p < 1e-300, distance " in str(step)


def test_prometheus_says_where_the_monitor_stands_without_new_dates(place):
    write_csv(place / "rows.csv", together(make_days(3)))
    command = ("monitor", "rows.csv", *COLUMNS, "--state", "s.npz", "--format", "prometheus")
    first, second = run(*command), run(*command)
    assert first.stdout == second.stdout
    assert 'caldist_monitor_alarm{monitor="s"} 0\n' in first.stdout
    assert "caldist_monitor_tolerance" not in first.stdout
    seconds = int(dt.datetime(2026, 1, 3, tzinfo=dt.UTC).timestamp())
    assert (
        f'caldist_monitor_last_batch_timestamp_seconds{{monitor="s"}} {seconds}\n' in second.stdout
    )
    empty = run(*command[:2], *COLUMNS, "--state", "t.npz", "--format", "prometheus",
                "--maturity", "99999d")  # fmt: skip
    assert (empty.exit_code, empty.stdout) == (0, "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tolerance", "0.03"], "--tolerance is 0.03: the monitor in 's.npz' was made with"),
        (["--false-alarm-rate", "0.1"], "made with 0.05"),
        (["--run-length", "100"], "--run-length is 100.0"),
        (["--dependent-dates"], "--dependent-dates is 'batches'"),
        (["--by", "p"], "was made without sub-groups"),
        (["--maturity", "30"], "--maturity is '30': it must be a number of days or weeks"),
        (["--maturity", "999999w"], "before the first date"),
        (["--date", "when"], "column 'when' is not there"),
        (["--date", "p"], "column 'p' holds DOUBLE, which names no days"),
        (["--date", "week"], "column 'week' is '0': it is not an ISO date"),
        (["--label", "p", "--score", "y"], "not valid"),
        (["--score", "y"], "--label, --score and --date"),
        (["--state", "s.json"], "--state is 's.json': its name must end in .npz"),
        (["--state", "away/s.npz"], "there is no folder 'away'"),
        (["--state", "rows.npz"], "rows.npz is not a saved monitor"),
        (["--out", "page.pdf"], "--out is 'page.pdf'"),
    ],
)
def test_what_is_refused_leaves_the_state_as_it_was(place, options, message):
    parts = make_days(3)
    write_csv(place / "rows.csv", together(parts[:2]))
    caldist.Joint.from_arrays([0, 1], [0.5, 0.5]).save("rows.npz")
    command = ["monitor", "rows.csv", *COLUMNS, "--state", "s.npz"]
    assert run(*command, "--tolerance", 0.02).exit_code == 0
    before = (place / "s.npz").read_bytes()
    write_csv(place / "rows.csv", together(parts))
    replaced = set(options[::2]) - ({"--score"} if options[0] == "--score" else set())
    pairs = zip(command[2::2], command[3::2], strict=True)
    command = [*command[:2], *(part for pair in pairs if pair[0] not in replaced for part in pair)]
    refused = run(*command, *options)
    assert refused.exit_code == 2, refused.output
    assert message in refused.stderr
    assert refused.stdout == ""
    assert len(refused.stderr.splitlines()) == 1
    assert (place / "s.npz").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rows.csv", "--label", "y", "--score", "p"], "--label, --score and --date"),
        (["2026-01-01.npz", "--label", "y"], "--label was given with a summary"),
        (["2026-01-01.npz", "--date", "day"], "does not lie in a folder day=…"),
        (["2026-01-01.npz", "--by", "site"], "does not lie in a folder site=…"),
        (["2026-01-01.npz", "2026-01-01.npz"], "is named twice"),
        (["week.npz", "--maturity", "1d"], "week.npz is named 'week', which is no date"),
        (["absent.csv", *COLUMNS], "there is no such file"),
        (["gaps.csv", *COLUMNS], "column 'day' is missing in 1 rows, the first at gaps.csv, line"),
        (["gaps.csv", *COLUMNS[:-1], "date", "--by", "day"], "column 'day' is missing in 1 rows"),
        (["gaps.csv", *COLUMNS[:-1], "date", "--by", "p"], "column 'p' holds DOUBLE"),
        (["rows.csv", *COLUMNS, "--tolerance", "2"], "Error: --tolerance is 2"),
        (["rows.csv", *COLUMNS, "--run-length", "0.5"], "Error: --run-length is 0.5"),
    ],
)
def test_bad_input_makes_no_state(place, arguments, message):
    rows = together(make_days(2))
    write_csv(place / "rows.csv", rows)
    gaps = {"day": ["", *rows["day"][1:]], "date": rows["day"]}
    write_csv(place / "gaps.csv", rows | gaps)
    joint = caldist.Joint.from_arrays(rows["y"], rows["p"])
    for name in ("2026-01-01", "week"):
        joint.coarsen(14).save(f"{name}.npz")
    refused = run("monitor", *arguments, "--state", "s.npz")
    assert refused.exit_code == 2, refused.output
    assert message in refused.stderr
    assert "Traceback" not in refused.output
    assert not (place / "s.npz").exists()


def test_a_damaged_state_is_not_overwritten(place):
    write_csv(place / "rows.csv", together(make_days(2)))
    (place / "s.npz").write_bytes(b"PK\x03\x04 not a state")
    refused = run("monitor", "rows.csv", *COLUMNS, "--state", "s.npz")
    assert refused.exit_code == 2
    assert (place / "s.npz").read_bytes() == b"PK\x03\x04 not a state"


def test_common_shocks_and_run_lengths_reach_the_monitor(place):
    parts = make_days(3)
    write_csv(place / "rows.csv", together(parts))
    options = ("--dependent-dates", "--run-length", 500, "--false-alarm-rate", 0.1)
    result = run("monitor", "rows.csv", *COLUMNS, *options, "--state", "s.npz", "--format", "json")
    settings = {"dependence": "batches", "run_length": 500, "false_alarm_rate": 0.1}
    assert lines_of(result) == [step.to_dict() for step in expected(parts, **settings).steps]


@pytest.mark.skipif(os.name == "nt", reason="locks of Windows are the system's own")
def test_a_lock_ends_with_its_holder(tmp_path):
    code = (
        "import os, signal, sys, pathlib\n"
        "from caldist._util.locks import locked\n"
        "with locked(pathlib.Path(sys.argv[1])):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "s.npz"
    ended = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    with locked(path), pytest.raises(BlockingIOError, match="in use"), locked(path):
        pass
    with pytest.raises(FileNotFoundError, match="make it first"), locked(tmp_path / "a" / "b"):
        pass


def test_a_summary_whose_name_is_no_date_is_refused(place):
    caldist.Joint.from_arrays([0, 1], [0.25, 0.5]).coarsen(14).save(place / "a.npz")
    result = run("monitor", "a.npz", "--state", "s.npz")
    assert result.exit_code == 2
    assert "a.npz is named 'a', which is no date. Name summaries by their dates" in result.stderr
    assert "--date day" in result.stderr
    assert not (place / "s.npz").exists()


def test_words_for_labels_and_rows_without_them(place):
    parts = make_days(3)
    plain = expected(parts).steps
    rows = together(parts)
    command = (*COLUMNS, "--format", "json", "--state")
    words = {"text": np.array(["well", "ill"]), "yes": np.array(["no", "yes"])}
    for at, (kind, pair) in enumerate(words.items()):
        write_csv(place / "rows.csv", rows | {"y": pair[rows["y"]]})
        positive = ("--positive", "ill") if kind == "text" else ()
        found = lines_of(run("monitor", "rows.csv", *positive, *command, f"{at}.npz"))
        assert [line["log_e_value"] for line in found] == [step.log_e_value for step in plain]
    write_csv(place / "rows.csv", rows | {"y": pair[rows["y"]]}, ";")
    content = (place / "rows.csv").read_bytes()
    (place / "rows.csv").write_bytes(content.decode().encode("utf-16"))
    found = lines_of(run("monitor", "rows.csv", *command, "in_memory.npz"))
    assert [line["log_e_value"] for line in found] == [step.log_e_value for step in plain]
    wrong = run("monitor", "rows.csv", "--positive", "sick", *command, "w.npz")
    assert wrong.exit_code == 2
    assert "--positive is 'sick': column 'y' has the labels 'no', 'yes'" in wrong.stderr


@pytest.mark.slow
def test_rows_without_a_value_are_left_out_where_that_is_asked_for(place):
    rows = together(make_days(2))
    rows["y"] = ["", *rows["y"][1:]]
    write_csv(place / "rows.csv", rows)
    command = ("monitor", "rows.csv", *COLUMNS, "--format", "json", "--state")
    assert run(*command, "a.npz").exit_code == 2
    result = run(*command, "b.npz", "--drop-missing")
    assert [line["n_rows"] for line in lines_of(result)] == [119, 120]
    assert "1 rows were left out: 1 with a missing label" in result.stderr
    write_csv(place / "rows.csv", rows | {"p": [2.0, *rows["p"][1:]], "y": [1, *rows["y"][1:]]})
    refused = run(*command, "c.npz", "--drop-missing")
    assert refused.exit_code == 2
    assert "1 with a bad prediction" in refused.stderr
