"""Committing a batch until it is certain what became of it: the identical batch again, after pauses that grow.

Right for a batch that can apply only once, as its guards name versions that it moves on. A refusal may then be an earlier
attempt's doing: `Settled.unsure` tells that there was one, and who asked looks at the rows that the refusal shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .batch import Applied, Batch, Outcome, Refused, Unknown
from .errors import DatabaseError
from .port import Port

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0
SILENT_PAUSE_S = 1.0  # a silent coordinator may still be at work: coming back sooner only adds contention


class StillUnknown(Exception):  # each package has an error of its own for it: this one reaches no caller
    """The deadline came before the answer. What left may have applied, and may still apply."""


class Settled(NamedTuple):
    """What became of the last attempt, and whether the outcome of one before it stayed unknown."""

    outcome: Applied | Refused
    unsure: bool


def pause_s(attempt: int, chance: float, *, answered: bool) -> float:
    """Return how long to wait before the next attempt: jittered, growing, longer after silence. `chance` is in 0..1."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**attempt)
    return (0.0 if answered else SILENT_PAUSE_S) + longest * (0.5 + chance / 2)


async def settled(
    port: Port, batch: Batch, deadline: float, *, unsure: bool = False, dice: Callable[[], float] = lambda: 1.0
) -> Settled:
    """Commit a batch, again and again, until the database says what became of it. `unsure`: it may have left before.

    Raises StillUnknown at the deadline, from what kept the answer away, and a DatabaseError when nothing happened.
    """
    attempt = 0
    while True:
        try:
            outcome = await _attempt(port, batch, deadline)
        except DatabaseError as error:
            if not unsure:
                raise
            outcome = Unknown(error)  # this attempt came to nothing, an earlier one is still open
        if not isinstance(outcome, Unknown):
            return Settled(outcome, unsure)
        unsure, pause = True, pause_s(attempt, dice(), answered=outcome.answered)
        if port.now() + pause > deadline:
            raise StillUnknown from outcome.cause
        await port.sleep(pause)
        attempt += 1


async def _attempt(port: Port, batch: Batch, deadline: float) -> Outcome:
    pending = port.begin_commit(batch)
    if not await pending.wait(deadline - port.now()):
        raise StillUnknown from TimeoutError("no answer before the deadline")
    return pending.result()
