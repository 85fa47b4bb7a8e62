"""The journal itself: appending, with one sync for all that leaves together; rotating; and snapshots."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import msgspec

from ...database import ForkedError
from ..errors import JournalDamaged, JournalFailed, JournalLocked
from ..journal import Take, Unsettled
from ..port import Port
from ..record import Record, encode
from .files import DirectoryLock, create, failed, remove, sorted_errors, write_all
from .frame import Kind, framed
from .reading import LOG, SNAPSHOT, End, Head, checksum, number_of
from .recovery import look

SEGMENT_BYTES = 64 << 20


class DiskJournal:
    """A journal in a directory, which is made if need be. One process has it open at a time."""

    keeps = True

    def __init__(self, directory: str | Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.directory = Path(directory)
        self._segment_bytes = segment_bytes
        self._lock: DirectoryLock | None = None
        self._file, self._size = -1, 0
        self._number = self._sequence = self._crc = 0  # of the segment, and of the last durable record
        self._open_end = False  # something may have been written that nobody was told of

    def __repr__(self) -> str:
        return f"<DiskJournal {self.directory}>"

    async def open(self, port: Port, take: Take) -> Sequence[str]:
        """See Journal. Raises JournalLocked, JournalDamaged, JournalFailed."""
        if self._lock is not None:
            raise JournalLocked(str(self.directory), "this process")
        self._port = port
        return await port.run(lambda: self._opened(take))

    async def append(self, records: Sequence[Record], deadline: float) -> None:
        """See Journal."""
        payloads = [encode(record) for record in records]
        await self._port.run(lambda: self._append(payloads))

    async def settle(self, deadline: float) -> bool:
        """See Journal. A new segment that goes on before it makes certain that it is not in."""
        with sorted_errors(f"{self.directory} does not take a new segment"):
            await self._port.run(self._give_up_the_end)
        return False

    async def cut(self) -> int:
        """See Journal."""
        with sorted_errors(f"{self.directory} does not take a new segment"):
            await self._port.run(self._rotate)
        return self._number

    async def snapshot(self, cut: int, records: Sequence[Record]) -> None:
        """See Journal."""
        head = Head(self._journal, cut, self._cut_sequence, self._cut_crc)
        await self._port.aside(lambda: self._snapshot(head, records))

    async def close(self) -> None:
        """See Journal."""
        if self._lock is not None:
            await self._port.run(self._closed)

    # --- opening and closing ------------------------------------------------------------------------------------------

    def _opened(self, take: Take) -> Sequence[str]:
        with sorted_errors(f"{self.directory} cannot be opened"):
            self.directory.mkdir(parents=True, exist_ok=True)
            lock = DirectoryLock(self.directory)
            try:
                told = self._taken_over(lock, take)
            except BaseException:
                lock.release()
                raise
        self._lock, self._pid = lock, os.getpid()
        return told

    def _taken_over(self, lock: DirectoryLock, take: Take) -> Sequence[str]:
        found = look(self.directory, take, born=lock.born)
        if found.damage:
            raise JournalDamaged(str(self.directory), found.damage)
        self._journal = found.journal or uuid4().hex
        self._number, self._sequence, self._crc = found.number, found.sequence, found.crc
        self._begin_segment()
        lock.claim()
        remove(found.spent, self.directory)
        return found.told

    def _closed(self) -> None:
        lock, self._lock = self._lock, None
        if lock is None:
            return
        if os.getpid() == self._pid:
            with suppress(OSError):  # a missing end only leaves the next one to look more closely
                if not self._open_end:
                    self._end_segment(0)
        os.close(self._file)
        lock.release()

    # --- appending --------------------------------------------------------------------------------------------------------

    def _append(self, payloads: list[bytes]) -> None:
        self._check_usable()
        if self._size >= self._segment_bytes:
            with sorted_errors(f"{self.directory} does not take a new segment"):
                self._rotate()
        frames, sequence, crc = [], self._sequence, self._crc
        for payload in payloads:
            sequence += 1
            frame, crc = framed(Kind.RECORD, sequence, self._sequence, payload)
            frames.append(frame)
        data = b"".join(frames)
        self._open_end = True
        self._write(data)
        self._sync()
        self._open_end = False
        self._size, self._sequence, self._crc = self._size + len(data), sequence, crc

    def _write(self, data: bytes) -> None:
        """Write at the end. Where there is no room for all of it, there is none of it."""
        try:
            write_all(self._file, data)
        except OSError as error:
            with _unsettled():
                os.ftruncate(self._file, self._size)
                os.lseek(self._file, self._size, os.SEEK_SET)
                os.fdatasync(self._file)  # a crash must not bring back what is now said to have failed
            self._open_end = False
            raise failed(f"{self.directory} does not take the record", error) from error

    def _sync(self) -> None:
        """Make what was written durable. Where that failed once the file is not asked again: its yes means nothing."""
        try:
            os.fdatasync(self._file)
        except OSError as error:
            with _unsettled():
                self._give_up_the_end()
            raise failed(f"{self.directory} does not keep the record", error) from error

    def _check_usable(self) -> None:
        if self._lock is None:
            raise JournalFailed(f"{self.directory} is not open. Nothing was changed.")
        if os.getpid() != self._pid:
            raise ForkedError

    # --- segments -----------------------------------------------------------------------------------------------------------

    def _begin_segment(self) -> None:
        """Begin a segment that goes on behind what is durable now."""
        number = self._number + 1
        head = Head(self._journal, number, self._sequence, self._crc)
        frame, _ = framed(Kind.HEAD, self._sequence, self._sequence, msgspec.msgpack.encode(head))
        file = create(self._path(number, LOG), [frame])
        if self._file >= 0:
            os.close(self._file)
        self._file, self._number, self._size, self._open_end = file, number, len(frame), False

    def _end_segment(self, following: int, file: int | None = None) -> None:
        """Say that nothing comes behind here: then nobody takes damage for a torn end, or misses what follows."""
        end = msgspec.msgpack.encode(End(following))
        frame, _ = framed(Kind.END, self._sequence, self._sequence, end)
        file = self._file if file is None else file
        write_all(file, frame)
        os.fdatasync(file)

    def _rotate(self) -> None:
        if self._open_end:
            self._give_up_the_end()
        former = os.dup(self._file)
        try:
            self._begin_segment()  # first, so that an end never promises what is not there
            with suppress(OSError):
                self._end_segment(self._number, former)
        finally:
            os.close(former)
        self._cut_sequence, self._cut_crc = self._sequence, self._crc

    def _give_up_the_end(self) -> None:
        """Go on in a new segment, which says that all behind the last durable record of this one does not count."""
        self._begin_segment()

    def _path(self, number: int, suffix: str) -> Path:
        return self.directory / f"{number:010d}{suffix}"

    # --- snapshots ------------------------------------------------------------------------------------------------------------

    def _snapshot(self, head: Head, records: Sequence[Record]) -> None:
        path = self._path(head.number, SNAPSHOT)
        with sorted_errors(f"{path} cannot be written"):
            os.close(create(path, snapshot_frames(head, records)))
            remove(self._covered(head.number), self.directory)

    def _covered(self, number: int) -> Iterable[Path]:
        """Return the files that a snapshot makes superfluous."""
        paths = [path for suffix in (LOG, SNAPSHOT) for path in self.directory.glob(f"*{suffix}")]
        return [path for path in paths if path.name[:10].isdecimal() and number_of(path) < number]


@contextmanager
def _unsettled() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unsettled from error


def snapshot_frames(head: Head, records: Iterable[Record]) -> Iterator[bytes]:
    """Return the frames of a snapshot file."""
    yield framed(Kind.HEAD, head.sequence, head.sequence, msgspec.msgpack.encode(head))[0]
    crcs = list[int]()
    for sequence, record in enumerate(records, start=head.sequence + 1):
        frame, crc = framed(Kind.RECORD, sequence, sequence, encode(record))
        crcs.append(crc)
        yield frame
    end = End(0, len(crcs), checksum(crcs))
    yield framed(Kind.END, head.sequence + len(crcs), 0, msgspec.msgpack.encode(end))[0]
