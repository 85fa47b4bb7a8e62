"""Deleting a semaphore, so that no grant slips in between and a deleter's death leaves nothing that a second run cannot end.

First every bucket is closed: a *closed row* says which semaphore (by its created_time) grants nothing any more, and a ticket
is burned, so that every batch planned before is refused and looks again. Then the rows go, and the metadata row last. The
closed rows and the queue rows stay: they keep a late batch from landing in a namesake created later.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..database import Batch, Port, Refused, Write, delete, update
from ..owner import FREE
from .errors import ChangeUnknown, SemaphoreHeld
from .layout import BucketRef
from .metadata import Description
from .reading import look, waiters
from .rows import (
    CLOSED_KEY,
    METADATA,
    NO_TICKET,
    QUEUE_KEY,
    TOKENS,
    owner_key,
    ticket_text,
    token_key,
    waiter_key,
    waiting_owner_key,
)
from .settle import commit_surely

WRITES_A_BATCH = 100


async def remove(port: Port, semaphore: Description, *, force: bool, deadline: float) -> bool:
    """Delete a semaphore. Tell whether it was there until now.

    Raises SemaphoreHeld when it has holders, unless forced; ChangeUnknown or Unavailable when it is only half done: the same
    call goes on where this one ended.
    """
    if not force:
        await _refuse_while_held(port, semaphore)
    before = [await _close(port, ref, deadline) for ref in _buckets(semaphore)]
    if not force:
        try:
            await _refuse_while_held(port, semaphore)
        except SemaphoreHeld:
            for ref, closed_ms in zip(_buckets(semaphore), before, strict=True):
                await _open_again(port, ref, closed_ms, deadline)
            raise
    for ref in _buckets(semaphore):
        await _clear(port, ref, deadline)
    created = {"created_time": (semaphore.created_ms,)}
    batch = Batch(METADATA, (semaphore.domain_id,), (delete((semaphore.name,), expect=created),))
    return not isinstance(await commit_surely(port, batch, deadline), Refused)


def _buckets(semaphore: Description) -> Iterator[BucketRef]:
    return (semaphore.bucket(number) for number in range(semaphore.buckets))


async def _refuse_while_held(port: Port, semaphore: Description) -> None:
    held = 0
    for ref in _buckets(semaphore):
        held += len((await look(port, ref, serial=True)).held)
    if held:
        raise SemaphoreHeld(semaphore.name, held=held)


async def _close(port: Port, ref: BucketRef, deadline: float) -> int | None:
    """Close a bucket for its semaphore, and return what its closed row said before."""
    while True:
        state = await look(port, ref, serial=True)
        if (state.closed_ms or 0) >= ref.created_ms:
            return state.closed_ms
        last = (NO_TICKET, None) if state.last == 0 else (ticket_text(state.last),)
        burned = update(QUEUE_KEY, {"holder": ticket_text(state.last + 1)}, expect={"holder": last})
        closed = update(CLOSED_KEY, {"holder": str(ref.created_ms)})
        await _commit(port, ref, (burned, closed), deadline)


async def _open_again(port: Port, ref: BucketRef, closed_ms: int | None, deadline: float) -> None:
    expect = {"holder": (str(ref.created_ms),)}
    undone = delete(CLOSED_KEY, expect=expect)
    if closed_ms is not None:
        undone = update(CLOSED_KEY, {"holder": str(closed_ms)}, expect=expect)
    await _commit(port, ref, (undone,), deadline)


async def _clear(port: Port, ref: BucketRef, deadline: float) -> None:
    """Delete the rows of a closed bucket, each guarded as read: leases may end and holders release meanwhile."""
    while True:
        writes = await _deletions(port, ref)
        if not writes:
            return
        await _commit(port, ref, tuple(writes[:WRITES_A_BATCH]), deadline)


async def _deletions(port: Port, ref: BucketRef) -> list[Write]:
    state = await look(port, ref, serial=True)
    writes: list[Write] = []
    for number, token in state.tokens.items():
        if token.version is not None or token.holder is not None:
            holders = (FREE, None) if token.holder is None else (token.holder,)
            expect = {"holder": holders, "updated_time": (token.version,)}
            writes.append(delete(token_key(number), expect=expect))
            writes += [delete(owner_key(token.holder))] if token.holder is not None else []
    for waiter in await waiters(port, ref, state.head, serial=True):
        key = waiter_key(waiter.ticket, waiter.client_id)
        writes.append(delete(key, expect={"holder": (waiter.owner_id,)}))
        writes.append(delete(waiting_owner_key(waiter.owner_id)))
    return writes


async def _commit(port: Port, ref: BucketRef, writes: tuple[Write, ...], deadline: float) -> None:
    if port.now() > deadline:
        raise ChangeUnknown
    await commit_surely(port, Batch(TOKENS, ref.partition, writes), deadline)
