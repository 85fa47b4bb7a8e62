"""CQL native protocol version 4 on the wire: frames, and the primitives that their bodies are made of."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

VERSION: Final = 4
HEADER: Final = struct.Struct(">BBhBI")


class Unset(Enum):
    """A bound value that the client left out: the server keeps what the column holds."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET


class Opcode(IntEnum):
    """The kinds of frames that this server reads or writes."""

    ERROR = 0x00
    STARTUP = 0x01
    READY = 0x02
    AUTHENTICATE = 0x03
    OPTIONS = 0x05
    SUPPORTED = 0x06
    QUERY = 0x07
    RESULT = 0x08
    PREPARE = 0x09
    EXECUTE = 0x0A
    REGISTER = 0x0B
    BATCH = 0x0D
    AUTH_RESPONSE = 0x0F
    AUTH_SUCCESS = 0x10


@dataclass(frozen=True, slots=True)
class Frame:
    """One request as it came."""

    version: int
    stream: int
    opcode: int
    body: bytes


def take_frames(buffer: bytearray) -> Iterator[Frame]:
    """Cut every complete frame off the front of `buffer`."""
    while len(buffer) >= HEADER.size:
        version, _flags, stream, opcode, length = HEADER.unpack_from(buffer)
        end = HEADER.size + length
        if len(buffer) < end:
            return
        body = bytes(buffer[HEADER.size : end])
        del buffer[:end]
        yield Frame(version, stream, opcode, body)


def response(stream: int, opcode: Opcode, body: bytes) -> bytes:
    """Make a frame from the server to the client."""
    return HEADER.pack(0x80 | VERSION, 0, stream, opcode, len(body)) + body


class Reader:
    """Reads the primitives of a body one after the other."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def _take(self, count: int) -> bytes:
        piece = self._body[self._at : self._at + count]
        if len(piece) < count:
            raise ValueError(f"the body ends {count - len(piece)} bytes early")
        self._at += count
        return piece

    def byte(self) -> int:
        return self._take(1)[0]

    def short(self) -> int:
        return int.from_bytes(self._take(2), "big")

    def integer(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def long(self) -> int:
        return int.from_bytes(self._take(8), "big", signed=True)

    def string(self) -> str:
        return self._take(self.short()).decode()

    def long_string(self) -> str:
        return self._take(self.integer()).decode()

    def short_bytes(self) -> bytes:
        return self._take(self.short())

    def value(self) -> bytes | Unset | None:
        length = self.integer()
        if length == -2:
            return UNSET
        return None if length < 0 else self._take(length)

    def string_map(self) -> dict[str, str]:
        return {self.string(): self.string() for _ in range(self.short())}


def byte(number: int) -> bytes:
    return number.to_bytes(1, "big")


def short(number: int) -> bytes:
    return number.to_bytes(2, "big")


def integer(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


def string(text: str) -> bytes:
    return short_bytes(text.encode())


def short_bytes(data: bytes) -> bytes:
    return short(len(data)) + data


def value(data: bytes | None) -> bytes:
    return integer(-1) if data is None else integer(len(data)) + data


def string_multimap(entries: Mapping[str, Sequence[str]]) -> bytes:
    lists = (string(key) + short(len(texts)) + b"".join(map(string, texts)) for key, texts in entries.items())
    return short(len(entries)) + b"".join(lists)
