"""Settling an unknown outcome: commit the identical batch again, and know when an earlier attempt can never land any more.

A refusal of the repeated batch says that it did not apply *now*. It is lost for certain, or has applied before, when one of
its guards can never hold again: versions and tickets only grow, free marks are drawn anew, waiters do not come back. Where
only the owner's row stands in the way (somebody acted for the same owner elsewhere), the first attempt could still land
after that row is gone, so the version of the token that it names is moved first.
"""

from __future__ import annotations

from ..database import (
    Absent,
    Applied,
    Batch,
    DatabaseError,
    Expect,
    Port,
    Refused,
    Row,
    Unknown,
    Value,
    Write,
    update,
)
from .errors import ChangeUnknown
from .rows import QUEUE, TOKEN, WAITER

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0
SILENT_PAUSE_S = 1.0  # a silent coordinator may still be at work: coming back sooner only adds contention


def is_dead(batch: Batch, refused: Refused) -> bool:
    """Tell whether a refused batch can never apply any more, whatever attempts of it are still on their way."""
    return any(_never_again(write, refused.rows.get(write.key)) for write in batch.writes)


def kill(batch: Batch) -> Batch | None:
    """Return a batch that moves the version of the first token that `batch` names, or None where it names none."""
    for write in batch.writes:
        if write.key[0] == TOKEN and isinstance(write.condition, Expect):
            return Batch(batch.table, batch.partition, (_moved(write, write.condition),))
    return None


def pause_s(attempt: int, chance: float, *, answered: bool) -> float:
    """Return how long to wait before the next attempt: jittered, growing, longer after silence. `chance` is in 0..1."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**attempt)
    return (0.0 if answered else SILENT_PAUSE_S) + longest * (0.5 + chance / 2)


def _never_again(write: Write, row: Row | None) -> bool:
    """Tell whether this guard is broken for good, by what the refusal shows of its row."""
    condition = write.condition
    if condition is None or isinstance(condition, Absent):
        return False  # a row that exists may be gone later
    # A token's holder leaves an expected one only with its version, or by its lease's end, which no late write undoes.
    return write.key[0] in (TOKEN, QUEUE, WAITER) and not condition.met_by(row)


def _moved(write: Write, condition: Expect) -> Write:
    (version,) = condition.columns["updated_time"]
    moved: dict[str, Value] = {"updated_time": 1 + (version if isinstance(version, int) else 0)}
    return update(write.key, moved, expect=condition.columns)


async def commit_surely(port: Port, batch: Batch, deadline: float) -> Applied | Refused:
    """Commit a batch that can apply only once, again and again until the database says what became of it.

    Raises Unavailable when nothing happened, ChangeUnknown when the deadline comes before the answer.
    """
    unsure, attempt = None, 0
    while True:
        try:
            outcome = await port.commit(batch)
        except DatabaseError:
            if unsure is None:
                raise
            outcome = unsure
        if not isinstance(outcome, Unknown):
            return outcome
        unsure, pause = outcome, pause_s(attempt, 1.0, answered=outcome.answered)
        if port.now() + pause > deadline:
            raise ChangeUnknown from outcome.cause
        await port.sleep(pause)
        attempt += 1
