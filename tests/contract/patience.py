"""A port on which pauses take no time, and the bucket loop over it, in front of a served store (see `servedstore`)."""

from __future__ import annotations

from uuid import uuid4

from cqlserver import Request
from semaphorerows import Seen, seen
from servedstore import Behind

from slotkeeper.database import Batch, BlockingPort, Outcome, Store, drive
from slotkeeper.database.port import Pending
from slotkeeper.semaphore.bucket import Bucket
from slotkeeper.semaphore.layout import BucketRef
from slotkeeper.semaphore.operations import Acquire, Answer, Operation, Release

TIMEOUT_S = 20.0


class PatientPort(BlockingPort):
    """A blocking port whose sleep moves its own clock. `slept` has the pauses in seconds, `moved_s` their sum.

    `left_at` has when each batch left, on that clock.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.slept: list[float] = []
        self.left_at: list[float] = []

    def begin_commit(self, batch: Batch) -> Pending[Outcome]:
        """Note when a batch leaves."""
        self.left_at.append(self.now())
        return super().begin_commit(batch)

    @property
    def moved_s(self) -> float:
        """How far the clock is ahead."""
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        """Move the clock."""
        self.slept.append(seconds)

    def now(self) -> float:
        """Return seconds on the moved clock."""
        return super().now() + self.moved_s


class Loop:
    """One bucket of a semaphore of its own, as one process works on it. `sent` has what reached the server since."""

    def __init__(self, behind: Behind, store: Store, *, size: int = 1) -> None:
        self.behind, self.port = behind, PatientPort(store)
        self.ref = BucketRef(uuid4(), f"s {uuid4()}", 0, range(1, size + 1), 1)
        self.bucket = self.another()
        self._before = len(behind.server.lwts)

    def another(self) -> Bucket:
        """Return the same bucket as another process works on it. Its chance is always 0: it begins at the first token."""
        return Bucket(self.port, self.ref, str(uuid4()), lambda: 0.0)

    @property
    def sent(self) -> list[Request]:
        """The transactions that reached the server."""
        return self.behind.server.lwts[self._before :]

    def ask(self, operation: Operation, *, bucket: Bucket | None = None, timeout_s: float = TIMEOUT_S) -> Answer:
        """Carry an operation out."""
        return drive((bucket or self.bucket).ask(operation, self.port.now() + timeout_s))

    def acquire(self, owner_id: str, *, bucket: Bucket | None = None, timeout_s: float = TIMEOUT_S) -> Answer:
        """Ask for a slot, without waiting for one."""
        return self.ask(Acquire(owner_id), bucket=bucket, timeout_s=timeout_s)

    def release(self, owner_id: str, *, bucket: Bucket | None = None, timeout_s: float = TIMEOUT_S) -> Answer:
        """Give a slot back."""
        return self.ask(Release(owner_id), bucket=bucket, timeout_s=timeout_s)

    @property
    def holders(self) -> dict[str, int]:
        """Who holds which token, by the rows, which must agree."""
        return self.seen().holders

    def seen(self) -> Seen:
        """Read the rows."""
        return seen(self.behind.store, self.ref.domain_id, self.ref.semaphore)
