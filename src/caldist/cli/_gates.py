"""``--fail-above`` and ``--require-below``: limits, decisions on them, and exit codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from caldist._util.numbers import down, up
from caldist.cli._output import described
from caldist.cli._streams import say
from caldist.errors import InvalidInput

if TYPE_CHECKING:
    from caldist.measures.base import Measure

_FAILED, _UNDECIDED = 1, 3
_SEVERITY = ("pass", "undecided", "fail")  # the worse the later

Line = Mapping[str, object]
Ends = tuple[float, float]  # a lower and an upper limit for the population


@dataclass(frozen=True)
class Limits:
    """The limits that were asked for, None where one was not."""

    fail_above: float | None
    require_below: float | None

    def __bool__(self) -> bool:
        return bool(self.given)

    @property
    def given(self) -> dict[str, float]:
        """The limits by their options."""
        limits = {"--fail-above": self.fail_above, "--require-below": self.require_below}
        return {option: limit for option, limit in limits.items() if limit is not None}

    def check(self, ceiling: float = 1.0) -> None:
        """Raise for a limit that nothing can exceed, or that nothing can be below."""
        from caldist.data import validate

        for option, limit in self.given.items():
            allow_zero = option == "--fail-above"
            validate.check_limit(option, limit, ceiling=ceiling, allow_zero=allow_zero)

    def check_measure(self, measure: Measure[Any]) -> None:
        """Raise unless the measure has limits for the population, which can be judged."""
        self.check(measure.facts.ceiling)
        if self and not measure.has_interval:
            raise InvalidInput(
                argument=next(iter(self.given)),
                reason=f"cannot be judged by {measure}, which has no limits for the population: "
                f"{measure.facts.no_interval.reason}",
                remedy="Name another measure first, as --measure smooth_ce.",
            )

    def refuse(self, reason: str, remedy: str) -> None:
        """Raise if a limit was given where there is no one number to compare it with."""
        if self:
            raise InvalidInput(argument=next(iter(self.given)), reason=reason, remedy=remedy)

    def decided(self, ends: Ends | None) -> dict[str, object]:
        """Return what JSON says of a line: its limits, and the decision by both of them.

        Of two limits that were asked for the worse decision counts, and of equal ones the smaller.
        """
        if ends is None:
            return {}
        decisions = {limit: _decision(ends, limit) for limit in sorted(self.given.values())}
        limit = max(decisions, key=lambda limit: _SEVERITY.index(decisions[limit]))
        return in_columns(ends) | {"limit": limit, "decision": decisions[limit]}

    def judge(self, what: str, level: str, lines: Sequence[tuple[Line, Ends]]) -> int:
        """Say on stderr which lines do not pass, and return the exit code: the worst of all."""
        code = 0
        for option, limit in self.given.items():
            found: dict[str, list[str]] = {"pass": [], "undecided": [], "fail": []}
            for line, (lower, upper) in lines:
                decision = _decision((lower, upper), limit)
                end = (
                    f"at least {down(lower, 6)}"
                    if decision == "fail"
                    else f"at most {up(upper, 6)}"
                )
                name = described(line)
                found[decision].append(f"{name} ({end})" if name else end)
            if found["fail"]:
                listed = ", ".join(found["fail"])
                failed = f"failed: {what} is above {limit:g}, with {level} confidence"
                say(f"{failed}: {listed}", err=True)
                code = _FAILED
            if found["undecided"] and option == "--require-below":
                listed = ", ".join(found["undecided"])
                unsure = f"undecided: not enough rows to tell that {what} is below {limit:g}"
                say(f"{unsure}: {listed}", err=True)
                code = code or _UNDECIDED
        return code

    def without_statement(self, reason: str) -> int:
        """Return the exit code where there are no limits for the population, and say why."""
        if self:
            say(f"undecided: no statement is made: {reason}", err=True)
        return 0 if self.require_below is None else _UNDECIDED


def in_columns(ends: tuple[float | None, float | None] | None) -> dict[str, object]:
    """Return the limits of a line by the names of their columns, if there are any."""
    return {} if ends is None else dict(zip(("lower_limit", "upper_limit"), ends, strict=True))


def _decision(ends: Ends, limit: float) -> str:
    """Return whether the population is shown to be below a limit, above it, or neither."""
    lower, upper = ends
    return "fail" if lower > limit else "pass" if upper < limit else "undecided"


def options(what: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add --fail-above and --require-below, in one argument ``limits``; ``what`` is judged."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_limits(
            *args: Any, fail_above: float | None, require_below: float | None, **others: Any
        ) -> None:
            command(*args, limits=Limits(fail_above, require_below), **others)

        click.option(
            "--require-below",
            type=float,
            metavar="LIMIT",
            help=f"End with exit code 0 if the rows show that {what} is below this, by its upper "
            "limit, with 1 if they show that it exceeds this, by the lower one, else with 3.",
        )(with_limits)
        click.option(
            "--fail-above",
            type=float,
            metavar="LIMIT",
            help=f"End with exit code 1 if the rows show that {what} exceeds this, by its lower "
            "limit, else with 0.",
        )(with_limits)
        return with_limits

    return decorate
