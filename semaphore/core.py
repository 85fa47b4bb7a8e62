"""What the faces do, written once: coroutines over a port, which the sync face drives in one go and asyncio awaits."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from ..database import Port, Slice
from ..owner import Owner, owner_id_to_store
from . import deletion, metadata
from .bucket import Bucket, Dice
from .errors import BeingDeleted
from .layout import BucketRef
from .metadata import Description
from .operations import Acquire, Answer, Full, Granted, NotHeld, Operation, Release, Released, Stale
from .reading import look
from .rows import TOKENS, number, owner_key, token_key
from .state import Token, token_from_row

BEING_DELETED_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class Holder:
    """A held token: who holds it, with which fence, since when (ms since the epoch), and how long its lease still lasts."""

    token: int
    owner_id: str
    fence: int
    since_ms: int
    bucket: int
    lease_left_s: int | None = None


class Core:
    """The semaphores of one domain, over one port. Threads or tasks share it, as the port says."""

    def __init__(self, port: Port, domain_id: UUID, *, client_id: str, dice: Dice) -> None:
        self._port, self._domain_id, self._client_id, self._dice = port, domain_id, client_id, dice
        self._known: dict[str, Description] = {}
        self._buckets: dict[BucketRef, Bucket] = {}

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

    async def describe(self, name: str) -> Description:
        """Read what a semaphore is, anew."""
        self._known[name] = found = await metadata.read(self._port, self._domain_id, name)
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

    async def acquire(self, name: str, owner: Owner | str, timeout_s: float) -> Granted | Full:
        """Take a slot if one is free."""
        answer = await self._ask(name, Acquire(owner_id_to_store(owner)), timeout_s)
        assert isinstance(answer, Granted | Full)
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

    async def _ask(self, name: str, operation: Operation, timeout_s: float) -> Answer:
        """Ask the owner's bucket; where its semaphore was deleted, ask its namesake's, if there is one."""
        deadline = self._port.now() + timeout_s
        while True:
            found = await self._described(name)
            try:
                return await self._bucket(found.bucket_of_owner(operation.owner_id)).ask(operation, deadline)
            except BeingDeleted:
                self._forget(found)
                if (await self._described(name)) == found:  # half deleted: the deleter is at work, or died
                    if self._port.now() + BEING_DELETED_PAUSE_S > deadline:
                        raise
                    await self._port.sleep(BEING_DELETED_PAUSE_S)

    async def _described(self, name: str) -> Description:
        return self._known.get(name) or await self.describe(name)

    def _bucket(self, ref: BucketRef) -> Bucket:
        bucket = self._buckets.get(ref)
        if bucket is None:
            bucket = self._buckets.setdefault(ref, Bucket(self._port, ref, self._client_id, self._dice))
        return bucket

    def _forget(self, semaphore: Description) -> None:
        self._known.pop(semaphore.name, None)
        for number_ in range(semaphore.buckets):
            self._buckets.pop(semaphore.bucket(number_), None)


def _holder(ref: BucketRef, token: int, row: Token, now: float) -> Holder:
    version = row.version or 0
    left_s = None if row.ends_at is None else max(0, round(row.ends_at - now))
    return Holder(token, row.holder or "", version, version, ref.number, left_s)
