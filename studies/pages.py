"""The pages of the documentation: what was measured, and whether it is what is promised."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from studies import coverage, power
from studies.laws import ATOMS, LAWS, PAIRS
from studies.measures import BRACKET, CROSS_FIT, DIFFERENCES, STUDIED, TOGETHER
from studies.runs import Row, read_rows
from studies.truth import truth_error

__all__ = ["coverage_page", "coverage_passes", "power_page", "size_limits"]

FEW_EVENTS = 10
_BEFORE = (
    Path(__file__).parent / "before.csv"
)  # widths by replicates and bins of fixed widths alone
_ALL = (*STUDIED, *(name + CROSS_FIT for name in TOGETHER), BRACKET)
FAIL = "**FAIL**"
_COVERAGE = """\
# Coverage of the intervals

{passed} of {cells} cells hold their level: a measured coverage of at least the nominal level minus
1.5 points, within two of its standard errors.

![Share of intervals that miss the truth, by measure and law](coverage.svg)

The figure shows misses at 95%; the dashed line is what is allowed. Grey rows have fewer than ten
events at n = 100 and 400.

Each cell is a law, a number of rows, a measure and a confidence level. Data sets are drawn from the
law, and counted is how often the interval holds the population's value. Beside it stands the
percentile bootstrap on the first of the same data sets. At perfect calibration it hardly ever holds
the truth, and never where predictions vary, because the value on a sample is above 0 and those on
its resamples are higher still.

- {plan.data_sets:,} data sets in each cell. The standard error of a coverage c over N data sets is
  √(c(1 − c)/N); the columns ± give it in points.
- "cross_fit" are limits without replicates, `method="cross_fit"`; the others take the better lower
  end of replicates and of cross-fitting.
- "before" is the mean width of what these recipes replaced, on some of the same data sets: lower
  ends by replicates alone, and for the bracket an upper end by bins of fixed widths. Where it is
  not larger nothing was gained: mostly at perfect calibration, where the lower end is 0 anyway.
- "oracle" is the width that one would have who knew how values err around the truth: the range of
  the values on samples, but for what the level allows. No recipe that sees one sample can have it
  everywhere. For the bracket it is what infinitely many rows would leave, the distance between the
  population's own bounds.
- {plan.n_resamples} resamples for each interval, seed {plan.seed}. The percentile bootstrap:
  {plan.bootstrap_sets} data sets ({plan.distance_sets} for the lower distance),
  {plan.bootstrap_resamples} resamples.
- The population's value is that of a discretisation with {atoms:,} atoms. Doubling them changes no
  value by more than {error:.0e}.
- `distance` must hold the lower distance and an upper bound on the upper distance at once.
  Only the laws narrow, few atoms and unequal clusters were run with the present upper end, which is
  1 to 15% longer than the one behind the other widths.
- Run again: `{command}`. The same seed gives the same numbers, whatever the number of processes.
"""
_FEW = """\
## Fewer than ten events

With one or four positives expected in a data set no recipe is dependable. The functions warn; these
cells are not judged.
"""
_POWER = """\
# Size and power of the tests

{passed} of {cells} cells have the right size: calibrated predictions are rejected no more often
than binomial error allows.

![Power of the tests against four kinds of miscalibration](power.svg)

The tests of `calibration_test` draw labels from the predictions, which is exact. For clusters they
flip signs, which is right for many clusters; where those that have one of the labels are worth
fewer than 100 equal ones, as at n = 100 and 400, the larger p-value counts of that and of labels
drawn for clusters, which depend as much as they seem to; below ten, as much as they can. `auto`
combines `smooth_ce`, `random_interval_ce` and `spiegelhalter`. The last three columns use the laws
that statistics follow in large samples; they are shown, not judged.

- Data sets: {sets}; {plan.power_sets} for the power at
  n = {rows}. {plan.n_resamples} resamples, seed {plan.seed}.
- A cell fails if it has more rejections than a test of exactly the nominal size would show in any
  of all cells with probability 1%. It is careful if it has as clearly fewer: where predictions
  repeat, statistics tie, and ties count against rejection.
- Run again: `{command}`. The same seed gives the same numbers, whatever the number of processes.

## Size

Rejections of calibrated predictions, in percent.
"""
_GROUPS = """\
## Sub-groups

`evaluate_groups` with {groups} sub-groups of {rows:,} rows in all, clusters kept together. At 0 all
groups are calibrated: how often any adjusted p-value is at most the level. At {strength} that is
added to the logits predicted for the first group: how often its p-value is. Percent of
{plan.power_sets} data sets.
"""
_SIMULTANEOUS = 0.01  # how often a test of the right size would be called too large anywhere


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table, columns of numbers aligned to the right."""
    listed = list(rows)
    align = [
        "--:" if all(map(_is_number, column)) else ":--" for column in zip(*listed, strict=True)
    ]
    return [f"| {' | '.join(line)} |" for line in (header, align, *listed)] + [""]


def _is_number(text: str) -> bool:
    return not text or text.replace(".", "", 1).isdigit()


def percent(share: str | float) -> str:
    """Return a share in percent; nothing of a share of nothing."""
    found = float(share)
    return "" if math.isnan(found) else f"{100 * found:.1f}"


# -- coverage --------------------------------------------------------------------------------


def coverage_passes(row: Row) -> bool:
    """Whether the measured coverage is high enough, within two standard errors."""
    allowed = float(row["level"]) - coverage.TOLERANCE
    return float(row["coverage"]) + 2 * _standard_error(row) >= allowed


def _standard_error(row: Row) -> float:
    share = float(row["coverage"])
    return math.sqrt(share * (1 - share) / int(row["data_sets"]))


def has_few_events(row: Row) -> bool:
    """Whether fewer than ten rows of one label are expected."""
    return float(row["events"]) < FEW_EVENTS


def coverage_page(rows: Sequence[Row], plan: coverage.Plan, command: str) -> str:
    """Return the page on coverage."""
    judged = [row for row in rows if not has_few_events(row)]
    failed = [row for row in judged if not coverage_passes(row)]
    errors = {m: max(truth_error(law, m) for law in LAWS) for m in STUDIED}
    lines = [
        _COVERAGE.format(
            passed=len(judged) - len(failed),
            cells=len(judged),
            plan=plan,
            error=max(errors.values()),
            atoms=ATOMS,
            command=command,
        ),
        "## Laws",
        "",
        *table(("law", "what it is"), [(law.name, law.text) for law in LAWS.values()]),
        *table(("pair", "the two models"), [(pair.name, pair.text) for pair in PAIRS.values()]),
        "## In short",
        "",
        "The least coverage over all laws and numbers of rows, in percent.",
        "",
        *_summary(judged),
    ]
    for measure in _ALL:
        lines += [f"## {measure}", ""]
        lines += _cells([row for row in judged if row["measure"] == measure and row["law"] in LAWS])
    for measure in DIFFERENCES:
        lines += [f"## compare, {measure}", ""]
        lines += _cells(
            [row for row in judged if row["measure"] == measure and row["law"] in PAIRS]
        )
    lines += [
        _FEW,
        *_cells([row for row in rows if has_few_events(row)], with_measure=True),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _summary(rows: Sequence[Row]) -> list[str]:
    listed = []
    kinds = [(m, LAWS, m) for m in _ALL]
    kinds += [(m, PAIRS, f"compare, {m}") for m in DIFFERENCES]
    for measure, laws, title in kinds:
        own = [row for row in rows if row["measure"] == measure and row["law"] in laws]
        line = [title]
        for level in coverage.LEVELS:
            here = [row for row in own if float(row["level"]) == level]
            worst = min(here, key=lambda row: float(row["coverage"]))
            line += [percent(worst["coverage"]), f"{worst['law']}, {worst['rows']}"]
            peers = [float(row["bootstrap_coverage"]) for row in here if row["bootstrap_coverage"]]
            line.append(percent(min(peers)) if peers else "")
        line.append("pass" if all(map(coverage_passes, own)) else FAIL)
        listed.append(line)
    names = ["measure"]
    for level in coverage.LEVELS:
        names += [f"{100 * level:.0f}%", "where", "bootstrap"]
    return table((*names, ""), listed)


def _key(row: Row) -> tuple[str, ...]:
    return row["law"], row["rows"], row["measure"].removesuffix(CROSS_FIT), row["level"]


def _cells(rows: Sequence[Row], *, with_measure: bool = False) -> list[str]:
    names = ["law", "n"] + (["measure"] if with_measure else []) + ["sets"]
    before = {_key(row): row["width"] for row in read_rows(_BEFORE)}
    for level in coverage.LEVELS:
        names += [f"{100 * level:.0f}%", "±", "width", "before", "oracle", "bootstrap", "its width"]
    both = [row for row in rows if float(row["level"]) == coverage.LEVELS[0]]
    other = {
        (row["law"], row["rows"], row["measure"]): row
        for row in rows
        if float(row["level"]) == coverage.LEVELS[1]
    }
    order = [*LAWS, *PAIRS]
    both.sort(key=lambda row: (order.index(row["law"]), int(row["rows"])))
    lines = []
    for row in both:
        pair = (row, other[row["law"], row["rows"], row["measure"]])
        line = [row["law"], row["rows"]] + ([row["measure"]] if with_measure else [])
        line.append(row["data_sets"])
        for part in pair:
            peer, peer_width = part["bootstrap_coverage"], part["bootstrap_width"]
            earlier = before.get(_key(part))
            line += [percent(part["coverage"]), percent(_standard_error(part))]
            line.append(f"{float(part['width']):.3g}")
            line.append("" if earlier is None else f"{float(earlier):.3g}")
            line.append(f"{float(part['oracle']):.3g}")
            line += [percent(peer), f"{float(peer_width):.3g}"] if peer else ["", ""]
        if not with_measure:
            line.append("pass" if all(map(coverage_passes, pair)) else FAIL)
        lines.append(line)
    return table(names if with_measure else (*names, ""), lines)


# -- size and power ----------------------------------------------------------------------------


def size_limits(data_sets: int, level: float, cells: int) -> tuple[int, int]:
    """Return the least and the most rejections that a test of exactly this size may show.

    Outside of them lies one of ``cells`` independent such tests with probability 1%, either side.
    """
    from scipy.stats import binom

    tail = _SIMULTANEOUS / cells
    return int(binom.ppf(tail, data_sets, level)), int(binom.isf(tail, data_sets, level))


def size_verdict(row: Row, cells: int) -> str:
    """Say whether a test rejects calibrated predictions as often as it may."""
    least, most = size_limits(int(row["data_sets"]), float(row["level"]), cells)
    rejected = int(row["rejected"])
    if rejected > most:
        return FAIL
    return "pass, careful" if rejected < least else "pass"


def power_page(rows: Sequence[Row], plan: power.Plan, command: str) -> str:
    """Return the page on size and power."""
    size = [row for row in rows if row["kind"] == "size"]
    exact = [row for row in size if row["test"] in power.EXACT]
    exact += [row for row in rows if row["kind"] == "groups" and not float(row["strength"])]
    failed = [row for row in exact if size_verdict(row, len(exact)) == FAIL]
    sets = ", ".join(
        f"{n:,} for n = {rows_of:,}" for rows_of, n in zip(power.ROWS, plan.data_sets, strict=True)
    )
    lines = [
        _POWER.format(
            passed=len(exact) - len(failed),
            cells=len(exact),
            sets=sets,
            plan=plan,
            rows=power.POWER_ROWS,
            command=command,
        )
    ]
    for level in power.LEVELS:
        lines += [f"### At {100 * level:.0f}%", "", *_sizes(size, level, len(exact))]
    lines += [
        _GROUPS.format(
            groups=power.GROUPS, rows=power.GROUP_ROWS, plan=plan, strength=power.GROUP_STRENGTHS[1]
        ),
        *_groups([row for row in rows if row["kind"] == "groups"], len(exact)),
        "## Power", "", f"Rejections at 5%, in percent, n = {power.POWER_ROWS}.", "",
    ]  # fmt: skip
    for name, family in power.FAMILIES.items():
        own = [row for row in rows if row["law"] == name and row["kind"] == "power"]
        lines += [f"### {name}: {family.text}", "", *_powers(own)]
    return "\n".join(lines).rstrip() + "\n"


def _rates(rows: Sequence[Row]) -> dict[str, str]:
    return {row["test"]: percent(int(row["rejected"]) / int(row["data_sets"])) for row in rows}


def _sizes(rows: Sequence[Row], level: float, cells: int) -> list[str]:
    lines = []
    for name in power.CALIBRATED:
        for n in power.ROWS:
            own = [
                row
                for row in rows
                if row["law"] == name and int(row["rows"]) == n and float(row["level"]) == level
            ]
            rates = _rates(own)
            exact = [row for row in own if row["test"] in power.EXACT]
            verdicts = {size_verdict(row, cells) for row in exact}
            verdict = (
                FAIL if FAIL in verdicts else "pass" if "pass" in verdicts else "pass, careful"
            )
            lines.append((name, str(n), *(rates.get(test, "") for test in power.TESTS), verdict))
    return table(("law", "n", *power.TESTS, ""), lines)


def _groups(rows: Sequence[Row], cells: int) -> list[str]:
    lines = []
    for name in power.CALIBRATED:
        own = [row for row in rows if row["law"] == name]
        verdicts = {size_verdict(row, cells) for row in own if not float(row["strength"])}
        shares = [percent(int(row["rejected"]) / int(row["data_sets"])) for row in own]
        lines.append((name, *shares, FAIL if FAIL in verdicts else "pass"))
    strengths = dict.fromkeys((row["strength"], row["level"]) for row in rows)
    names = [f"{float(strength):g}, at {100 * float(level):.0f}%" for strength, level in strengths]
    return table(("law", *names, ""), lines)


def _powers(rows: Sequence[Row]) -> list[str]:
    lines = []
    for strength in dict.fromkeys(row["strength"] for row in rows):
        own = [row for row in rows if row["strength"] == strength and float(row["level"]) == 0.05]
        rates = _rates(own)
        lines.append((strength, *(rates[test] for test in power.TESTS)))
    return table(("strength", *power.TESTS), lines)
