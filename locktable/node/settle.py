"""Settling an unknown outcome: the identical batch again, until the database says what became of it or it is too late."""

from __future__ import annotations

from ...database import Applied, Batch, DatabaseError, Outcome, Port, Refused, Unknown
from ..errors import LockUnavailable

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0
SILENT_PAUSE_S = 1.0  # a silent coordinator may still be at work: coming back sooner only adds contention


class Unsettled(LockUnavailable):
    """The database did not say in time what became of a change. It is treated as if it had not applied, and never trusted."""


async def settled(port: Port, batch: Batch, deadline: float) -> Applied | Refused:
    """Commit a batch that can apply only once. A refusal may be due to an earlier attempt of its own: look at the row.

    Raises Unsettled at the deadline, and a DatabaseError when nothing happened.
    """
    unsure, pause_s = False, FIRST_PAUSE_S
    while True:
        try:
            outcome = await _attempt(port, batch, deadline)
        except DatabaseError as error:
            if not unsure:
                raise
            outcome = Unknown(error)  # this attempt came to nothing, an earlier one is still open
        if not isinstance(outcome, Unknown):
            return outcome
        unsure, wait_s = True, pause_s + (0.0 if outcome.answered else SILENT_PAUSE_S)
        if port.now() + wait_s >= deadline:
            raise Unsettled from outcome.cause
        await port.sleep(wait_s)
        pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)


async def _attempt(port: Port, batch: Batch, deadline: float) -> Outcome:
    pending = port.begin_commit(batch)
    if not await pending.wait(deadline - port.now()):
        raise Unsettled
    return pending.result()
