"""Spellings for what a plan knows, writes and answers, so that a situation reads as one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slotkeeper.database import Value, Write, delete, insert, update
from slotkeeper.owner import FREE
from slotkeeper.semaphore import mark
from slotkeeper.semaphore.operations import Answer, Operation
from slotkeeper.semaphore.plan import plan
from slotkeeper.semaphore.planned import Ask, Plan, Setting
from slotkeeper.semaphore.rows import (
    HEAD_KEY,
    NO_TICKET,
    QUEUE_KEY,
    owner_key,
    ticket_text,
    token_key,
    waiter_key,
    waiting_owner_key,
)
from slotkeeper.semaphore.state import State, Token, Waiter

NOW, MARK, OLD_MARK = 1_000_000, 77, 33
SETTING = Setting("us", now=100.0, wall_ms=NOW, mark=MARK)
FREE_OR_NULL = (FREE, None)


def state(tokens: Mapping[int, Token], *line: Waiter, last: int = 0, mark: int | None = None, head: int = 0) -> State:
    """Spell a state."""
    return State(dict(tokens), last, mark, head, line={waiter.ticket: waiter for waiter in line})


def held(holder: str, version: int = 500, ends_at: float | None = None) -> Token:
    """Spell a held token."""
    return Token(holder, version, ends_at)


def waiter(ticket: int, owner_id: str, client_id: str = "they") -> Waiter:
    """Spell a waiter: through another process, unless told otherwise."""
    return Waiter(ticket, client_id, owner_id, 400)


def planned(known: State, *operations: Operation, setting: Setting = SETTING) -> Plan:
    """Plan operations whose callers came before the state was read."""
    return plan(known, [Ask(operation) for operation in operations], setting)


def queue(last: int, *, seen: int | None = None, **changes: int) -> Write:
    """Spell the write that names the last ticket; `seen` is the one that was read, `mark` the free mark to guard on."""
    seen = last if seen is None else seen
    named: tuple[Value, ...] = (ticket_text(seen),) if seen else (NO_TICKET, None)
    expect = {"holder": named}
    if "mark_seen" in changes:
        expect["held_token"] = (changes["mark_seen"],)
    marked = {"held_token": changes["marked"]} if "marked" in changes else {}
    return update(QUEUE_KEY, {"holder": ticket_text(last), **marked}, expect=expect)


def granted(token: int, owner_id: str, *, seen: int | None, holders: tuple[Value, ...] = FREE_OR_NULL) -> list[Write]:
    """Spell a grant without a lease."""
    version = NOW if seen is None or seen < NOW else seen + 1
    guard = {"holder": holders, "updated_time": (seen,)}
    values: dict[str, Value] = {"holder": owner_id, "updated_time": version, "held_token": mark.taken(MARK)}
    return [
        update(token_key(token), values, expect=guard),
        insert(owner_key(owner_id), {"held_token": token, "updated_time": version}, absent=True),
    ]


def leased(
    token: int,
    owner_id: str,
    ttl_s: int,
    *,
    seen: int | None,
    holders: tuple[Value, ...] = FREE_OR_NULL,
    handed_to: str | None = None,
) -> list[Write]:
    """Spell a grant with a lease: the version has no TTL, so that it outlives the holder. A place's client may be named."""
    marked = mark.taken(MARK) if handed_to is None else mark.handed_to(handed_to)
    guard = {"holder": holders, "updated_time": (seen,)}
    return [
        update(token_key(token), {"holder": owner_id}, expect=guard, ttl_s=ttl_s),
        update(token_key(token), {"updated_time": NOW, "held_token": marked}),
        insert(owner_key(owner_id), {"held_token": token, "updated_time": NOW}, absent=True, ttl_s=ttl_s),
    ]


def gone(ticket: int, owner_id: str, client_id: str = "they") -> list[Write]:
    """Spell a waiter's leaving: only its own row is guarded."""
    row = delete(waiter_key(ticket, client_id), expect={"holder": (owner_id,)})
    return [row, delete(waiting_owner_key(owner_id))]


def freed(token: int, owner_id: str, *, seen: int = 500) -> Write:
    """Spell the token row of a release to nobody."""
    free: dict[str, Value] = {"holder": FREE, "updated_time": NOW}
    return update(token_key(token), free, expect={"holder": (owner_id,), "updated_time": (seen,)})


def head(ticket: int) -> Write:
    """Spell the head's move, which guards nothing: it is a hint."""
    return update(HEAD_KEY, {"holder": ticket_text(ticket)})


def in_order(writes: Sequence[Write]) -> list[Write]:
    """Sort writes: their order in a batch says nothing."""
    return sorted(writes, key=repr)


def answers(made: Plan) -> dict[int, Answer]:
    """Return what each operation is answered, by its index."""
    return dict([*made.at_once, *made.after])
