"""Settling an unknown outcome: commit the identical batch again, and know when an earlier attempt can never land any more.

A refusal of the repeated batch says that it did not apply *now*. It is lost for certain, or has applied before, when one of
its guards can never hold again: versions and tickets only grow, free marks are drawn anew, waiters do not come back. Where
only the owner's row stands in the way (somebody acted for the same owner elsewhere), the first attempt could still land
after that row is gone, so the version of a free token that it names is moved first, or the owner's place in line given up.
"""

from __future__ import annotations

from ..database import (
    Absent,
    Applied,
    Batch,
    Expect,
    Port,
    Refused,
    Row,
    Value,
    Verb,
    Write,
    delete,
    update,
)
from ..database.settling import StillUnknown, settled
from .errors import ChangeUnknown
from .rows import OWNER, QUEUE, QUEUE_KEY, TOKEN, WAITER, ticket_text, waiting_owner_key


def is_dead(batch: Batch, refused: Refused) -> bool:
    """Tell whether a refused batch can never apply any more, whatever attempts of it are still on their way."""
    return any(_never_again(write, refused.rows.get(write.key)) for write in batch.writes)


def kill(batch: Batch, refused: Refused) -> Batch | None:
    """Return a batch after which `batch` can never apply any more, or None where there is none.

    It touches no hold. It moves the version of a free token that `batch` grants; where there is none, it takes a waiter out
    of the line who holds a slot by now, as `refused` shows; else it burns a ticket, so that the last one is another.
    """
    free = [moved for moved in map(_moved, batch.writes) if moved is not None]
    owners = {key[2] for key in refused.rows if key[0] == OWNER}
    places = [place for write in batch.writes for place in _place_of(write, owners)]
    burnt = [burnt for burnt in map(_burnt, batch.writes) if burnt is not None]
    writes = free[:1] or places[:2] or burnt
    return Batch(batch.table, batch.partition, tuple(writes)) if writes else None


def _never_again(write: Write, row: Row | None) -> bool:
    """Tell whether this guard is broken for good, by what the refusal shows of its row."""
    condition = write.condition
    if condition is None or isinstance(condition, Absent):
        return False  # a row that exists may be gone later
    # A token's holder leaves an expected one only with its version, or by its lease's end, which no late write undoes.
    return write.key[0] in (TOKEN, QUEUE, WAITER) and not condition.met_by(row)


def _moved(write: Write) -> Write | None:
    condition = write.condition
    if write.key[0] != TOKEN or not isinstance(condition, Expect) or None not in condition.columns["holder"]:
        return None
    (version,) = condition.columns["updated_time"]
    moved: dict[str, Value] = {"updated_time": 1 + (version if isinstance(version, int) else 0)}
    return update(write.key, moved, expect=condition.columns)


def _place_of(write: Write, owners: set[Value]) -> list[Write]:
    if write.key[0] != WAITER or write.verb is not Verb.DELETE or not isinstance(write.condition, Expect):
        return []
    (owner_id,) = write.condition.columns["holder"]
    return [write, delete(waiting_owner_key(str(owner_id)))] if owner_id in owners else []


def _burnt(write: Write) -> Write | None:
    if write.key != QUEUE_KEY or not isinstance(write.condition, Expect):
        return None
    seen = write.condition.columns["holder"]
    last = max(int(str(ticket or 0)) for ticket in seen)
    return update(QUEUE_KEY, {"holder": ticket_text(last + 1)}, expect={"holder": seen})


async def commit_surely(port: Port, batch: Batch, deadline: float) -> Applied | Refused:
    """Commit a batch that can apply only once, until the database says what became of it.

    Raises Unavailable when nothing happened, ChangeUnknown when the deadline comes before the answer.
    """
    try:
        return (await settled(port, batch, deadline)).outcome
    except StillUnknown as error:
        raise ChangeUnknown from error.__cause__
