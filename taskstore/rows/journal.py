"""The journal itself: commits, segments, and being fenced."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from uuid import uuid4

from ... import schema
from ...database import ClosedError, DatabaseError, Row, Settings, Slice, Store, insert, open_store
from ..errors import Fenced, JournalFailed, JournalLocked
from ..journal import Take, Unsettled
from ..port import Port
from ..record import Record
from .guard import Guard, Lost, created
from .payload import cut
from .replay import Commits, replay
from .snapshot import Snapshot
from .tables import JOURNAL, SEGMENT_HEAD, number
from .takeover import new_head, segment_guard, take_over

SEGMENT_COMMITS, SEGMENT_PARTS = 1_000, 1_000
PATIENCE_S = 60.0


class DatabaseJournal:
    """A journal in a database that has the tables of schema version 0.2. `name` tells stores of one keyspace apart.

    `database` is a URL, settings, or an open store (which stays open). Whoever opens it later takes it over.
    """

    keeps = True

    def __init__(
        self, database: Settings | str | Store, name: str = "tasks", *, segment_commits: int = SEGMENT_COMMITS
    ) -> None:
        self.name = name
        self._database, self._segment_commits = database, segment_commits
        self._store: Store | None = None
        self._segment: Guard | None = None

    def __repr__(self) -> str:
        return f"<DatabaseJournal {self.name!r} {self._store if self._store is not None else 'not open'}>"

    async def open(self, port: Port, take: Take) -> Sequence[str]:
        """See Journal. Raises SchemaError, JournalDamaged, Fenced, and what `open_store` raises."""
        if self._store is not None:
            raise JournalLocked(repr(self), "this process")
        self._port, database = port, self._database
        self._store = await port.run(lambda: open_store(database)) if isinstance(database, str | Settings) else database
        try:
            await self._open(self._store, take)
        except Unsettled as error:
            await self.close()
            raise JournalFailed from error
        except BaseException:
            await self.close()
            raise
        return ()

    async def _open(self, store: Store, take: Take) -> None:
        self._rows = self._port.over(store)
        await schema.check(self._rows, store.consistency)
        taken = await take_over(self._rows, self.name, uuid4().hex, self._rows.now() + PATIENCE_S)
        self._root, self._segment, self._number = taken.store, taken.segment, taken.number
        self._epoch = number(taken.store.shown, "epoch") or 0
        self._commits: Commits = await replay(self._rows, self.name, taken.store.shown, taken.spans, take)
        self._parts = sum(parts for _, parts in self._commits[self._number])
        self._wanted: tuple[int, int] = (0, 0)  # the commit on its way, and its parts

    async def append(self, records: Sequence[Record], deadline: float) -> None:
        """See Journal."""
        guard, parts = self._usable(), cut(records)
        self._wanted = (self._last + 1, len(parts))
        try:
            if self._is_full():
                guard = await self._roll(deadline)
            for part, data in enumerate(parts):
                sequence, _ = self._wanted
                values: Row = {"epoch": self._epoch, "parts": len(parts), "data": data}
                # The head moves with the last part: until then the others do not count.
                moved: Row = {"last": sequence} if part == len(parts) - 1 else {}
                await guard.change(moved, [insert((sequence, part), values)], deadline)
        except Lost as error:
            if not await self._was_in(guard):
                raise Fenced from error
        self._appended()

    async def settle(self, deadline: float) -> bool:
        """See Journal."""
        guard = self._usable()
        try:
            await guard.settle(deadline)
        except Lost as error:
            if not await self._was_in(guard):
                raise Fenced from error
            self._appended()
            return True
        except DatabaseError as error:
            raise Unsettled from error
        if self._last != self._wanted[0]:
            return False
        self._appended()
        return True

    async def cut(self) -> int:
        """See Journal."""
        self._usable()
        try:
            await self._roll(self._rows.now() + PATIENCE_S)
        except Lost as error:
            raise Fenced from error
        except Unsettled as error:
            raise JournalFailed from error
        return self._number

    async def snapshot(self, cut: int, records: Sequence[Record]) -> None:
        """See Journal."""
        self._usable()
        spent = {segment: commits for segment, commits in self._commits.items() if segment < cut}
        try:
            await Snapshot(self._rows, self.name, self._root).write(cut, records, spent)
        except Lost as error:
            raise Fenced from error
        except Unsettled as error:
            raise JournalFailed from error
        for segment in spent:
            del self._commits[segment]

    async def close(self) -> None:
        """See Journal. Nothing is written: the next one takes it over as it is."""
        store, self._store, self._segment = self._store, None, None
        if store is not None and store is not self._database:
            await self._port.run(store.close)

    @property
    def _last(self) -> int:
        return number(self._usable().shown, "last") or 0

    def _usable(self) -> Guard:
        if self._segment is None:
            raise ClosedError
        return self._segment

    def _is_full(self) -> bool:
        commits = len(self._commits[self._number])
        return self._is_closed() or commits >= self._segment_commits or self._parts >= SEGMENT_PARTS

    def _is_closed(self) -> bool:
        return self._usable().shown.get("following") is not None

    async def _roll(self, deadline: float) -> Guard:
        """Close the segment, and go on in the next. Each step bears repetition: an interrupted roll goes on from there."""
        guard, following = self._usable(), self._number + 1
        if not self._is_closed():
            await guard.change({"following": following}, (), deadline)
        head = new_head(self._epoch, self._last)
        there = await created(self._rows, JOURNAL, (self.name, following), SEGMENT_HEAD, head, deadline)
        if there is not None and there.get("epoch") not in (None, self._epoch):
            raise Lost
        self._segment, self._number = segment_guard(self._rows, self.name, following, head), following
        self._commits[following], self._parts = [], 0
        return self._segment

    def _appended(self) -> None:
        self._commits[self._number].append(self._wanted)
        self._parts += self._wanted[1]

    async def _was_in(self, guard: Guard) -> bool:
        """Tell whether a commit that was left open had applied before another process took over: it has it, then."""
        if not guard.was_unsure:
            return False
        sequence, parts = self._wanted
        with suppress(DatabaseError):
            place = Slice((sequence, parts - 1))
            rows = await self._rows.read(JOURNAL, (self.name, self._number), (place,), serial=True)
            return bool(rows) and number(rows[0], "epoch") == self._epoch
        return False
