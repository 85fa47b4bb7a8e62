"""Records as bytes of rows: checked as a whole, and cut into parts that a row bears."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from zlib import crc32

import msgspec

from ..record import Record, decode, encode

PART_BYTES = 64 << 10  # what one lightweight transaction should carry: each replica writes it three times
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[bytes]).decode


def cut(records: Sequence[Record]) -> list[bytes]:
    """Return records as parts, at least one."""
    packed = _pack([encode(record) for record in records])
    whole = crc32(packed).to_bytes(4, "big") + packed
    return [whole[at : at + PART_BYTES] for at in range(0, len(whole), PART_BYTES)]


def joined(parts: Sequence[bytes]) -> list[Record]:
    """Return the records of all parts. Raises ValueError."""
    whole = b"".join(parts)
    packed = whole[4:]
    if crc32(packed).to_bytes(4, "big") != whole[:4]:
        raise ValueError("another checksum than it says")
    try:
        return [decode(written) for written in _unpack(packed)]
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error


def streamed(records: Sequence[Record]) -> Iterator[bytes]:
    """Return records as parts of one stream, each of them preceded by its length."""
    rest = b""
    for record in records:
        written = encode(record)
        rest += len(written).to_bytes(4, "big") + written
        while len(rest) >= PART_BYTES:
            yield rest[:PART_BYTES]
            rest = rest[PART_BYTES:]
    if rest:
        yield rest


class Unstream:
    """The way back from `streamed`: takes parts, gives the records that are whole so far."""

    def __init__(self) -> None:
        self.rest, self.checksum = b"", 0

    def records(self, part: bytes) -> Iterator[Record]:
        """Take a part in. Raises ValueError."""
        self.checksum = crc32(part, self.checksum)
        rest, at = self.rest + part, 0
        while len(rest) >= at + 4 and len(rest) >= (end := at + 4 + int.from_bytes(rest[at : at + 4], "big")):
            yield decode(rest[at + 4 : end])
            at = end
        self.rest = rest[at:]
