"""Deleting a semaphore, so that no grant slips in between and a deleter's death leaves nothing that a second run cannot end.

First every bucket is closed: a *closed row* says which semaphore (by its created_time) grants nothing any more, and a ticket
is burned, so that every batch planned before is refused and looks again. Then the rows go, and the metadata row last. The
closed rows and the queue rows stay: they keep a late batch from landing in a namesake created later.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..database import Applied, Batch, Port, Refused, Write, delete, update
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
    closed = [(ref, was) for ref in _buckets(semaphore) if (was := await _close(port, ref, deadline)) is not None]
    if not force:
        try:
            await _refuse_while_held(port, semaphore)
        except SemaphoreHeld:
            for ref, was in closed:
                await _open_again(port, ref, was, deadline)
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
    """Close a bucket for its semaphore, and return what its closed row said before, 0 for nothing.

    None where another deleter closed it, or may have: opening it again is not for us then, as that one may be clearing it.
    """
    while True:
        state = await look(port, ref, serial=True)
        if state.closed_ms is not None and state.closed_ms >= ref.created_ms:
            return None
        last = (NO_TICKET, None) if state.last == 0 else (ticket_text(state.last),)
        burned = update(QUEUE_KEY, {"holder": ticket_text(state.last + 1)}, expect={"holder": last})
        closed = update(CLOSED_KEY, {"holder": str(ref.created_ms)})
        if isinstance(await _commit(port, ref, (burned, closed), deadline), Applied):
            return state.closed_ms or 0


async def _open_again(port: Port, ref: BucketRef, was: int, deadline: float) -> None:
    expect = {"holder": (str(ref.created_ms),)}
    undone = update(CLOSED_KEY, {"holder": str(was)}, expect=expect) if was else delete(CLOSED_KEY, expect=expect)
    await _commit(port, ref, (undone,), deadline)


async def _clear(port: Port, ref: BucketRef, deadline: float) -> None:
    """Delete the rows of a closed bucket, each guarded as read: leases may end and holders release meanwhile."""
    while True:
        groups = await _deletions(port, ref)
        if not groups:
            return
        # Whole groups: an owner's row whose token row went in an earlier batch would be found by nobody.
        writes = [write for group in groups[: WRITES_A_BATCH // 2] for write in group]
        await _commit(port, ref, tuple(writes), deadline)


async def _deletions(port: Port, ref: BucketRef) -> list[tuple[Write, ...]]:
    """Plan the deletion of each token row and waiter row together with the row that leads to it."""
    state = await look(port, ref, serial=True)
    groups: list[tuple[Write, ...]] = []
    for number, token in state.tokens.items():
        if token.version is not None or token.holder is not None:
            holders = (FREE, None) if token.holder is None else (token.holder,)
            expect = {"holder": holders, "updated_time": (token.version,)}
            leading = () if token.holder is None else (delete(owner_key(token.holder)),)
            groups.append((delete(token_key(number), expect=expect), *leading))
    for waiter in await waiters(port, ref, state.head, serial=True):
        key = waiter_key(waiter.ticket, waiter.client_id)
        place = delete(waiting_owner_key(waiter.owner_id))
        groups.append((delete(key, expect={"holder": (waiter.owner_id,)}), place))
    return groups


async def _commit(port: Port, ref: BucketRef, writes: tuple[Write, ...], deadline: float) -> Applied | Refused:
    if port.now() > deadline:
        raise ChangeUnknown
    return await commit_surely(port, Batch(TOKENS, ref.partition, writes), deadline)
