"""What an opportunistic store has answered and not yet written down: never older than its lag allows, and never too much."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from ..database import DatabaseError
from .errors import Fenced, Interrupted, JournalFailed, OutcomeUnknown, StoreBusy, TaskStoreError
from .journal import Journal, Unsettled
from .port import Background, Port
from .record import Record

MOST_BEHIND, MOST_TOGETHER = 10_000, 1_000
RESERVED = 1 << 20  # ids that may be given out before the journal has heard of them: a crash must not bring them back
AGAIN_S, TRY_S, LOOK_S = 0.1, 10.0, 1.0


class Behind:
    """Records on their way to the journal, appended by something that runs beside the callers."""

    def __init__(self, port: Port, journal: Journal, lag_s: float) -> None:
        self.failure: Exception | None = None  # of the last append, until one succeeds
        self._port, self._journal, self.lag_s = port, journal, lag_s
        self._waiting: deque[tuple[float, Record]] = deque()
        self._leaving: list[tuple[float, Record]] = []
        self._wanted, self._written = port.event(), port.event()
        self._taken = self._done = 0
        self._reserved = self._durable = 0
        self._closing = self._stopped = False
        self._writer: Background | None = None
        self._end: Callable[[TaskStoreError], None] = lambda error: None

    def __len__(self) -> int:
        return len(self._waiting) + len(self._leaving)

    def oldest_s(self) -> float:
        """Return for how long the oldest of these has been answered."""
        oldest = next(iter((*self._leaving[:1], *list(self._waiting)[:1])), None)
        return 0.0 if oldest is None else self._port.now() - oldest[0]

    async def open(self, last_id: int, now_ns: int, end: Callable[[TaskStoreError], None]) -> None:
        """Reserve ids, and begin to write. `end` is told when another process has taken the journal over."""
        self._end = end
        self._reserved = last_id + RESERVED
        await self._journal.append([self.reservation(now_ns)], self._port.now() + TRY_S)
        self._durable = self._reserved
        self._writer = self._port.begin(self._write_on())

    def reservation(self, now_ns: int) -> Record:
        """Return the record that says up to where ids may be in use."""
        return Record(now_ns, self._reserved)

    def take(self, records: Sequence[Record], last_id: int) -> None:
        """Take over records that are answered now."""
        now = self._port.now()
        if last_id > self._reserved - RESERVED // 2:
            self._reserved = last_id + RESERVED
            self._put(now, self.reservation(records[-1].at_ns))
        for record in records:
            self._put(now, record)
        self._wanted.set()

    def _put(self, now: float, record: Record) -> None:
        self._waiting.append((now, record))
        self._taken += 1

    async def room(self, deadline: float) -> None:
        """Wait until nothing is older than the lag allows. Raises StoreBusy."""
        await self._until(lambda: len(self) < MOST_BEHIND and self.oldest_s() <= self.lag_s, deadline)

    async def covered(self, last_id: int, deadline: float) -> None:
        """Wait until an id is known to the journal as one that may be in use. Raises OutcomeUnknown."""
        if last_id > self._durable:
            try:
                await self._until(lambda: last_id <= self._durable, deadline)
            except (TaskStoreError, DatabaseError) as error:
                raise OutcomeUnknown from error

    async def flush(self, deadline: float) -> None:
        """Wait until everything that was answered is durable. Raises what keeps it from being so, at the deadline."""
        taken = self._taken
        await self._until(lambda: self._done >= taken, deadline)

    async def close(self, deadline: float) -> None:
        """Write the rest down, and stop. Raises what kept it from being written."""
        try:
            if not isinstance(self.failure, Fenced):
                await self.flush(deadline)
        finally:
            self._closing = True
            self._wanted.set()
            if self._writer is not None:
                await self._writer.ended()

    async def _until(self, holds: Callable[[], bool], deadline: float) -> None:
        while not holds():
            if self._stopped or self._port.now() > deadline:
                raise self.failure or StoreBusy()
            self._written.clear()
            if not holds():
                await self._written.wait(min(LOOK_S, deadline - self._port.now()))

    async def _write_on(self) -> None:
        try:
            while not self._closing:
                if self._leaving or self._waiting:
                    await self._write()
                elif await self._wanted.wait(LOOK_S):
                    self._wanted.clear()
        finally:
            self._stopped = True
            self._written.set()

    async def _write(self) -> None:
        while self._waiting and len(self._leaving) < MOST_TOGETHER:
            self._leaving.append(self._waiting.popleft())
        try:
            await self._append([record for _, record in self._leaving])
        except Fenced as error:
            self.failure, self._closing = error, True
            self._end(error)
            return
        except (JournalFailed, DatabaseError) as error:
            self.failure = error
            self._written.set()
            await self._port.sleep(AGAIN_S)
            return
        except Exception as error:
            self.failure, self._closing = error, True
            self._end(Interrupted())
            raise
        self.failure = None
        self._durable = max(self._durable, max(record.last_id for _, record in self._leaving))
        done, self._leaving = len(self._leaving), []
        self._done += done
        self._written.set()

    async def _append(self, records: list[Record]) -> None:
        try:
            await self._journal.append(records, self._port.now() + TRY_S)
        except Unsettled:
            while not await self._settled():
                await self._port.sleep(AGAIN_S)

    async def _settled(self) -> bool:
        """Tell whether what was left open is in by now. Raises JournalFailed where it certainly is not."""
        try:
            is_in = await self._journal.settle(self._port.now() + TRY_S)
        except Unsettled:
            return False
        if not is_in:
            raise JournalFailed
        return True
