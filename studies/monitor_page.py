"""The page on monitors: what was measured, and whether it is what is promised."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from studies import monitor
from studies.pages import FAIL
from studies.runs import Row

__all__ = ["monitor_page"]

_HEAD = """\
# False alarms and delays of the monitor

Streams of batches are watched by `Monitor` with its defaults, {batch} rows a batch unless it is
said otherwise. Counted is what happens at *any* look: an alarm, an end of the confidence sequence
on the wrong side. Verdicts allow two standard errors of the share that is promised. The oracle
knows the truth: it is the likelihood ratio of the true curve, which nobody has. {probcal}

The weights of the experts' families and of the first start were chosen on other streams of the
eight cases below; the shapes further down played no part in it. The shares of the levels were set
after a run of these very streams, in which one case took 1.103 times as long as probcal.

- Streams: {plan}.
- Run again: `{command}`. The same seed gives the same numbers, whatever the number of processes.
"""
_WITH = "probcal's `CalibrationMonitor`, with its defaults, saw the same streams."
_WITHOUT = "probcal was not installed: its columns are missing."

Sums = Mapping[tuple[str, str, str, str], tuple[int, float]]


def monitor_page(rows: Sequence[Row], plan: monitor.Plan, command: str) -> str:
    """Return the page."""
    sums: dict[tuple[str, str, str, str], tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for row in rows:
        key = (row["part"], row["case"], row["method"], row["level"])
        count, total = sums[key]
        sums[key] = count + int(row["streams"]), total + float(row["total"])
    with_probcal = any(key[2] == "probcal" for key in sums)
    head = _HEAD.format(
        batch=monitor.BATCH,
        probcal=_WITH if with_probcal else _WITHOUT,
        plan=plan,
        command=command,
    )
    parts = (_false_alarms, _coverage, _delay, _unseen, _change, _tolerance)
    return "\n".join([head, *(part(sums) for part in parts)])


def _mean(sums: Sums, *key: str) -> float | None:
    count, total = sums.get(key, (0, 0.0))  # type: ignore[call-overload]
    return total / count if count else None


def _share(sums: Sums, part: str, case: str, method: str, level: str) -> str:
    """Return a share with its verdict against the level."""
    count, total = sums.get((part, case, method, level), (0, 0.0))
    if not count:
        return ""
    nominal = float(level)
    allowed = nominal + 2 * math.sqrt(nominal * (1 - nominal) / count)
    return f"{total / count:.4f}" + ("" if total / count <= allowed else f" {FAIL}")


def _table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    text = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join([*text, *(f"| {' | '.join(line)} |" for line in lines), ""])


def _number(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _false_alarms(sums: Sums) -> str:
    levels = [str(level) for level in monitor.LEVELS]
    lines = [
        [text, *(_share(sums, "false alarms", name, "alarm", level) for level in levels)]
        for name, text in monitor.NULLS.items()
        if name != "run length"
    ]
    named = _share(sums, "false alarms", "sub-groups", "a sub-group named", str(monitor.RATE))
    length = _mean(sums, "false alarms", "run length", "batches until an alarm", "")
    kept = "" if length is None or length >= monitor.SHORT_RUN else f" {FAIL}"
    return (
        f"## False alarms over {monitor.LOOKS} looks\n\nThe share of calibrated streams with an "
        "alarm at any look, for four false alarm rates.\n\n"
        + _table(["predictions", *levels], lines)
        + f"\nA sub-group is named wrongly, at any look and a rate of {monitor.RATE}, in {named} "
        "of the streams with sub-groups. "
        f"With `run_length={monitor.SHORT_RUN:g}` the first alarm comes after {_number(length, 1)} "
        f"batches of 50 rows in the mean{kept}, streams of {monitor.MOST_BATCHES} batches without "
        "one counted as that long.\n"
    )


def _coverage(sums: Sums) -> str:
    lines = []
    for name, law in monitor.LAWS.items():
        shares = [
            _share(sums, "coverage", name, end, level)
            for end in ("lower", "upper")
            for level in ("0.05", "0.2")
        ]
        alarm = _share(sums, "coverage", name, "alarm at this tolerance", "0.05")
        width = _number(_mean(sums, "coverage", name, "width", "0.05"), 4)
        distance = "0 to 0.065" if name == "drift" else f"{monitor.distance_of(name):.4f}"
        lines.append([law.text, distance, *shares, alarm, width])
    return (
        f"## Confidence sequences over {monitor.LOOKS} looks\n\nThe share of streams in which an "
        "end was on the wrong side of the lower distance at any look; with drift, in which the "
        "lower end exceeded the mean distance so far. Then the share with an alarm when the "
        "tolerance is the true distance, and the width after the last look.\n\n"
        + _table(
            ["law", "ldCE", "lower, 0.05", "lower, 0.2", "upper, 0.05", "upper, 0.2", "alarm, 0.05",
             "width"],
            lines,
        )
    )  # fmt: skip


def _ratios(
    sums: Sums, cases: Mapping[str, monitor.Case]
) -> tuple[list[list[str]], list[float], list[float]]:
    lines, to_oracle, to_probcal = [], [], []
    for name, case in cases.items():
        oracle, ours, other = (
            _mean(sums, "delay", name, who, "") for who in ("oracle", "caldist", "probcal")
        )
        line = [case.text, _number(oracle), _number(ours), _number(other)]
        if ours is not None and oracle:
            to_oracle.append(ours / oracle)
            line.append(f"{ours / oracle:.2f}")
        if ours is not None and other:
            to_probcal.append(ours / other)
            line.append(f"{ours / other:.2f}")
        lines.append([*line, *[""] * (6 - len(line))])
    return lines, to_oracle, to_probcal


_DELAY = ["case", "oracle", "caldist", "probcal", "/ oracle", "/ probcal"]


def _geometric(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def _verdict(kept: bool) -> str:  # noqa: FBT001
    return "pass" if kept else FAIL


def _delay(sums: Sums) -> str:
    lines, to_oracle, to_probcal = _ratios(sums, monitor.CASES)
    text = (
        f"Over the oracle: {_geometric(to_oracle):.2f} in the geometric mean (at most 2.1: "
        f"{_verdict(_geometric(to_oracle) <= 2.1)}), {max(to_oracle):.2f} at most (4: "
        f"{_verdict(max(to_oracle) <= 4)})."
    )
    if to_probcal:
        text += (
            f" Over probcal: {_geometric(to_probcal):.2f} in the geometric mean (at most 0.8: "
            f"{_verdict(_geometric(to_probcal) <= 0.8)}), {max(to_probcal):.2f} at most (1.1: "
            f"{_verdict(max(to_probcal) <= 1.1)})."
        )
    return (
        f"## Delay\n\nMean rows until the alarm at a rate of {monitor.RATE}, miscalibrated from "
        f"the first row on; streams are cut at {monitor.LONGEST:,} rows.\n\n"
        + _table(_DELAY, lines)
        + f"\n{text}\n"
    )


def _unseen(sums: Sums) -> str:
    lines, *_ = _ratios(sums, monitor.UNSEEN)
    return "## Shapes that the experts were not made for\n\nAs they come.\n\n" + _table(
        _DELAY, lines
    )


def _change(sums: Sums) -> str:
    ways = ("oracle", "ever", "run length", "probcal")
    lines = []
    for name, case in monitor.CHANGES.items():
        days = [_number(_mean(sums, "change", name, way, ""), 1) for way in ways]
        early = [
            _number(_mean(sums, "change", name, f"{way}, before the change", ""), 3)
            for way in ways[1:]
        ]
        onset = _number(_mean(sums, "change", name, "onset off by", ""), 1)
        lines.append([case.text, *days, onset, " / ".join(early)])
    return (
        f"## A change after {monitor.CALM} calm days\n\nDays of {monitor.DAY_ROWS} rows from the "
        f"change to the alarm, at most {monitor.DAYS}: ever at a rate of {monitor.RATE}, and with "
        f"a run length of {monitor.RUN_LENGTH:g} days. By how many days the onset is off in the "
        "mean. The share of streams with an alarm before the change, for the last three.\n\n"
        + _table(["change", *ways, "onset off by", "alarm before"], lines)
    )


def _tolerance(sums: Sums) -> str:
    lines = []
    for name, case in monitor.TOLERANCES.items():
        oracle, ours = (_mean(sums, "tolerance", name, way, "") for way in ("oracle", "caldist"))
        ratio = "" if ours is None or not oracle else f"{ours / oracle:.2f}"
        lines.append([case.text, _number(oracle), _number(ours), ratio])
    later = []
    for name in ("shift", "slope"):
        days = [
            _number(_mean(sums, "after calm", name, way, ""), 1) for way in ("ever", "run length")
        ]
        early = [
            _number(_mean(sums, "after calm", name, f"{way}, before the change", ""), 3)
            for way in ("ever", "run length")
        ]
        text = "logits + 0.35" if name == "shift" else "logits × 0.5"
        later.append([text, *days, " / ".join(early)])
    return (
        f"## Tolerance\n\nMean rows until the alarm at a tolerance of {monitor.TOLERANCE}; the "
        "oracle bets on the best potentials of the population.\n\n"
        + _table(["case", "oracle", "caldist", "/ oracle"], lines)
        + f"\nWithin a tolerance of 0.02 for {monitor.CALM} days of 300 rows (logits + 0.06, a "
        "distance of 0.010), then beyond it: days until the alarm, and the share of alarms "
        "before.\n\n" + _table(["then", "ever", "run length", "alarm before"], later)
    )
