"""What the faces do, written once: coroutines over a port, which the sync face drives in one go and asyncio awaits."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from ..database import Port, Slice
from ..database.port import Event
from ..owner import Owner, bucket_of, owner_id_to_store
from . import deletion, metadata
from .bucket import Bucket, Dice
from .errors import BadLease, BeingDeleted
from .layout import BucketRef
from .metadata import Description
from .operations import (
    Acquire,
    Answer,
    Cancel,
    Cancelled,
    Full,
    Granted,
    NotHeld,
    Operation,
    Release,
    Released,
    Renew,
    Renewed,
    Stale,
)
from .reading import look, waiters
from .rows import TOKENS, number, owner_key, token_key
from .state import Token, token_from_row

BEING_DELETED_PAUSE_S = 0.1
SHORTEST_LEASE_S, LONGEST_LEASE_S = 2, 365 * 24 * 3600  # Cassandra refuses a TTL that ends after January 2038


@dataclass(frozen=True, slots=True)
class Holder:
    """A held token: who holds it, with which fence, since when (ms since the epoch), and how long its lease still lasts."""

    token: int
    owner_id: str
    fence: int
    since_ms: int
    bucket: int
    lease_left_s: int | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """An owner in a bucket's line: its ticket, its position (1 is next), since when (ms since the epoch), by which client."""

    owner_id: str
    ticket: int
    position: int
    since_ms: int
    bucket: int
    client_id: str


@dataclass(frozen=True, slots=True)
class Standing:
    """Why an owner waits: its place, who holds the bucket's slots, and when the next lease ends at the latest (None: none)."""

    ticket: int
    position: int
    holders: tuple[Holder, ...]
    next_lease_ends_in_s: int | None


def checked_lease(lease_s: int | None) -> int | None:
    """Return a lease, or raise BadLease: whole seconds, as the server counts them, and room to renew before the end."""
    if lease_s is not None and (
        isinstance(lease_s, bool) or not isinstance(lease_s, int) or lease_s < SHORTEST_LEASE_S
    ):
        raise BadLease(f"A lease is a whole number of seconds, at least {SHORTEST_LEASE_S}, or None; not {lease_s!r}.")
    if lease_s is not None and lease_s > LONGEST_LEASE_S:
        raise BadLease(
            f"A lease has at most {LONGEST_LEASE_S} seconds (a year), not {lease_s}; None holds until released."
        )
    return lease_s


class Core:
    """The semaphores of one domain, over one port. Threads or tasks share it, as the port says."""

    def __init__(
        self, port: Port, domain_id: UUID, *, client_id: str, dice: Dice, known: dict[str, Description] | None = None
    ) -> None:
        self._port, self._domain_id, self._client_id, self._dice = port, domain_id, client_id, dice
        self.known: dict[str, Description] = {} if known is None else known  # a client's two cores share it
        self._readings: dict[str, Event] = {}  # by name: who reads what it is, and sets it at the end
        self._buckets: dict[tuple[str, int, int], Bucket] = {}  # by name, created_ms and number

    def close(self) -> None:
        """End all waiting in lines."""
        for bucket in list(self._buckets.values()):
            bucket.close()

    # --- semaphores --------------------------------------------------------------------------------------------------

    async def create(self, name: str, size: int, bucket_size: int | None, timeout_s: float) -> tuple[Description, bool]:
        """Create a semaphore, or find an equal one; tell which."""
        deadline = self._port.now() + timeout_s
        metadata.check_new(name, size, bucket_size)
        first = BucketRef(self._domain_id, name, 0, range(1), 0)
        after_ms = (await look(self._port, first, serial=True)).closed_ms or 0
        return await metadata.create(
            self._port, self._domain_id, name, size, bucket_size, after_ms=after_ms, deadline=deadline
        )

    async def describe(self, name: str, deadline: float = float("inf")) -> Description:
        """Read what a semaphore is, anew."""
        self.known[name] = found = await metadata.read(self._port, self._domain_id, name, deadline)
        return found

    async def page(self, after: str | None, limit: int) -> list[Description]:
        """Read the semaphores behind a name, in the order of their names."""
        return await metadata.page(self._port, self._domain_id, after=after, limit=limit)

    async def delete(self, name: str, *, force: bool, timeout_s: float) -> bool:
        """Delete a semaphore; tell whether it was this call that did."""
        deadline = self._port.now() + timeout_s
        found = await self.describe(name)
        try:
            return await deletion.remove(self._port, found, force=force, deadline=deadline)
        finally:
            self._forget(found)

    # --- slots -------------------------------------------------------------------------------------------------------

    async def acquire(
        self, name: str, owner: Owner | str, *, wait_s: float | None, lease_s: int | None, timeout_s: float
    ) -> Granted | Full:
        """Take a slot; where none is free, stand in line for it up to `wait_s` seconds (0: do not)."""
        operation = Acquire(owner_id_to_store(owner), checked_lease(lease_s), wait=wait_s != 0)
        answer = await self._ask(name, operation, timeout_s, wait_s)
        if isinstance(answer, Cancelled):  # its patience has ended, and its place is given up
            return Full(0)
        assert isinstance(answer, Granted | Full)
        return answer

    async def renew(
        self, name: str, owner: Owner | str, *, fence: int | None, lease_s: int | None, timeout_s: float
    ) -> Renewed | NotHeld | Stale:
        """Count a hold's lease anew, or end its being leased."""
        operation = Renew(owner_id_to_store(owner), checked_lease(lease_s), fence)
        answer = await self._ask(name, operation, timeout_s)
        assert isinstance(answer, Renewed | NotHeld | Stale)
        return answer

    async def cancel(self, name: str, owner: Owner | str, timeout_s: float) -> Cancelled:
        """Take an owner out of the line."""
        answer = await self._ask(name, Cancel(owner_id_to_store(owner)), timeout_s)
        assert isinstance(answer, Cancelled)
        return answer

    async def release(
        self, name: str, owner: Owner | str, fence: int | None, timeout_s: float
    ) -> Released | NotHeld | Stale:
        """Give an owner's slot back."""
        answer = await self._ask(name, Release(owner_id_to_store(owner), fence), timeout_s)
        assert isinstance(answer, Released | NotHeld | Stale)
        return answer

    async def holders(self, name: str) -> list[Holder]:
        """Read who holds what, bucket by bucket. What it shows is decided; a change in progress may be missing."""
        found, held = await self.describe(name), []
        for bucket in range(found.buckets):
            ref, now = found.bucket(bucket), self._port.now()
            tokens = (await look(self._port, ref, serial=False)).tokens
            held += [_holder(ref, token, row, now) for token, row in tokens.items() if row.holder is not None]
        return held

    async def waiters(self, name: str) -> list[Waiting]:
        """Read who stands in line, bucket by bucket and in order."""
        found, standing = await self.describe(name), []
        for bucket in range(found.buckets):
            standing += await self._line_of(found.bucket(bucket))
        return standing

    async def standing(self, name: str, owner: Owner | str) -> Standing | None:
        """Read why an owner still waits; None when it stands in no line."""
        owner_id = owner_id_to_store(owner)
        ref = (await self._described(name)).bucket_of_owner(owner_id)
        line = await self._line_of(ref)
        mine = next((waiting for waiting in line if waiting.owner_id == owner_id), None)
        if mine is None:
            return None
        now, state = self._port.now(), await look(self._port, ref, serial=False)
        holders = [_holder(ref, n, row, now) for n, row in state.tokens.items() if row.holder is not None]
        ends = [holder.lease_left_s for holder in holders if holder.lease_left_s is not None]
        return Standing(mine.ticket, mine.position, tuple(holders), min(ends, default=None))

    async def _line_of(self, ref: BucketRef) -> list[Waiting]:
        head = (await look(self._port, ref, serial=False)).head
        line = await waiters(self._port, ref, head, serial=False)
        return [
            Waiting(w.owner_id, w.ticket, position, w.since_ms or 0, ref.number, w.client_id)
            for position, w in enumerate(line, start=1)
        ]

    async def holder_of(self, name: str, token: int) -> Holder | None:
        """Read who holds a token, changes in progress settled. Raises IndexError for a token that the semaphore has not."""
        return await self._holder((await self._described(name)).bucket_of_token(token), token)

    async def token_of(self, name: str, owner: Owner | str) -> Holder | None:
        """Read what an owner holds, changes in progress settled."""
        owner_id = owner_id_to_store(owner)
        ref = (await self._described(name)).bucket_of_owner(owner_id)
        rows = await self._port.read(TOKENS, ref.partition, (Slice(owner_key(owner_id)),), serial=True)
        token = number(rows[0], "held_token") if rows else None
        held = None if token is None else await self._holder(ref, token)
        return held if held is not None and held.owner_id == owner_id else None

    async def _holder(self, ref: BucketRef, token: int) -> Holder | None:
        part, now = Slice(token_key(token), ttl_of="holder"), self._port.now()
        rows = await self._port.read(TOKENS, ref.partition, (part,), serial=True)
        row = token_from_row(rows[0], now) if rows else Token()
        return _holder(ref, token, row, now) if row.holder is not None else None

    async def _ask(self, name: str, operation: Operation, timeout_s: float, wait_s: float | None = 0.0) -> Answer:
        """Ask the owner's bucket; where its semaphore was deleted, ask its namesake's, if there is one."""
        stand_until = float("inf") if wait_s is None else self._port.now() + wait_s
        deadline = stand_until + timeout_s
        while True:
            found = await self._described(name, deadline)
            bucket = self._bucket(found, bucket_of(operation.owner_id, found.buckets))
            try:
                return await bucket.ask(operation, deadline, stand_until)
            except BeingDeleted:
                self._forget(found)
                if (await self._described(name, deadline)) == found:  # half deleted: the deleter is at work, or died
                    if self._port.now() + BEING_DELETED_PAUSE_S > deadline:
                        raise
                    await self._port.sleep(BEING_DELETED_PAUSE_S)

    async def _described(self, name: str, deadline: float = float("inf")) -> Description:
        """Return what a semaphore is. Those who come while it is read for the first time share that reading.

        Only what it shows: a semaphore that it does not show may have been created before they asked.
        """
        if (found := self.known.get(name)) is not None:
            return found
        read = self._port.event()
        if (other := self._readings.setdefault(name, read)) is not read:
            await other.wait(deadline - self._port.now())
            return self.known.get(name) or await self.describe(name, deadline)
        try:
            return await self.describe(name, deadline)
        finally:
            self._readings.pop(name, None)
            read.set()

    def _bucket(self, semaphore: Description, number_: int) -> Bucket:
        place = semaphore.name, semaphore.created_ms, number_
        bucket = self._buckets.get(place)
        if bucket is None:
            made = Bucket(self._port, semaphore.bucket(number_), self._client_id, self._dice)
            bucket = self._buckets.setdefault(place, made)  # another thread may have been faster
        return bucket

    def _forget(self, semaphore: Description) -> None:
        self.known.pop(semaphore.name, None)
        for number_ in range(semaphore.buckets):
            self._buckets.pop((semaphore.name, semaphore.created_ms, number_), None)


def _holder(ref: BucketRef, token: int, row: Token, now: float) -> Holder:
    version = row.version or 0
    left_s = None if row.ends_at is None else max(0, round(row.ends_at - now))
    return Holder(token, row.holder or "", version, version, ref.number, left_s)
