"""From readings to figures: medians over the rounds, ratios pair by pair, and whether what was to be reached is reached."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from .crowd import Readings

Load = Callable[[str, float], Readings]
Reading = tuple[str, str]  # the name of a measurement, and which of its readings


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be reached, by the ratio to the floor unless by the value itself. `aim` is what would be better still."""

    at_least: float | None = None
    at_most: float | None = None
    aim: float | None = None
    of_value: bool = False

    def met_by(self, reached: float) -> bool:
        """Tell whether it is reached."""
        return (self.at_least is None or reached >= self.at_least) and (self.at_most is None or reached <= self.at_most)

    def __str__(self) -> str:
        sign, bound = (">=", self.at_least) if self.at_least is not None else ("<=", self.at_most)
        return f"{sign} {bound:g}" + (f" (aim {self.aim:g})" if self.aim is not None else "")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table: one reading of a measurement, beside another reading of the same group."""

    title: str
    reading: str
    unit: str
    floor: Reading | None = None
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """A load and the lines that its readings fill. One that takes long is measured in the first round only."""

    name: str
    load: Load
    lines: tuple[Line, ...]
    once: bool = False

    def leans_on(self) -> set[str]:
        """Name the measurements that its lines are compared with."""
        return {line.floor[0] for line in self.lines if line.floor is not None}


Group = tuple[Measure, ...]  # measured one after the other: what is compared stands in one group


@dataclass(frozen=True, slots=True)
class Suite:
    """The measurements of one database, and what the table calls it."""

    database: str
    url: str
    groups: tuple[Group, ...]

    def only(self, name: str) -> Suite:
        """Keep the measurements with such a name, and those that they are compared with."""
        groups = tuple(kept for group in self.groups if (kept := _only(group, name.lower())))
        return Suite(self.database, self.url, groups)


def _only(group: Group, name: str) -> Group:
    wanted = {measure.name for measure in group if name in measure.name.lower()}
    leaned_on = set().union(*(measure.leans_on() for measure in group if measure.name in wanted))
    return tuple(measure for measure in group if measure.name in wanted | leaned_on)


@dataclass(frozen=True, slots=True)
class Figure:
    """A line as it came out."""

    database: str
    line: Line
    values: tuple[float, ...]
    floors: tuple[float, ...] = ()

    @property
    def value(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.values)

    @property
    def floor(self) -> float | None:
        """The median of what it is compared with."""
        return statistics.median(self.floors) if self.floors else None

    @property
    def ratios(self) -> tuple[float, ...]:
        """Each round's ratio."""
        pairs = zip(self.values, self.floors, strict=True) if self.floors else ()
        return tuple(value / floor for value, floor in pairs if floor)

    @property
    def ratio(self) -> float | None:
        """The median of the rounds' ratios, which is not the ratio of the medians."""
        return statistics.median(self.ratios) if self.ratios else None

    @property
    def met(self) -> bool | None:
        """Tell whether the target is met; None where there is none, or nothing to compare with."""
        target = self.line.target
        reached = self.value if target is not None and target.of_value else self.ratio
        return None if target is None or reached is None else target.met_by(reached)


@dataclass
class Record:
    """What has been read so far: for each group of a database, the rounds in order."""

    _rounds: dict[tuple[str, int], dict[int, dict[str, Readings]]] = field(default_factory=dict)

    def note(self, suite: Suite, group: int, round_: int, name: str, readings: Readings) -> None:
        """Keep what a measurement read."""
        self._rounds.setdefault((suite.database, group), {}).setdefault(round_, {})[name] = readings

    def figures(self, suites: Iterable[Suite]) -> list[Figure]:
        """Return all lines that have been measured. The same floor of several groups is one line."""
        found: dict[tuple[str, str], Figure] = {}
        for suite in suites:
            for number, group in enumerate(suite.groups):
                rounds = list(self._rounds.get((suite.database, number), {}).values())
                for figure in (_figure(suite, measure, line, rounds) for measure in group for line in measure.lines):
                    if figure is not None:
                        key = (suite.database, figure.line.title)
                        found[key] = _joined(found[key], figure) if key in found else figure
        return list(found.values())


def _figure(suite: Suite, measure: Measure, line: Line, rounds: list[dict[str, Readings]]) -> Figure | None:
    floor = line.floor
    whole = [r for r in rounds if measure.name in r and (floor is None or floor[0] in r)]
    if not whole:
        return None
    values = tuple(r[measure.name][line.reading] for r in whole)
    floors = () if floor is None else tuple(r[floor[0]][floor[1]] for r in whole)
    return Figure(suite.database, line, values, floors)


def _joined(one: Figure, other: Figure) -> Figure:
    return Figure(one.database, one.line, one.values + other.values, one.floors + other.floors)


def as_document(figures: Iterable[Figure], about: Mapping[str, object], failures: Iterable[str]) -> dict[str, object]:
    """Spell everything for a program."""
    return {**about, "failures": list(failures), "figures": [_document(figure) for figure in figures]}


def _document(figure: Figure) -> dict[str, object]:
    line = figure.line
    return {
        "database": figure.database,
        "name": line.title,
        "unit": line.unit,
        "value": figure.value,
        "values": figure.values,
        "beside": None if line.floor is None else " ".join(line.floor),
        "floor": figure.floor,
        "floors": figure.floors,
        "ratio": figure.ratio,
        "ratios": figure.ratios,
        "target": None if line.target is None else str(line.target),
        "target_of": None if line.target is None else "value" if line.target.of_value else "ratio",
        "met": figure.met,
    }
