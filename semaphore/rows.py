"""The tables, and the rows of a bucket's partition. Names, keys and row types are Cadence's; types 11 and up are ours."""

from __future__ import annotations

from ..database import Key, Kind, Row, Slice, Table
from ..owner import FREE, NONE

METADATA = Table(
    "semaphore_metadata",
    {"domain_id": Kind.UUID},
    {"semaphore_name": Kind.TEXT},
    {"size": Kind.INT, "bucket_size": Kind.INT, "created_time": Kind.TIMESTAMP},
)

TOKENS = Table(
    "semaphore_tokens",
    {"domain_id": Kind.UUID, "semaphore_name": Kind.TEXT, "bucket": Kind.INT},
    {"type": Kind.INT, "token_id": Kind.INT, "owner_id": Kind.TEXT},
    {"holder": Kind.TEXT, "held_token": Kind.INT, "updated_time": Kind.TIMESTAMP},
)

TOKEN, OWNER, WAITER, WAITING_OWNER, QUEUE, HEAD, CAPACITY, CLOSED = 1, 2, 11, 12, 13, 14, 15, 16

QUEUE_KEY: Key = (QUEUE, 0, NONE)  # holder = the last ticket given, held_token = the free mark
HEAD_KEY: Key = (HEAD, 0, NONE)  # holder = the head: every ticket at or below it has left
CLOSED_KEY: Key = (CLOSED, 0, NONE)  # holder = created_time of the deleted semaphore, in ms: nothing of it is granted

# One statement, so that the queue row is never newer than the tokens: an enqueue guards on both.
SNAPSHOT = Slice(among=(TOKEN, QUEUE, HEAD, CLOSED), ttl_of="holder")

NO_TICKET = "0" * 19


def token_key(token: int) -> Key:
    """Return the key of a token row."""
    return (TOKEN, token, NONE)


def owner_key(owner_id: str) -> Key:
    """Return the key of the row that leads from an owner to its token."""
    return (OWNER, -1, owner_id)


def waiter_key(ticket: int, client_id: str) -> Key:
    """Return the key of a waiter row: in ticket order, and nobody else's even if a ticket were given twice."""
    return (WAITER, 0, f"{ticket_text(ticket)}/{client_id}")


def waiting_owner_key(owner_id: str) -> Key:
    """Return the key of the row that leads from a waiting owner to its ticket."""
    return (WAITING_OWNER, -1, owner_id)


def waiters_behind(head: int) -> Slice:
    """Return the slice of the waiters behind the head. Never from the start: the departed lie there as tombstones."""
    return Slice((WAITER, 0), after=f"{ticket_text(head)}~", ttl_of="holder")


def ticket_text(ticket: int) -> str:
    """Spell a ticket so that text order is ticket order."""
    return f"{ticket:019d}"


def is_free(holder: str | None) -> bool:
    """Tell whether a holder is nobody: never granted, its lease ended, or released."""
    return holder is None or holder == FREE


def text(row: Row, column: str) -> str | None:
    """Return a text cell."""
    value = row.get(column)
    return value if isinstance(value, str) else None


def number(row: Row, column: str) -> int | None:
    """Return an int or timestamp cell."""
    value = row.get(column)
    return value if isinstance(value, int) else None
