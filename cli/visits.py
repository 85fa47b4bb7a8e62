"""The record of a demo, and whether it kept the promise: never more inside than there are slots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Visit:
    """One job: who held which token between which moments (ns on one clock), and how long it took to get in."""

    worker: int
    token: int
    fence: int
    entered_ns: int
    left_ns: int
    waited_ms: float


@dataclass(frozen=True, slots=True)
class Finding:
    """What the record shows. `violations` has a sentence for each broken promise."""

    most_inside: int
    violations: tuple[str, ...]


def check(visits: Sequence[Visit], slots: int) -> Finding:
    """Check a whole record."""
    most = most_inside(visits)
    found = [*_shared_tokens(visits), *_old_fences(visits)]
    if most > slots:
        found.insert(0, f"{most} were inside at once, and there are {slots} slots")
    return Finding(most, tuple(found))


def most_inside(visits: Sequence[Visit]) -> int:
    """Return how many were inside at once, at most. Who leaves at the moment at which another enters was not with it."""
    steps = sorted([(visit.entered_ns, 1) for visit in visits] + [(visit.left_ns, -1) for visit in visits])
    inside = most = 0
    for _, step in steps:
        inside += step
        most = max(most, inside)
    return most


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the value that so many percent of the values do not exceed; 0 where there are none."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else 0.0


def _shared_tokens(visits: Sequence[Visit]) -> Iterator[str]:
    for before, after in _successive(visits):
        if after.entered_ns < before.left_ns:
            yield f"token {after.token} had two holders: worker {before.worker} and worker {after.worker}"


def _old_fences(visits: Sequence[Visit]) -> Iterator[str]:
    for before, after in _successive(visits):
        if after.fence <= before.fence:
            yield f"token {after.token}: fence {after.fence} came after {before.fence}"


def _successive(visits: Sequence[Visit]) -> Iterator[tuple[Visit, Visit]]:
    """Yield each visit and the next one of the same token."""
    by_token: dict[int, list[Visit]] = defaultdict(list)
    for visit in sorted(visits, key=lambda visit: visit.entered_ns):
        by_token[visit.token].append(visit)
    for of_one in by_token.values():
        yield from pairwise(of_one)
