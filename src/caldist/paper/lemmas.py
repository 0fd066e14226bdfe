"""Every statement of the paper that has an instance: what it claims, what is computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

import caldist
from caldist.paper import families, style
from caldist.paper.common import SEED, Cell, Drawing, Section, Table, bar, format_number
from caldist.paper.estimators import estimate_kernel_ce
from caldist.paper.witnesses import (
    Domain,
    gaussian_wave,
    interval_jump,
    quadratic_gap,
    tight_gap,
    two_points,
)

__all__ = ["FULL", "QUICK", "Plan", "compute", "draw", "worst_ratios"]

Row = tuple[Cell, ...]

ALPHAS = (0.02, 0.05, 0.1, 0.2)
GAUSSIAN_EPS = (0.02, 0.01, 0.005)
EPS = (0.1, 1e-3, 1e-6)
_COLUMNS = ("statement", "instance", "quantity", "claim", "claimed", "computed", "holds")


_TEXT = """\
Each lemma and theorem that has an instance, or that can be tried on many. A claim that fails as
printed is an error of the paper and has its entry among the errata; the corrected claim follows it
here. Relations between measures show the most extreme ratio over {domains} random domains of two to
eight points together with the instances of the lemmas. A claim with O or Ω names no constant; it is
tried with 1.
"""


@dataclass(frozen=True)
class Plan:
    """Sizes: random domains, random draws, rows of the sample, nodes of quadratures.

    ``precision`` is that of the lower distance, relative.
    """

    domains: int
    draws: int
    n_rows: int
    nodes: int
    curve: int
    precision: float = 1e-5


FULL = Plan(domains=500, draws=20_000, n_rows=200, nodes=20_000, curve=25)
QUICK = Plan(domains=60, draws=2_000, n_rows=100, nodes=4_000, curve=7)


def compute(plan: Plan) -> Section:
    """Compute both sides of every statement."""
    groups: list[Callable[[Plan], list[Row]]] = [
        _ece, _quadratic_gap, _tight_gap, _interval_jump, _relations, _monotone, _unbiased,
        _gaussian,
    ]  # fmt: skip
    rows = [row for group in bar(groups, "lemmas") for row in group(plan)]
    return Section(
        text=_TEXT.format(domains=plan.domains),
        tables=(
            Table("lemmas", "Statements with an instance: claimed and computed", _COLUMNS,
                  tuple(rows)),
            _gap_curve(plan),
            _gaussian_curve(plan),
        ),
    )  # fmt: skip


def _row(
    statement: str, instance: str, quantity: str, claim: str, claimed: float, computed: float,
    slack: float = 1e-9,
) -> Row:  # fmt: skip
    """Compare; ``claim`` starts with the relation."""
    holds = {
        "≤": computed <= claimed + slack,
        "≥": computed >= claimed - slack,
        "=": abs(computed - claimed) <= slack,
    }[claim[0]]
    return statement, instance, quantity, claim, claimed, computed, "yes" if holds else "no"


def _lower(domain: Domain, precision: float) -> float:
    # smCE/2 is a lower bound, which turns a relative precision into a tolerance.
    tolerance = precision * caldist.smooth_ce(domain.joint) / 2
    return caldist.lower_distance(domain.joint, tol=max(tolerance, 1e-12))


def _ece(_: Plan) -> list[Row]:
    name = "ECE is discontinuous at 0"
    rows = []
    for eps in EPS:
        domain, at = two_points(eps), f"ε = {format_number(eps)}"
        rows += [
            _row(name, at, "ECE", "= ½ − ε", 0.5 - eps, caldist.ece(domain.joint)),
            _row(name, at, "dCE", "≤ ε", eps, domain.distance()),
            _row(name, at, "binnedECE, 2 bins", "= ½ − ε", 0.5 - eps,
                 caldist.binned_ece(domain.joint, n_bins=2)),
            _row(name, at, "binnedECE, 3 bins", "= 0", 0.0,
                 caldist.binned_ece(domain.joint, n_bins=3)),
        ]  # fmt: skip
    limit = caldist.ece(two_points(0.0).joint)
    rows.append(_row(name, "ε = 0", "ECE", "= 0", 0.0, limit))
    return rows


def _quadratic_gap(plan: Plan) -> list[Row]:
    name = "Quadratic gap: prediction access cannot tell D¹ from D²"
    rows = []
    for alpha in ALPHAS:
        first, second = quadratic_gap(alpha)
        at = f"α = {alpha:g}"
        one, two = first.joint, second.joint
        apart = max(
            float(np.abs(one.mass0 - two.mass0).max()), float(np.abs(one.mass1 - two.mass1).max())
        )
        square = alpha**2
        rows += [
            _row(name, at, "largest difference of the two joints", "= 0", 0.0, apart),
            _row(name, at, "dCE(D¹)", "≤ 2α², as printed", 2 * square, first.distance()),
            _row(name, at, "dCE(D¹)", "= 4α², corrected", 4 * square, first.distance()),
            _row(name, at, "dCE(D²)", "≥ α", alpha, second.distance()),
            _row(name, at, "ldCE", "= 4α²/(1 + 2α)", 4 * square / (1 + 2 * alpha),
                 _lower(first, plan.precision), plan.precision),
            _row(name, at, "udCE", "= α", alpha, caldist.upper_distance(first.joint)),
        ]  # fmt: skip
    return rows


def _tight_gap(_: Plan) -> list[Row]:
    name = "Tight gap between udCE and intCE"
    rows = []
    for alpha in ALPHAS:
        domain, at = tight_gap(alpha, alpha / 2), f"α = {alpha:g}"
        rows += [
            _row(name, at, "udCE", "≤ 5α²", 5 * alpha**2, caldist.upper_distance(domain.joint)),
            _row(name, at, "intCE", "≥ α", alpha, caldist.interval_ce(domain.joint)),
        ]
    return rows


def _interval_jump(_: Plan) -> list[Row]:
    name, beta = "intCE is discontinuous", 1 / 48
    rows = [
        _row(name, f"ε = {format_number(eps)}", "intCE(f₂)", "≤ β", beta,
             caldist.interval_ce(interval_jump(eps, moving=True).joint))
        for eps in (1e-3, 1e-6, 1e-9)
    ]  # fmt: skip
    limit = caldist.interval_ce(interval_jump(0.0, moving=True).joint)
    rows.append(_row(name, "ε = 0", "intCE(f₁)", "≥ 2β", 2 * beta, limit))
    return rows


def worst_ratios(plan: Plan) -> dict[str, float]:
    """Return the extreme ratios of measures over random domains and the lemmas' instances."""
    rng = np.random.default_rng((SEED, 3, 0))
    domains = [families.random_domain(rng) for _ in range(plan.domains)]
    for alpha in ALPHAS:
        domains += [*quadratic_gap(alpha), tight_gap(alpha, alpha / 2)]
    domains += [two_points(eps) for eps in (0.1, 1e-3)]
    domains += [interval_jump(1e-3, moving=True), families.ratio_two(0.01, 0.01)]
    domains.append(Domain(np.array([1.0]), np.array([0.0]), np.array([1.0])))
    found: dict[str, list[float]] = {}
    for domain in bar(domains, "lemmas, domains"):
        for name, ratio in _ratios(domain, plan.precision).items():
            found.setdefault(name, []).append(ratio)
    least = {"smCE/ldCE, least", "kCE/smCE"}
    return {name: min(r) if name in least else max(r) for name, r in found.items()}


def _ratios(domain: Domain, precision: float) -> dict[str, float]:
    lower = _lower(domain, precision)
    if lower < 1e-7:  # calibrated, or nearly: all ratios are 0/0
        return {}
    upper, true = caldist.upper_distance(domain.joint), domain.distance()
    smooth, kernel = caldist.smooth_ce(domain.joint), caldist.kernel_ce(domain.joint)
    interval = caldist.interval_ce(domain.joint)
    surrogate = caldist.surrogate_interval_ce(domain.joint)
    random = caldist.random_interval_ce(domain.joint, width=0.1)
    root = math.sqrt(lower)
    return {
        "smCE/ldCE, least": smooth / lower,
        "smCE/ldCE, most": smooth / lower,
        "ldCE/dCE": lower / true,
        "dCE/udCE": true / upper,
        "dCE/ECE": true / caldist.ece(domain.joint),
        "udCE/intCE": upper / interval,
        "intCE/√ldCE": interval / root,
        "intCE/SintCE": interval / surrogate,
        "SintCE/√ldCE": surrogate / root,
        "RintCE(0.1)/ldCE": random / lower,
        "intCE/(RintCE(0.1) + 0.1)": interval / (random + 0.1),
        "kCE/smCE": kernel / smooth,
        "kCE/√ldCE": kernel / root,
    }


_RELATIONS = (
    ("smCE is equivalent to ldCE", "smCE/ldCE, least", "≥ ½", 0.5),
    ("smCE is equivalent to ldCE", "smCE/ldCE, most", "≤ 2", 2.0),
    ("ldCE ≤ dCE ≤ udCE", "ldCE/dCE", "≤ 1", 1.0),
    ("ldCE ≤ dCE ≤ udCE", "dCE/udCE", "≤ 1", 1.0),
    ("dCE ≤ ECE", "dCE/ECE", "≤ 1", 1.0),
    ("udCE ≤ intCE ≤ 4√ldCE", "udCE/intCE", "≤ 1", 1.0),
    ("udCE ≤ intCE ≤ 4√ldCE", "intCE/√ldCE", "≤ 4", 4.0),
    ("intCE ≤ SintCE ≤ 6√ldCE", "intCE/SintCE", "≤ 1", 1.0),
    ("intCE ≤ SintCE ≤ 6√ldCE", "SintCE/√ldCE", "≤ 6", 6.0),
    ("RintCE(ε) ≤ (1 + 2/ε) ldCE", "RintCE(0.1)/ldCE", "≤ 21", 21.0),
    ("intCE ≤ RintCE(ε) + ε", "intCE/(RintCE(0.1) + 0.1)", "≤ 1", 1.0),
    ("Laplace kCE is consistent", "kCE/smCE", "≥ ⅓", 1 / 3),
    ("Laplace kCE is consistent", "kCE/√ldCE", "≤ 2√2, as proved", 2 * math.sqrt(2)),
)


def _relations(plan: Plan) -> list[Row]:
    ratio = worst_ratios(plan)
    at = f"{plan.domains} random domains and the lemmas' instances"
    return [
        _row(statement, at, quantity, claim, claimed, ratio[quantity], plan.precision * claimed)
        for statement, quantity, claim, claimed in _RELATIONS
    ]


def _monotone(plan: Plan) -> list[Row]:
    rng = np.random.default_rng((SEED, 3, 1))
    rows = []
    for temperature in (0.5, 1.0, 2.0):
        label, prediction = families.sample(temperature, plan.n_rows, rng)
        width = 2.0 ** -np.arange(13)
        value = [caldist.random_interval_ce(label, prediction, width=float(w)) for w in width]
        at = f"{plan.n_rows} rows at T = {temperature:g}, ε = 2⁻¹ … 2⁻¹²"
        quantity, most = "largest RintCE(2ε) − RintCE(ε)", float(-np.diff(value).min())
        rows.append(_row("RintCE(2ε) ≤ RintCE(ε)", at, quantity, "≤ 0", 0.0, most))
    return rows


def _unbiased(plan: Plan) -> list[Row]:
    label, prediction = families.sample(0.5, plan.n_rows, np.random.default_rng((SEED, 3, 2)))
    exact = caldist.kernel_ce(label, prediction, squared=True)
    rows = []
    methods: tuple[tuple[str, Literal["fourier", "binning"]], ...] = (
        ("Fourier features", "fourier"), ("Random bins", "binning"),
    )  # fmt: skip
    for name, method in methods:
        rng = np.random.default_rng((SEED, 3, 3))
        found = np.array([
            estimate_kernel_ce(label, prediction, method=method, squared=True, rng=rng)
            for _ in range(plan.draws)
        ])  # fmt: skip
        error = float(found.std(ddof=1)) / math.sqrt(plan.draws)
        at = f"{plan.n_rows} rows at T = ½, {plan.draws:,} draws"
        statement = f"{name} estimate kCE² without bias"
        rows += [
            _row(statement, at, "mean of the draws", "= kCE², within 4 standard errors", exact,
                 float(found.mean()), 4 * error),
            _row(statement, at, "largest draw", "≤ 1", 1.0, float(found.max())),
        ]  # fmt: skip
    return rows


def _gaussian(plan: Plan) -> list[Row]:
    unsound, continuous = "Gaussian kCE is not sound", "Gaussian kCE is weakly continuous at 0"
    least, most = "≥ Ω(1), tried with 1", "≤ O(1), tried with 1"
    first, second = [], []
    for eps in GAUSSIAN_EPS:
        domain, at = gaussian_wave(eps, plan.nodes), f"ε = {eps:g}"
        smooth = caldist.smooth_ce(domain.joint)
        kernel = caldist.kernel_ce(domain.joint, kernel="gaussian")
        rate = -eps * math.log(kernel)
        below, above = smooth**4 * math.log(1 / kernel), kernel / math.sqrt(smooth)
        first += [
            _row(unsound, at, "smCE/ε^(5/2)", least, 1.0, smooth / eps**2.5),
            _row(unsound, at, "−ε ln kCE", "≥ 1, as printed", 1.0, rate),
            _row(unsound, at, "−ε ln kCE", "≥ 1/16, corrected", 1 / 16, rate),
        ]
        second += [
            _row(continuous, at, "kCE/√smCE", most, 1.0, above),
            _row(continuous, at, "smCE⁴ ln(1/kCE)", most, 1.0, below),
        ]
    return first + second


def _gap_curve(plan: Plan) -> Table:
    rows = []
    for alpha in np.geomspace(0.01, 0.25, plan.curve).tolist():
        first, second = quadratic_gap(alpha)
        tight = tight_gap(alpha, alpha / 2)
        rows.append((
            alpha, first.distance(), second.distance(),
            _lower(first, plan.precision),
            caldist.upper_distance(tight.joint), caldist.interval_ce(tight.joint),
        ))  # fmt: skip
    columns = ("alpha", "dCE(D¹)", "dCE(D²)", "ldCE", "udCE, tight gap", "intCE, tight gap")
    return Table("lemmas_gaps", "The two gaps over α", columns, tuple(rows), shown=False)


def _gaussian_curve(plan: Plan) -> Table:
    rows = []
    for eps in np.geomspace(0.004, 0.1, plan.curve).tolist():
        domain = gaussian_wave(eps, plan.nodes)
        gaussian = caldist.kernel_ce(domain.joint, kernel="gaussian")
        row = (eps, caldist.smooth_ce(domain.joint), caldist.kernel_ce(domain.joint), gaussian)
        rows.append(row)
    columns = ("epsilon", "smCE", "Laplace kCE", "Gaussian kCE")
    return Table(
        "lemmas_gaussian", "The instance against the Gaussian kernel", columns, tuple(rows),
        shown=False,
    )  # fmt: skip


def draw(section: Section) -> list[Drawing]:
    """Draw the two gaps and the instance against the Gaussian kernel."""
    gaps, gaussian = section.table("lemmas_gaps"), section.table("lemmas_gaussian")
    alpha, eps = gaps.numbers("alpha")[0], gaussian.numbers("epsilon")[0]
    dark, light, grey = "#14375e", "#b5490b", "0.55"
    with style.style():
        figure = style.figure(8.4, 2.8)
        left, middle, right = figure.subplots(1, 3)
        left.plot(alpha, gaps.numbers("dCE(D²)")[0], color=light, linestyle=(0, (4, 1.5)))
        left.plot(alpha, gaps.numbers("dCE(D¹)")[0], color=dark)
        left.plot(alpha, gaps.numbers("ldCE")[0], color="black", linestyle=(0, (1, 1)))
        left.plot(alpha, 2 * np.square(alpha), color=grey, linewidth=0.8)
        left.annotate("dCE(D²) = udCE", (0.0105, 0.045), color=light)
        left.annotate("dCE(D¹) = 4α²", (0.0105, 0.0062), color=dark)
        left.annotate(
            "ldCE", (0.25, 1 / 6), xytext=(3, 0), textcoords="offset points", va="center",
        )  # fmt: skip
        left.annotate("2α², as\nprinted", (0.055, 0.0022), color="0.35")
        left.set_title("Same predictions, unlike distances")
        interval = gaps.numbers("intCE, tight gap")[0]
        middle.plot(alpha, interval, color=light, linestyle=(0, (4, 1.5)))
        middle.plot(alpha, gaps.numbers("udCE, tight gap")[0], color=dark)
        middle.annotate("intCE", (0.05, 0.16), color=light, ha="center")
        middle.annotate("udCE", (0.06, 0.009), color=dark)
        middle.set_title("intCE may be the root of udCE")
        for axes in (left, middle):
            axes.set(xscale="log", yscale="log", xlabel="α", xlim=(0.01, 0.25), ylim=(1.5e-4, 1))
            axes.set_xticks([0.01, 0.1], ["0.01", "0.1"])
        for name, colour, dash in (
            ("Laplace kCE", "#3f93c8", "-"),
            ("smCE", dark, "-"),
            ("Gaussian kCE", light, (0, (4, 1.5))),
        ):
            right.plot(eps, gaussian.numbers(name)[0], color=colour, linestyle=dash)
        right.annotate("Laplace kCE", (0.0075, 3.2e-3), color="#3f93c8", ha="center")
        right.annotate("smCE", (0.0075, 1.1e-4), color=dark)
        right.annotate("Gaussian kCE", (0.0098, 8e-8), color=light)
        right.set(xscale="log", yscale="log", xlabel="ε", xlim=(0.004, 0.1), ylim=(1e-10, 0.3))
        right.set_xticks([0.01, 0.1], ["0.01", "0.1"])
        right.set_title("The Gaussian kernel is blind")
        for axes in (left, middle, right):
            axes.minorticks_off()
    caption = (
        "The lemmas' instances over their parameters. Left, the quadratic gap: two domains with "
        "the same predictions and labels. Middle, the tight gap between udCE and intCE. Right, "
        "the instance on which the Gaussian kCE vanishes exponentially, smCE polynomially."
    )
    return [Drawing("lemmas", figure, caption)]
