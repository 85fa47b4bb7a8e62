"""What a client asks: each call of a store as one request, and how its answer is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from ...web.insisting import Request
from .. import wire
from ..errors import UpdateError
from ..operations import Claim, Release, Renew, Update
from ..rules import bugs_of
from ..stats import Stats
from ..task import Task

T = TypeVar("T")
KEY = "Idempotency-Key"
MS_NS = 1_000_000
UNSPEAKABLE = (
    TypeError,
    AttributeError,
    ValueError,
    OverflowError,
)  # what spelling raises; UnicodeError is a ValueError


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """A request, and `read` for the body of the answer that says yes. `changes` tells whether it leaves more than an answer."""

    request: Request
    read: Callable[[bytes], T]
    changes: bool = False


# --- changes --------------------------------------------------------------------------------------------------------------


def update(op: Update, key: str) -> Question[list[Task]]:
    """Ask for an update. Raises UpdateError where no JSON can say it."""
    try:
        body = _encoded(wire.UpdateRequest.of(op.owner, op.adds, op.changes, op.deletes, op.depends))
    except UNSPEAKABLE as error:
        raise UpdateError(bugs=bugs_of(op) or [f"the update cannot be spelled: {error}"]) from error
    return _change("/update", body, key, _tasks)


def claim(op: Claim, wait_ns: int, key: str) -> Question[Task | None]:
    """Ask for a task, and stand in line at the service for a while."""
    body = _spelled(
        wire.ClaimRequest,
        clientid=op.owner,
        groups=list(op.groups),
        duration_ns=op.for_ns,
        depends=list(op.depends),
        wait=-(-wait_ns // MS_NS),
    )
    return _change("/claim", body, key, _task_or_none, takes_s=wait_ns / 1e9)


def renew(op: Renew, key: str) -> Question[Task]:
    """Ask for more time."""
    body = _spelled(wire.RenewRequest, clientid=op.owner, id=op.task_id, duration_ns=op.for_ns)
    return _change("/renew", body, key, _one_task)


def release(op: Release, key: str) -> Question[Task]:
    """Give a task back."""
    body = _spelled(wire.ReleaseRequest, clientid=op.owner, id=op.task_id, after_ns=op.after_ns, error=op.error)
    return _change("/release", body, key, _one_task)


def snapshot() -> Question[None]:
    """Ask for a snapshot."""
    return Question(Request("POST", "/snapshot"), _nothing)


def flush() -> Question[None]:
    """Ask for all that was answered to be durable."""
    return Question(Request("POST", "/flush"), _nothing)


# --- looks ----------------------------------------------------------------------------------------------------------------


def tasks(ids: Sequence[int]) -> Question[list[Task | None]]:
    """Look at some tasks."""
    return _look(f"/tasks/{','.join(map(str, ids))}", _tasks_or_nones)


def every_task() -> Question[list[Task]]:
    """Look at all tasks."""
    return _look("/tasks", _lines)


def group(name: str, limit: int | None, *, owned: bool) -> Question[list[Task]]:
    """Look at a group's tasks."""
    path = f"/group/{quote(name, safe='').replace('.', '%2E')}"  # as dots alone, a name would mean the path above
    wanted = [("limit", str(limit))] if limit is not None and limit > 0 else []
    return _look(path, _listing, *wanted, ("owned", "true" if owned else "false"))


def groups() -> Question[list[str]]:
    """Look at the names of the groups."""
    return _look("/groups", lambda body: msgspec.json.decode(body, type=list[str]))


def stats() -> Question[Stats]:
    """Look at how the store is doing."""
    return _look("/stats", lambda body: msgspec.json.decode(body, type=Stats))


# --- spelling and reading -------------------------------------------------------------------------------------------------


def _change(path: str, body: bytes, key: str, read: Callable[[bytes], T], *, takes_s: float = 0.0) -> Question[T]:
    return Question(Request("POST", path, body, headers={KEY: key}, takes_s=takes_s), read, changes=True)


def _look(path: str, read: Callable[[bytes], T], *params: tuple[str, str]) -> Question[T]:
    return Question(Request("GET", path, params=params), read)


def _spelled(kind: Callable[..., msgspec.Struct], *, clientid: str, **asked: Any) -> bytes:
    try:
        return _encoded(kind(clientid=wire.client_of(clientid), **asked))
    except UNSPEAKABLE as error:
        bugs = bugs_of(Update(clientid, deletes=(0,))) or [f"the request cannot be spelled: {error}"]
        raise UpdateError(bugs=bugs) from error


def _encoded(asked: msgspec.Struct) -> bytes:
    return msgspec.json.encode(asked)


def _tasks(body: bytes) -> list[Task]:
    return [each.task() for each in msgspec.json.decode(body, type=wire.Answer).tasks or ()]


def _task_or_none(body: bytes) -> Task | None:
    return next(iter(_tasks(body)), None)


def _one_task(body: bytes) -> Task:
    (task,) = _tasks(body)
    return task


def _tasks_or_nones(body: bytes) -> list[Task | None]:
    found: Iterable[wire.TaskDocument | None] = msgspec.json.decode(body, type=list[wire.TaskDocument | None])
    return [each.task() if each is not None else None for each in found]


def _listing(body: bytes) -> list[Task]:
    return [each.task() for each in msgspec.json.decode(body, type=list[wire.TaskDocument])]


def _lines(body: bytes) -> list[Task]:
    return [each.task() for each in msgspec.json.Decoder(wire.TaskDocument).decode_lines(body)]


def _nothing(body: bytes) -> None:
    return None
