"""A frame: a few bytes in a file, with all that is needed to know that they are whole, and where they belong."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from zlib import crc32

import msgspec

MARK = b"\xb5SKf"  # tells where a frame may begin behind bytes that cannot be read
HEAD = Struct("<4sIBIQQ")  # mark, checksum of all that follows, kind, length, sequence, durable
CHECKED = Struct("<BIQQ")
CHECKED_FROM = HEAD.size - CHECKED.size
OVERHEAD = HEAD.size
MOST_LENGTH = 1 << 30


class Kind(IntEnum):
    """What a frame holds."""

    HEAD = 1
    RECORD = 2
    END = 3


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A frame as it was read. Up to `durable` the journal had been synced when it was written; `crc` covers all of it."""

    kind: int
    sequence: int
    durable: int
    payload: bytes
    crc: int
    end: int


def framed(kind: Kind, sequence: int, durable: int, payload: bytes) -> tuple[bytes, int]:
    """Return a frame's bytes, and its checksum."""
    if len(payload) > MOST_LENGTH:
        raise ValueError(f"a record of {len(payload)} bytes: at most {MOST_LENGTH}")
    checked = CHECKED.pack(kind, len(payload), sequence, durable)
    crc = crc32(payload, crc32(checked))
    return HEAD.pack(MARK, crc, kind, len(payload), sequence, durable) + payload, crc


def frame_at(data: bytes, at: int) -> Frame | None:
    """Return the frame that begins at a place; None when there is no whole one."""
    begin = at + OVERHEAD
    if begin > len(data):
        return None
    mark, crc, kind, length, sequence, durable = HEAD.unpack_from(data, at)
    end = begin + length
    if mark != MARK or end > len(data) or crc32(data[at + CHECKED_FROM : end]) != crc:
        return None
    return Frame(kind, sequence, durable, data[begin:end], crc, end)


def frames_behind(data: bytes, at: int) -> Iterator[Frame]:
    """Return every whole frame that begins behind a place, however much between them cannot be read."""
    while (at := data.find(MARK, at)) >= 0:
        frame = frame_at(data, at)
        if frame is not None:
            yield frame
        at = frame.end if frame is not None else at + 1
