"""Reading one file of a journal: as far as it is whole, and what lies behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import msgspec

from .frame import Frame, Kind, frame_at, frames_behind

LOG, SNAPSHOT = ".log", ".snapshot"


class Head(msgspec.Struct, frozen=True, array_like=True):
    """What a file says of itself: its number, and where all before it ended, by sequence and checksum."""

    journal: str
    number: int
    sequence: int
    crc: int


class End(msgspec.Struct, frozen=True, array_like=True):
    """The last frame of a file that was ended: the segment that follows, 0 for none; of a snapshot, its size and checksum."""

    following: int = 0
    count: int = 0
    crc: int = 0


@dataclass(slots=True)
class Piece:
    """A file as it was read: its records up to `until`, and where it stops making sense, if it does.

    `sequence` and `crc` are of the last record; `lost_to` is up to where records had been durable that are not among them.
    """

    path: Path
    size: int = 0
    head: Head | None = None
    frames: list[Frame] = field(default_factory=list)
    behind: list[Frame] = field(default_factory=list)
    end: End | None = None
    broken_at: int | None = None
    sequence: int = 0
    crc: int = 0
    lost_to: int = 0

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name


def number_of(path: Path) -> int:
    """Return the number that a file's name has. Raises ValueError."""
    return int(path.name.split(".")[0])


def read(path: Path, until: int | None = None) -> Piece:
    """Read a file. With `until`, what lies behind that sequence was given up by the segment that follows."""
    data = path.read_bytes()
    piece = Piece(path, len(data))
    first = frame_at(data, 0)
    if first is None or first.kind != Kind.HEAD or (head := _head(first)) is None:
        piece.broken_at = 0
    else:
        piece.head, piece.sequence, piece.crc = head, head.sequence, head.crc
        _read_records(piece, data, first.end, until)
    if piece.broken_at is not None:
        piece.behind = list(frames_behind(data, piece.broken_at))
        piece.lost_to = max((frame.durable for frame in piece.behind), default=0)
    return piece


def _read_records(piece: Piece, data: bytes, at: int, until: int | None) -> None:
    frames, sequence = piece.frames, piece.sequence
    while at < len(data) and sequence != until:
        frame = frame_at(data, at)
        if frame is not None and frame.kind == Kind.RECORD and frame.sequence == sequence + 1:
            frames.append(frame)
            sequence, at = frame.sequence, frame.end
        elif frame is not None and frame.kind == Kind.END and frame.end == len(data):
            piece.end = _end(frame)
            at = frame.end
        else:
            piece.broken_at = at
            break
    if frames:
        piece.sequence, piece.crc = sequence, frames[-1].crc


def checksum(crcs: list[int]) -> int:
    """Return one checksum for many."""
    return crc32(b"".join(crc.to_bytes(4, "little") for crc in crcs))


def _head(frame: Frame) -> Head | None:
    try:
        return msgspec.msgpack.decode(frame.payload, type=Head)
    except msgspec.MsgspecError:
        return None


def _end(frame: Frame) -> End | None:
    try:
        return msgspec.msgpack.decode(frame.payload, type=End)
    except msgspec.MsgspecError:
        return None
