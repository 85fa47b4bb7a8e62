"""A record: what one update, claim, renewal or release did, as the journal keeps it. A snapshot is made of records too."""

from __future__ import annotations

import msgspec

from .task import Task


class Keyed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An idempotency key, when it was used, and the task that its add made."""

    key: str
    at_ns: int
    task: Task


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Tasks that are gone, and whole tasks that came; all of it or nothing.

    `last_id` is the last id that was given out, or, when ids are reserved ahead of the journal, may have been.
    """

    at_ns: int
    last_id: int
    gone: tuple[int, ...] = ()
    came: tuple[Task, ...] = ()
    keyed: tuple[Keyed, ...] = ()


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Record)


def encode(record: Record) -> bytes:
    """Return a record as bytes."""
    return _encoder.encode(record)


def decode(written: bytes) -> Record:
    """Return the record that bytes mean. Raises ValueError."""
    try:
        return _decoder.decode(written)
    except msgspec.MsgspecError as error:
        raise ValueError(f"no record: {error}") from error
