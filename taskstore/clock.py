"""One clock a process: wall nanoseconds, counted on the monotonic clock, so that no step of the wall clock ends a claim."""

from __future__ import annotations

from collections.abc import Callable

SLEW = 1000  # it nears the wall clock by a thousandth of the time that passes, at most: no claim notices
LOOK_NS = 1_000_000_000


class Clock:
    """Nanoseconds since the epoch that only go forward. Where the wall clock is elsewhere, it is approached slowly."""

    __slots__ = ("_looked_ns", "_off_ns", "_shown_ns", "_steady_ns", "_wall_ns")

    def __init__(self, wall_ns: Callable[[], int], steady_ns: Callable[[], int]) -> None:
        self._wall_ns, self._steady_ns = wall_ns, steady_ns
        self._looked_ns, self._shown_ns, self._off_ns = steady_ns(), wall_ns(), 0

    def now_ns(self) -> int:
        """Return the time."""
        steady = self._steady_ns()
        shown = self._shown_at(steady)
        if steady - self._looked_ns >= LOOK_NS:
            self._looked_ns, self._shown_ns, self._off_ns = steady, shown, self._wall_ns() - shown
        return shown

    def start_from(self, floor_ns: int) -> None:
        """Begin no earlier than a time that was written down before: the wall clock may have gone back since."""
        steady = self._steady_ns()
        shown = max(self._shown_at(steady), floor_ns)
        self._looked_ns, self._shown_ns, self._off_ns = steady, shown, self._wall_ns() - shown

    def _shown_at(self, steady: int) -> int:
        passed, off = steady - self._looked_ns, self._off_ns
        nearer = passed // SLEW
        if off > nearer:
            off = nearer
        elif off < -nearer:
            off = -nearer
        return self._shown_ns + passed + off
