"""What the server may do with a request: values that a script lists, or a callable of a test returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, Literal

from cassandra import ConsistencyLevel

from . import frames
from .requests import Request

Row = Mapping[str, Any]
WriteType = Literal["SIMPLE", "BATCH", "UNLOGGED_BATCH", "COUNTER", "BATCH_LOG", "CAS", "VIEW", "CDC"]


@dataclass(frozen=True, slots=True)
class Done:
    """It was done, and there is nothing to say: the answer to a plain write."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The lightweight transaction took effect. `rows` are the old rows, which only ScyllaDB shows."""

    rows: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """The lightweight transaction had no effect.

    `rows` are the existing rows that carry a condition, whole or in part: the server cuts them to the columns that the
    result has, sorts them, and fills in the partition key.
    """

    rows: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """The result of a read: a dict a row; a column that a row lacks is null."""

    rows: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class ErrorFrame:
    """An error of the protocol: `details` is what follows the message, encoded."""

    code: int
    message: str
    details: bytes = b""


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer, ever; the connection stays open."""


@dataclass(frozen=True, slots=True)
class CutBefore:
    """The request is read and recorded, but not processed: the connection is closed. `reset` closes it by RST, not FIN."""

    reset: bool = False


@dataclass(frozen=True, slots=True)
class CutAfter:
    """The request is processed, which is `effect`, and then the connection is closed without an answer."""

    effect: Callable[[Request], object] | None = None
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Late:
    """`answer` comes after that many seconds, or once the event is set; a callable is called then, not before."""

    after: float | Event
    answer: Answer | Callable[[Request], Answer]


Answer = Done | Applied | Refused | Rows | ErrorFrame | Silence | CutBefore | CutAfter | Late
Scripted = Answer | Callable[[Request], Answer]


def _level(name: str) -> bytes:
    return frames.short(ConsistencyLevel.name_to_value[name])


def _counts(consistency: str, received: int, required: int) -> bytes:
    return _level(consistency) + frames.integer(received) + frames.integer(required)


def server_error(message: str = "java.lang.NullPointerException") -> ErrorFrame:
    return ErrorFrame(0x0000, message)


def unavailable(consistency: str = "LOCAL_SERIAL", required: int = 2, alive: int = 1) -> ErrorFrame:
    message = f"Cannot achieve consistency level {consistency}"
    return ErrorFrame(0x1000, message, _counts(consistency, required, alive))


def overloaded(message: str = "Request dropped: the node is overloaded") -> ErrorFrame:
    return ErrorFrame(0x1001, message)


def bootstrapping() -> ErrorFrame:
    return ErrorFrame(0x1002, "Cannot read from a bootstrapping node")


def truncate_error() -> ErrorFrame:
    return ErrorFrame(0x1003, "Error during truncate")


def write_timeout(
    write_type: WriteType = "CAS", consistency: str = "LOCAL_SERIAL", received: int = 1, required: int = 2
) -> ErrorFrame:
    details = _counts(consistency, received, required) + frames.string(write_type)
    return ErrorFrame(0x1100, f"Operation timed out - received only {received} responses.", details)


def read_timeout(
    consistency: str = "LOCAL_QUORUM", received: int = 1, required: int = 2, data: bool = False
) -> ErrorFrame:
    details = _counts(consistency, received, required) + frames.byte(data)
    return ErrorFrame(0x1200, f"Operation timed out - received only {received} responses.", details)


def read_failure(
    consistency: str = "LOCAL_QUORUM", received: int = 1, required: int = 2, failures: int = 1, data: bool = False
) -> ErrorFrame:
    details = _counts(consistency, received, required) + frames.integer(failures) + frames.byte(data)
    return ErrorFrame(0x1300, f"Operation failed - received {received} responses and {failures} failures", details)


def write_failure(
    write_type: WriteType = "CAS",
    consistency: str = "LOCAL_SERIAL",
    received: int = 1,
    required: int = 2,
    failures: int = 1,
) -> ErrorFrame:
    details = _counts(consistency, received, required) + frames.integer(failures) + frames.string(write_type)
    return ErrorFrame(0x1500, f"Operation failed - received {received} responses and {failures} failures", details)


def cas_write_unknown(consistency: str = "LOCAL_SERIAL", received: int = 1, required: int = 2) -> ErrorFrame:
    """Version 5's own error: version 4 of a real server says write timeout CAS instead, and clients must survive both."""
    message = f"CAS operation result is unknown - proposal accepted by {received} but not a quorum."
    return ErrorFrame(0x1700, message, _counts(consistency, received, required))


def syntax_error(message: str = "line 1:0 no viable alternative at input") -> ErrorFrame:
    return ErrorFrame(0x2000, message)


def unauthorized(message: str = "User app has no MODIFY permission on <table t> or any of its parents") -> ErrorFrame:
    return ErrorFrame(0x2100, message)


def invalid(message: str = "Invalid query") -> ErrorFrame:
    return ErrorFrame(0x2200, message)


def config_error(message: str = "Unable to find replication strategy class") -> ErrorFrame:
    return ErrorFrame(0x2300, message)


def unprepared(request: Request) -> ErrorFrame:
    """The host does not know this statement (any more). It needs the statement's id: script the function itself."""
    return not_prepared(request.statement.prepared_id or b"")


def not_prepared(prepared_id: bytes) -> ErrorFrame:
    message = f"Prepared query with ID {prepared_id.hex()} not found (either the query was not prepared on this host)"
    return ErrorFrame(0x2500, message, frames.short_bytes(prepared_id))


def bad_credentials(message: str = "Provided username and/or password are incorrect") -> ErrorFrame:
    return ErrorFrame(0x0100, message)


def protocol_error(message: str) -> ErrorFrame:
    return ErrorFrame(0x000A, message)
