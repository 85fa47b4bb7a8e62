"""The rounds: each in the reverse order of the one before, so that nothing always comes first or after the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from . import loads
from .crowd import NothingCounted, Readings
from .figures import Measure, Record, Suite
from .floors import floor
from .loads import Crowd

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Step:
    """One measurement of one round."""

    suite: Suite
    group: int
    round: int
    measure: Measure

    def __str__(self) -> str:
        return f"{self.suite.database}: {self.measure.name}"


@dataclass
class Run:
    """What a run has read, and what failed."""

    record: Record = field(default_factory=Record)
    failures: list[str] = field(default_factory=list)

    def take(self, step: Step, seconds: float) -> None:
        """Measure. One measurement that fails is told at the end and does not end the others."""
        try:
            readings = step.measure.load(step.suite.url, seconds)
        except Exception as error:
            self.failures.append(f"{step} (round {step.round + 1}): {_first(error)!r}")
        else:
            self.record.note(step.suite, step.group, step.round, step.measure.name, readings)


def steps(suites: list[Suite], rounds: int) -> list[Step]:
    """Return all that a run measures, in order."""
    return [step for round_ in range(rounds) for step in _round(suites, round_)]


def _round(suites: list[Suite], round_: int) -> Iterator[Step]:
    for suite in suites:
        forward = [
            Step(suite, number, round_, measure)
            for number, group in enumerate(suite.groups)
            for measure in group
            if not (measure.once and round_)
        ]
        yield from reversed(forward) if round_ % 2 else forward


def warm_up(url: str, seconds: float) -> None:
    """Let the server compile what the measurements use."""
    warm: list[Callable[[str, float], Readings]] = [
        partial(floor, threads=64),
        partial(loads.threads, crowd=Crowd(64)),
        partial(loads.threads, crowd=Crowd(16, tokens=4, waits=True)),
    ]
    for load in warm:
        with suppress(NothingCounted):  # a slow disk can take longer than a short warming up
            load(url, seconds / len(warm))


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
