"""Reading a journal back: the snapshot, then every commit up to the heads, a page at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from ...database import Key, Port, Row, Slice
from ..errors import JournalDamaged
from ..journal import Take
from .payload import Unstream, joined
from .tables import JOURNAL, SNAPSHOT_HEAD, SNAPSHOTS, blob, number
from .takeover import Span

PAGE_ROWS = 64
Commits = dict[int, list[tuple[int, int]]]  # by segment: the commits, and how many parts each has


async def replay(port: Port, store: str, root: Row, spans: Mapping[int, Span], take: Take) -> Commits:
    """Give `take` every record, and return the commits that were read. Raises JournalDamaged, DatabaseError."""
    epoch, segment = number(root, "snapshot_epoch"), number(root, "snapshot_segment")
    if epoch is not None and segment is not None:
        await _replay_snapshot(port, (store, epoch, segment), take)
    commits: Commits = {}
    before = 0 if segment is None else next(iter(spans.values())).since
    for each, span in spans.items():
        if span.since != before:
            raise JournalDamaged(f"{store!r}", [f"segment {each} begins behind commit {span.since}, not {before}"])
        commits[each] = await _replay_segment(port, store, each, span, take)
        before = span.last
    return commits


async def _replay_snapshot(port: Port, partition: Key, take: Take) -> None:
    where = f"the snapshot {partition!r}"
    heads = await port.read(SNAPSHOTS, partition, (Slice(SNAPSHOT_HEAD),), serial=True)
    parts = number(heads[0], "parts") if heads else None
    if parts is None:
        raise JournalDamaged(where, ["its head row is missing"])
    stream, seen = Unstream(), 0
    while seen < parts:
        rows = await port.read(SNAPSHOTS, partition, (Slice(after=seen - 1, limit=PAGE_ROWS),), serial=False)
        for row in rows[: parts - seen]:
            if number(row, "part") != seen:
                raise JournalDamaged(where, [f"part {seen} of {parts} is missing"])
            _give(where, stream, row, take)
            seen += 1
        if not rows:
            raise JournalDamaged(where, [f"part {seen} of {parts} is missing"])
    if stream.rest or stream.checksum != number(heads[0], "checksum"):
        raise JournalDamaged(where, ["it has another checksum than it says"])


def _give(where: str, stream: Unstream, row: Row, take: Take) -> None:
    try:
        for record in stream.records(blob(row)):
            take(record)
    except (ValueError, KeyError) as error:
        raise JournalDamaged(where, [f"part {number(row, 'part')} means nothing ({error})"]) from error


async def _replay_segment(port: Port, store: str, segment: int, span: Span, take: Take) -> list[tuple[int, int]]:
    where, read, before = f"segment {segment} of {store!r}", list[tuple[int, int]](), span.since
    async for sequence, rows in commits_of(port, (store, segment), span):
        parts = number(rows[0], "parts") or 0
        if sequence != before + 1:
            raise JournalDamaged(where, [f"commits {before + 1} to {sequence - 1} are missing"])
        if not parts or [number(row, "part") for row in rows[:parts]] != list(range(parts)):
            raise JournalDamaged(where, [f"commit {sequence} has not all of its {parts} parts"])
        try:
            for record in joined([blob(row) for row in rows[:parts]]):
                take(record)
        except (ValueError, KeyError) as error:
            raise JournalDamaged(where, [f"commit {sequence} means nothing ({error})"]) from error
        read.append((sequence, parts))
        before = sequence
    if before < span.last:
        raise JournalDamaged(where, [f"commits {before + 1} to {span.last} are missing"])
    return read


async def commits_of(port: Port, partition: Key, span: Span) -> AsyncIterator[tuple[int, list[Row]]]:
    """Read commit after commit with all its rows."""
    after = span.since
    while after < span.last:
        page = await port.read(JOURNAL, partition, (Slice(after=after, limit=PAGE_ROWS),), serial=False)
        if not page:
            return
        by_commit: dict[int, list[Row]] = {}
        for row in page:
            by_commit.setdefault(number(row, "sequence") or 0, []).append(row)
        if len(page) == PAGE_ROWS:  # the last one may go on behind the page
            last = next(reversed(by_commit))
            by_commit[last] += await _rest(port, partition, last, by_commit[last])
        for sequence, rows in by_commit.items():
            if sequence > span.last:
                return  # staged, and never committed
            yield sequence, rows
            after = sequence


async def _rest(port: Port, partition: Key, sequence: int, rows: list[Row]) -> list[Row]:
    rest, page = list[Row](), rows
    while page:
        part = number(page[-1], "part")
        page = await port.read(JOURNAL, partition, (Slice((sequence,), after=part, limit=PAGE_ROWS),), serial=False)
        rest += page
    return rest
