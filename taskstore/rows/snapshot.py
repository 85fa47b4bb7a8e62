"""Snapshots: written beside the commits, made to count in one step, and what they cover is emptied behind that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from zlib import crc32

from ...database import Batch, Key, Port, Row, Slice, Write, delete, insert, update
from ..record import Record
from .guard import Guard, committed, created
from .payload import streamed
from .replay import commits_of
from .tables import JOURNAL, SEGMENT_HEAD, SNAPSHOT_HEAD, SNAPSHOTS, number
from .takeover import FIRST_SEGMENT, Span, head_of

DELETED_TOGETHER = 100
STEP_S = 60.0


class Snapshot:
    """A snapshot to be written. `root` guards the store's row."""

    def __init__(self, port: Port, store: str, root: Guard) -> None:
        self._port, self._store, self._root = port, store, root

    async def write(
        self, segment: int, records: Sequence[Record], spent: Mapping[int, Sequence[tuple[int, int]]]
    ) -> None:
        """Write it, let it stand for all before a segment, and empty those segments. Raises Lost, Unsettled, DatabaseError."""
        await self._remove_left_over()
        epoch = number(self._root.shown, "epoch") or 0
        await self._note({"writing_epoch": epoch, "writing_segment": segment})
        await self._write_parts((self._store, epoch, segment), records)
        former = {"writing_epoch": self._shown("snapshot_epoch"), "writing_segment": self._shown("snapshot_segment")}
        covering = {"snapshot_epoch": epoch, "snapshot_segment": segment, "first_segment": segment}
        await self._note({**covering, **former})  # the former one is what is left over now
        await self._remove_left_over()
        for each in range(self._shown("kept_segment") or FIRST_SEGMENT, segment):
            await self._empty(each, spent.get(each))
        await self._note({"kept_segment": segment})

    async def _note(self, values: Row) -> None:
        await self._root.change(values, (), self._deadline())

    def _shown(self, column: str) -> int | None:
        return number(self._root.shown, column)

    def _deadline(self) -> float:
        return self._port.now() + STEP_S

    async def _write_parts(self, partition: Key, records: Sequence[Record]) -> None:
        head: Row = {"parts": 0, "checksum": 0}
        await created(self._port, SNAPSHOTS, partition, SNAPSHOT_HEAD, head, self._deadline())
        guard = Guard(self._port, SNAPSHOTS, partition, SNAPSHOT_HEAD, head, ("parts",), "parts")
        checksum = 0
        for part, data in enumerate(streamed(records)):
            checksum = crc32(data, checksum)
            await guard.change({"checksum": checksum}, [insert((part,), {"data": data})], self._deadline())

    async def _remove_left_over(self) -> None:
        """Remove the snapshot that the store's row names as not needed, if it names one."""
        epoch, segment = self._shown("writing_epoch"), self._shown("writing_segment")
        if epoch is None or segment is None:
            return
        partition: Key = (self._store, epoch, segment)
        rows = await self._port.read(SNAPSHOTS, partition, (Slice(SNAPSHOT_HEAD),), serial=True)
        if rows and (parts := number(rows[0], "parts")) is not None:
            expect = {"parts": (parts,)}
            guard = update(SNAPSHOT_HEAD, {"checksum": -1}, expect=expect)
            await self._delete(SNAPSHOT_HEAD, partition, guard, [(part,) for part in range(parts)])
            last = Batch(SNAPSHOTS, partition, (delete(SNAPSHOT_HEAD, expect=expect),))
            await committed(self._port, last, self._deadline())
        await self._note({"writing_epoch": None, "writing_segment": None})

    async def _empty(self, segment: int, commits: Sequence[tuple[int, int]] | None) -> None:
        """Delete a closed segment's commits. Its head row stays: whoever was paused for long finds there that it is late.

        Without `commits`, which an earlier writer knew and did not come to delete, they are read once more.
        """
        partition: Key = (self._store, segment)
        if commits is None:
            commits = await self._read(segment)
        guard = update(SEGMENT_HEAD, {"following": segment + 1}, expect={"following": (segment + 1,)})
        keys: Iterator[Key] = ((sequence, part) for sequence, parts in commits for part in range(parts))
        await self._delete(SEGMENT_HEAD, partition, guard, keys)

    async def _read(self, segment: int) -> list[tuple[int, int]]:
        partition: Key = (self._store, segment)
        row = await head_of(self._port, self._store, segment) or {}
        span = Span(number(row, "since") or 0, number(row, "last") or 0)
        return [(sequence, len(rows)) async for sequence, rows in commits_of(self._port, partition, span)]

    async def _delete(self, head: Key, partition: Key, guard: Write, keys: Iterable[Key]) -> None:
        table, rest = SNAPSHOTS if head == SNAPSHOT_HEAD else JOURNAL, iter(keys)
        while some := [delete(key) for key in islice(rest, DELETED_TOGETHER)]:
            await committed(self._port, Batch(table, partition, (guard, *some)), self._deadline())
