"""The page about a monitor and the section of a report: what they say, also in a real browser."""

import datetime as dt
import json
import re
from html import escape, unescape
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

import caldist
from caldist._util.numbers import down, number, probability
from caldist.cli._prometheus import exposition
from caldist.reporting import MonitorReport, Report, monitor_report
from command_lines import HAS_DUCKDB, run, write_csv
from pages import PROBE, browse

HOSTILE = ("<script>alert('x')</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}")


def watched(days=20, drift=10, by=None, size=300, **settings):
    rng = np.random.default_rng(0)
    monitor = caldist.Monitor(by=by, **settings)
    for day in range(days):
        p = rng.beta(2, 3, size)
        moved = 0.2 if day >= drift else 0.0
        groups = rng.choice(by, size) if by else None
        y = rng.random(size) < np.clip(p + moved, 0, 1)
        monitor.update(y, p, batch=dt.date(2026, 1, 1) + dt.timedelta(day), by=groups)
    return monitor


@pytest.fixture(scope="module")
def alarmed():
    return monitor_report(
        watched(by=[f"site {at:02}" for at in range(20)], size=2_000, tolerance=0.02),
        name="churn model",
    )


def text_of(page):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


@pytest.mark.slow
def test_an_alarm_is_said_with_since_when_and_where(alarmed):
    assert alarmed.alarm
    assert alarmed.verdict.startswith("ALARM on 2026-01-1")
    assert "probably since 2026-01-11. The distance to calibration exceeds 0.02" in alarmed.verdict
    for group in alarmed.groups[:5]:
        words = f"{group.group} (distance {number(group.value)}, at least {down(group.lower)}; "
        assert f"{words}predictions now too low by 0.1" in alarmed.verdict
    assert alarmed.verdict.endswith("; and 15 more.")
    assert str(alarmed) == f"churn model: {alarmed.verdict}"
    found = text_of(alarmed.to_html())
    assert alarmed.verdict in found
    assert "20 batches, 40,000 rows in all." in found
    assert "if nothing changed ." not in found  # something did


@pytest.fixture(scope="module")
def one_site():
    """From the day 31 on one of eight sites is off by 0.6 logits."""
    rng, names = np.random.default_rng(0), [f"site {at}" for at in range(8)]
    monitor = caldist.Monitor(tolerance=0.01, by=names)
    for day in range(45):
        p, site = rng.beta(2, 5, 20_000), rng.integers(0, 8, 20_000)
        logit = np.log(p / (1 - p)) + np.where((site == 3) & (day >= 31), 0.6, 0)
        y = rng.random(20_000) < 1 / (1 + np.exp(-logit))
        date = dt.date(2025, 4, 1) + dt.timedelta(day)
        monitor.update(y, p, batch=date, by=np.array(names)[site])
    return monitor


@pytest.mark.slow
def test_an_onset_is_that_of_its_own_alarm(one_site):
    """Later the evidence is largest since a batch after the alarm."""
    steps = one_site.steps
    first = next(step for step in steps if step.alarm)
    assert first.onset <= first.batch < steps[-1].onset
    found = monitor_report(one_site)
    assert found.verdict.startswith(f"ALARM on {first.batch}, probably since {first.onset}. The di")
    assert found.onset == str(first.onset)
    assert str(steps[-1].onset) not in found.verdict
    [curve, group] = found.figures[0].models
    assert curve.batch[curve.onset] == str(first.onset)
    assert curve.since == str(steps[-1].onset)
    assert group.name == "site 3"
    seconds = dt.datetime.combine(first.onset, dt.time(), dt.UTC).timestamp()
    told = f'caldist_monitor_onset_timestamp_seconds{{monitor="m"}} {seconds:.0f}'
    assert told in exposition(one_site, "m").splitlines()


def test_a_verdict_has_the_numbers_of_the_table(one_site):
    found = monitor_report(one_site)
    [group] = [group for group in found.groups if group.alarm]
    at_fault = f"site 3 (distance {number(group.value)}, at least {down(group.lower)}; predictions"
    assert f"At fault: {at_fault} now too low by 0.1" in found.verdict
    assert "(p < 1e-" in found.verdict or f"(p = {found.pvalue:.2g})" in found.verdict
    page = text_of(found.to_html())
    row = f"site 3 yes {probability(group.pvalue)} {number(group.value)} {down(group.lower)}"
    assert f"{row} {group.onset} {group.direction}" in page
    assert found.value < found.tolerance < group.lower
    assert f"of all rows since 2025-04-01: {number(found.value)}" in page
    assert (
        "That is within 0.01, because it also counts rows from before the change and rows of"
        in page
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda logit: logit + 0.5, "too low by 0.0"),
        (lambda logit: logit - 0.5, "too high by 0.0"),
        (lambda logit: 0.5 * logit, "too extreme: too low where low, too high where high"),
        (lambda logit: 2.0 * logit, "too cautious: too high where low, too low where high"),
        (lambda logit: logit + np.sin(5 * logit), "too high in some ranges and too low in others"),
    ],
)
def test_which_way_predictions_err(change, words):
    rng, monitor = np.random.default_rng(1), caldist.Monitor()
    p = rng.uniform(0.05, 0.95, 40_000)
    y = rng.random(p.size) < 1 / (1 + np.exp(-change(np.log(p / (1 - p)))))
    monitor.update(y, p, batch="first")
    verdict = monitor_report(monitor).verdict
    assert f"Predictions are now {words}" in verdict
    assert "(p < 1e-300)" in verdict or monitor.steps[-1].pvalue > 0


@pytest.mark.slow
def test_no_alarm_is_said_with_what_is_known():
    found = monitor_report(watched(drift=99, tolerance=0.05))
    assert found.verdict.startswith("No alarm after 20 batches: the data are compatible with a")
    assert "if nothing changed" in text_of(found.to_html())
    perfect = monitor_report(watched(drift=99, days=1))
    assert perfect.verdict.startswith("No alarm after 1 batch: the data are compatible with calib")


def test_settings_are_said():
    long = monitor_report(watched(run_length=200)).verdict
    assert "false alarms are one in 200 batches or more, on average" in long
    shared = monitor_report(watched(dependence="batches"))
    assert shared.upper is None
    assert "—" in shared.to_html()


def test_a_monitor_without_rows_has_a_page():
    monitor = caldist.Monitor()
    monitor.update([], [], batch="first")
    assert "no rows yet" in text_of(monitor_report(monitor).to_html())
    with pytest.raises(ValueError, match="no batches yet"):
        monitor_report(caldist.Monitor())


@pytest.mark.slow
def test_a_page_of_many_batches_and_sub_groups_stays_small():
    monitor = watched(days=200, by=[f"g{at}" for at in range(40)], size=200)
    page = monitor_report(monitor).to_html()
    assert len(page.encode()) < 500_000
    assert "the last 30 are shown" in page
    assert "2026-07-19" in page


def test_the_page_stands_alone(alarmed):
    page = alarmed.to_html()
    assert "<script" not in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)


def test_frames_have_a_line_for_each_batch(alarmed):
    assert len(alarmed.to_frame("pandas")) == 20


@pytest.fixture(scope="module")
def with_section():
    monitor = watched(by=("north", "south"), tolerance=0.02)
    return caldist.report(monitor.joint, monitor=monitor, n_resamples=99)


@pytest.mark.slow
def test_a_report_has_a_section(with_section):
    assert isinstance(with_section.monitor, MonitorReport)
    words = with_section.monitor.verdict
    assert "Over time" in with_section.to_html()
    assert words in text_of(with_section.to_html())
    assert words in str(with_section)
    assert Report.from_json(with_section.to_json()) == with_section


def test_the_section_follows_the_schema(with_section):
    schema = json.loads(
        files("caldist.reporting").joinpath("report.schema.json").read_text(encoding="utf-8")
    )
    jsonschema.validate(json.loads(with_section.to_json()), schema)
    empty = caldist.Monitor()
    empty.update([], [], batch=1)
    plain = caldist.report([0, 1], [0.2, 0.7], monitor=empty, n_resamples=99)
    jsonschema.validate(json.loads(plain.to_json()), schema)


@pytest.mark.slow
def test_a_report_without_a_monitor_has_none(with_section):
    plain = caldist.report([0, 1] * 20, np.linspace(0, 1, 40), n_resamples=99)
    assert plain.monitor is None
    assert "Over time" not in plain.to_html()
    old = json.loads(plain.to_json())
    del old["monitor"]
    assert Report.from_json(json.dumps(old)) == plain
    with pytest.raises(TypeError, match="monitor is of type dict"):
        caldist.report([0, 1], [0.2, 0.7], monitor={})


def test_hostile_names_are_escaped():
    monitor = caldist.Monitor(by=HOSTILE, tolerance=0.01)
    rng = np.random.default_rng(0)
    for at in range(6):
        p = rng.random(900)
        y = rng.random(900) < np.clip(p + 0.3, 0, 1)
        monitor.update(y, p, batch=f"{HOSTILE[0]} {at}", by=rng.choice(HOSTILE, 900))
    page = monitor_report(monitor, name=HOSTILE[1]).to_html()
    assert "<script" not in page
    assert "<img src=x" not in page
    assert escape(HOSTILE[0]).replace("&#x27;", "&#39;") in page
    assert "{{ 7 * 7 }}" in page


@pytest.mark.slow
@pytest.mark.skipif(not HAS_DUCKDB, reason="duckdb is not installed")
def test_the_command_writes_the_page_on_every_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.random(200)
    write_csv(
        tmp_path / "rows.csv",
        {"day": ["2026-01-01", "2026-01-02"] * 100, "y": (p > 0.5).astype(int), "p": p},
    )
    command = ("monitor", "rows.csv", "--label", "y", "--score", "p", "--date", "day")
    command += ("--state", "churn.npz", "--out", "page.html")
    for _ in range(2):
        assert run(*command).exit_code == 0
        assert "churn" in text_of((tmp_path / "page.html").read_text("utf-8"))
        (tmp_path / "page.html").unlink()


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(browser, alarmed, tmp_path, width, scheme):
    flags = ["--force-dark-mode"] if scheme == "dark" else []
    page = alarmed.to_html().replace("</body>", PROBE + "</body>")
    if scheme == "dark":  # headless Chromium follows no desktop's preference
        page = page.replace("(prefers-color-scheme: dark)", "all")
    frame = f'<iframe srcdoc="{escape(page)}" style="width:{width}px;border:0"></iframe>'
    outside = f"<!DOCTYPE html><title>frame</title><body>{frame}</body>"  # windows are 500 at least
    done = browse(outside, tmp_path, 1300, "--dump-dom", *flags)
    assert "CONSOLE" not in done.stderr
    [found] = re.findall(r'<pre id="probe">(.*?)</pre>', done.stdout)
    probe = json.loads(found)
    assert len(probe["images"]) == 1
    assert min(probe["images"]) > 100
    assert probe["width"] == width
    assert max(probe["overflow"], probe["beyond"]) <= 0
    assert probe["contrast"] >= 4.5
    assert probe["tip"] == "block"
    assert probe["focusable"] >= 4
