"""Making a damaged journal one that opens: everything that can still be read is kept, and what is lost is said."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from shutil import copy2
from uuid import uuid4

import msgspec

from ..record import Record, decode
from ..state import State
from .files import LOCK, DirectoryLock, create, remove, sorted_errors, sync_directory
from .frame import Frame, Kind, framed
from .journal import snapshot_frames
from .reading import LOG, SNAPSHOT, Head, Piece, number_of, read
from .recovery import ASIDE, look

LOST_IDS = 1 << 20  # so many ids may have been given out by records that are lost


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did: the files' copies are in `aside`; `dropped` says what could not be read, `tasks` what is there now."""

    directory: str
    aside: str
    tasks: int
    damage: tuple[str, ...]
    dropped: tuple[str, ...]


def repair(directory: str | Path) -> Repaired | None:
    """Copy a damaged journal's files aside, and leave one that opens. Returns None where nothing is damaged.

    Records behind lost ones are kept as far as they go: what a lost record would have deleted or changed is there again,
    what it added is not. Raises JournalLocked, JournalFailed.
    """
    where = Path(directory)
    with sorted_errors(f"{where} cannot be repaired"):
        lock = DirectoryLock(where)
        try:
            found = look(where, _nowhere, born=lock.born)
            if not found.damage:
                return None
            return _repaired(where, lock, found.damage)
        finally:
            lock.release()


def _repaired(where: Path, lock: DirectoryLock, damage: list[str]) -> Repaired:
    files = sorted(path for path in where.iterdir() if path.is_file() and path.name != LOCK)
    aside = _copied_aside(where, files)
    state, dropped, last = State(), list[str](), 0
    for piece in _pieces(files):
        last = max(last, _salvage(state, piece, last, dropped))
    state.last_id += LOST_IDS
    number = 1 + max((number_of(path) for path in files if path.suffix in (LOG, SNAPSHOT)), default=0)
    _write(where, Head(uuid4().hex, number, last, 0), state)
    remove(files, where)
    lock.claim()
    return Repaired(str(where), str(aside), len(state.tasks), tuple(damage), tuple(dropped))


def _copied_aside(where: Path, files: list[Path]) -> Path:
    number = 1 + sum(path.name.startswith(ASIDE) for path in where.iterdir())
    aside = where / f"{ASIDE}{number}"
    aside.mkdir()
    for path in files:
        with open(copy2(path, aside), "rb") as copy:
            os.fsync(copy.fileno())
    sync_directory(aside)
    sync_directory(where)
    return aside


def _pieces(files: Iterable[Path]) -> list[Piece]:
    """Read what there is: the newest snapshot first, then the segments, each only up to where the next one goes on."""
    snapshots = sorted((path for path in files if path.suffix == SNAPSHOT), key=number_of)
    logs = sorted((path for path in files if path.suffix == LOG), key=number_of)
    pieces = [read(path) for path in logs]
    for index, following in enumerate(pieces[1:]):
        until = following.head.sequence if following.head is not None else None
        if until is not None and pieces[index].head is not None and until < pieces[index].sequence:
            pieces[index] = read(logs[index], until)
    return [*map(read, snapshots[-1:]), *pieces]


def _salvage(state: State, piece: Piece, last: int, dropped: list[str]) -> int:
    """Apply what can be read of a file. Return the last sequence that it had."""
    is_snapshot, frames = piece.path.suffix == SNAPSHOT, [*piece.frames, *piece.behind]
    if piece.broken_at is not None or (is_snapshot and piece.end is None):
        at = piece.size if piece.broken_at is None else piece.broken_at
        dropped.append(
            f"{piece.name}: not readable from byte {at} of {piece.size} on; {len(piece.behind)} frames behind it"
        )
    for frame in frames:
        if frame.kind == Kind.RECORD and (is_snapshot or frame.sequence > last):
            if not is_snapshot and frame.sequence > last + 1 and last:
                dropped.append(f"records {last + 1} to {frame.sequence - 1}: lost")
            last = last if is_snapshot else frame.sequence
            _apply(state, piece, frame, dropped)
    if is_snapshot and piece.head is not None:
        return piece.head.sequence
    return last


def _apply(state: State, piece: Piece, frame: Frame, dropped: list[str]) -> None:
    try:
        state.salvage(decode(frame.payload))
    except ValueError as error:
        dropped.append(f"{piece.name}: record {frame.sequence} means nothing ({error})")


def _write(where: Path, head: Head, state: State) -> None:
    first, _ = framed(Kind.HEAD, head.sequence, head.sequence, msgspec.msgpack.encode(head))
    os.close(create(where / f"{head.number:010d}{LOG}", [first]))
    os.close(create(where / f"{head.number:010d}{SNAPSHOT}", snapshot_frames(head, state.parts())))


def _nowhere(record: Record) -> None:
    """Read without keeping."""
