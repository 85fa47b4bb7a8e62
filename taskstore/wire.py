"""The JSON that the HTTP service and its client exchange: what each asks and answers, and how it is spelled.

A task: `{"id": 41, "group": "map", "data": "in.txt:0:4096", "timespec": 1388552400000, "ownerid": 7}`, and beside these ours:
`available_at_ns` (`timespec` is the same time in whole milliseconds), `claims`, `attempt`, `error`; data that is not UTF-8 is
in `data_base64` instead. An owner that is spelled as a 64-bit number is a number here, any other one a string.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite, nextafter
from typing import Any, Self, TypeVar

import msgspec

from ..database import Unavailable
from ..errors import SlotkeeperError
from .errors import Fenced, Interrupted, JournalFailed, JournalFull, OutcomeUnknown, StoreBusy, StoreClosed, UpdateError
from .task import Add, Change, Task

T = TypeVar("T")
MS_NS, SECOND_NS = 1_000_000, 1_000_000_000
FOREVER_NS = 2**70  # longer than any time can be, and still a float's number of seconds
ClientId = int | str

# The type of a problem document ends in one of these names. The first that fits an error is its own; who is told of one
# raises the same error again.
PROBLEMS: Mapping[str, tuple[type[SlotkeeperError], int]] = {
    "store-busy": (StoreBusy, 503),
    "busy": (StoreBusy, 503),  # of the service itself
    "outcome-unknown": (OutcomeUnknown, 504),
    "fenced": (Fenced, 503),
    "journal-full": (JournalFull, 503),
    "journal-failed": (JournalFailed, 503),
    "store-closed": (StoreClosed, 503),
    "interrupted": (Interrupted, 503),
    "unavailable": (Unavailable, 503),
}


class TaskDocument(msgspec.Struct, kw_only=True, gc=False):
    """A task. It has `data` or `data_base64`."""

    id: int
    group: str
    data: str | msgspec.UnsetType = msgspec.UNSET
    data_base64: bytes | msgspec.UnsetType = msgspec.UNSET
    timespec: int
    available_at_ns: int
    ownerid: ClientId
    claims: int = 0
    attempt: int = 0
    error: str = ""

    @classmethod
    def of(cls, task: Task) -> Self:
        """Spell a task."""
        text, raw = spelled_data(task.data)
        return cls(
            id=task.id,
            group=task.group,
            data=msgspec.UNSET if text is None else text,
            data_base64=msgspec.UNSET if raw is None else raw,
            timespec=task.available_at_ns // MS_NS,
            available_at_ns=task.available_at_ns,
            ownerid=client_of(task.owner),
            claims=task.claims,
            attempt=task.attempt,
            error=task.error,
        )

    def task(self) -> Task:
        """Return the task."""
        data = self.data.encode() if isinstance(self.data, str) else self.data_base64 or b""
        owner = owner_of(self.ownerid)
        return Task(self.id, self.group, owner, self.available_at_ns, data, self.claims, self.attempt, self.error)


class Broken(msgspec.Struct, kw_only=True):
    """Why a change was refused: every broken precondition, by kind. See UpdateError."""

    changes: list[int] = []
    deletes: list[int] = []
    depends: list[int] = []
    owned: list[int] = []
    bugs: list[str] = []

    @classmethod
    def of(cls, error: UpdateError) -> Self:
        """Spell an error."""
        return cls(**{kind: list(getattr(error, kind)) for kind in cls.__struct_fields__})

    def as_error(self) -> UpdateError:
        """Return the error."""
        return UpdateError(**msgspec.structs.asdict(self))


class Answer(msgspec.Struct, kw_only=True):
    """What became of a change: its `tasks`, or the `error`; neither where there was nothing to claim."""

    tasks: list[TaskDocument] | None = None
    error: Broken | None = None

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> Self:
        """Spell new tasks."""
        return cls(tasks=[TaskDocument.of(task) for task in tasks])


# --- what is asked --------------------------------------------------------------------------------------------------------


class _Timed(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """When a task becomes available: one of these, or now. A negative `timespec` counts from now."""

    timespec: int | None = None
    available_at_ns: int | None = None
    after_ns: int | None = None

    def time(self, bugs: list[str]) -> tuple[int, float]:
        """Return available_at_ns and after_s, as Add and Change have them."""
        at_ms, at_ns, after_ns = self.timespec, self.available_at_ns or 0, self.after_ns or 0
        if (after_ns and (at_ms or at_ns)) or (at_ms and at_ns and at_ns // MS_NS != at_ms):
            bugs.append(f"timespec {at_ms}, available_at_ns {at_ns} and after_ns {after_ns} are different times")
        if at_ns or after_ns or not at_ms:
            return at_ns, seconds(after_ns)
        return (at_ms * MS_NS, 0.0) if at_ms > 0 else (0, seconds(-at_ms * MS_NS))


class AddRequest(_Timed, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A task to add. What else a task has may be given, and is ignored."""

    group: str = ""
    data: str | None = None
    data_base64: bytes | None = None
    key: str | None = None
    id: Any = None
    ownerid: Any = None
    claims: Any = None
    attempt: Any = None
    error: Any = None

    @classmethod
    def of(cls, add: Add) -> Self:
        """Spell what a caller adds."""
        text, raw = spelled_data(add.data) if add.data else (None, None)
        at, after = _spelled_time(add)
        return cls(group=add.group, data=text, data_base64=raw, available_at_ns=at, after_ns=after, key=add.key)

    def add(self, bugs: list[str]) -> Add:
        """Return what is to be added; tell what is wrong with it."""
        data = _data(self.data, self.data_base64, bugs) or b""
        return Add(self.group, data, *self.time(bugs), self.key)


class ChangeRequest(_Timed, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A change of the task `id`. Its group stays, whatever is given, unless there is a `move_to`.

    Data that is not given becomes empty; with `keep` it stays.
    """

    id: int
    data: str | None = None
    data_base64: bytes | None = None
    keep: bool = False
    move_to: str | None = None
    attempt: int | None = None
    error: str | None = None
    group: Any = None
    ownerid: Any = None
    claims: Any = None

    @classmethod
    def of(cls, change: Change) -> Self:
        """Spell what a caller changes."""
        text, raw = spelled_data(change.data) if change.data is not None else (None, None)
        at, after = _spelled_time(change)
        return cls(
            id=change.id,
            data=text,
            data_base64=raw,
            available_at_ns=at,
            after_ns=after,
            keep=True,
            move_to=change.group,
            attempt=change.attempt,
            error=change.error,
        )

    def change(self, bugs: list[str]) -> Change:
        """Return what is to be changed; tell what is wrong with it."""
        data = _data(self.data, self.data_base64, bugs)
        kept = data if data is not None or self.keep else b""
        return Change(self.id, kept, *self.time(bugs), self.move_to, self.attempt, self.error)


class UpdateRequest(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Add, change and delete tasks, all or nothing: POST /update."""

    clientid: ClientId
    adds: Sequence[AddRequest] | None = None
    updates: Sequence[ChangeRequest] | None = None
    deletes: Sequence[int] | None = None
    depends: Sequence[int] | None = None

    @classmethod
    def of(
        cls, owner: str, adds: Iterable[Add], changes: Iterable[Change], deletes: Iterable[int], depends: Iterable[int]
    ) -> Self:
        """Spell what a caller asks for."""
        return cls(
            clientid=client_of(owner),
            adds=[AddRequest.of(add) for add in adds],
            updates=[ChangeRequest.of(change) for change in changes],
            deletes=list(deletes),
            depends=list(depends),
        )

    def values(self) -> tuple[list[Add], list[Change]]:
        """Return what is to be added and changed. Raises UpdateError with all that cannot be read."""
        bugs: list[str] = []
        adds = [add.add(bugs) for add in self.adds or ()]
        changes = [change.change(bugs) for change in self.updates or ()]
        if bugs:
            raise UpdateError(bugs=bugs)
        return adds, changes


class ClaimRequest(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Own one available task of a group, or of `groups`, for a while: POST /claim. Times are milliseconds, or `_ns`."""

    clientid: ClientId
    group: str | None = None
    groups: Sequence[str] | None = None
    duration: int | None = None
    duration_ns: int | None = None
    depends: Sequence[int] | None = None
    wait: int = 0

    def all_groups(self) -> list[str]:
        """Return the groups, however they are given."""
        return [*([self.group] if self.group is not None else []), *(self.groups or ())]

    def for_s(self) -> float:
        """Return for how long. Raises UpdateError."""
        return _duration_s(self.duration, self.duration_ns)

    def wait_s(self) -> float:
        """Return how long to stand in line."""
        return seconds(self.wait * MS_NS)


class RenewRequest(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Own a task of one's own for longer: POST /renew."""

    clientid: ClientId
    id: int
    duration: int | None = None
    duration_ns: int | None = None

    def for_s(self) -> float:
        """Return for how long. Raises UpdateError."""
        return _duration_s(self.duration, self.duration_ns)


class ReleaseRequest(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Give a task of one's own back, for others in `after` milliseconds; with what went wrong, if anything: POST /release."""

    clientid: ClientId
    id: int
    after: int | None = None
    after_ns: int | None = None
    error: str | None = None

    def after_s(self) -> float:
        """Return in how many seconds."""
        return seconds(self.after_ns if self.after_ns is not None else (self.after or 0) * MS_NS)


# --- spelling -------------------------------------------------------------------------------------------------------------


def decoded(body: bytes, kind: type[T]) -> T:
    """Read a request. Raises UpdateError with what cannot be read, and where."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UpdateError(bugs=[f"the request cannot be read: {error}"]) from error


def client_of(owner: str) -> ClientId:
    """Return an owner as a client id: a number where it is spelled as one of 64 bits, and in one way only."""
    if len(owner) > 20 or not owner.isascii() or not owner.removeprefix("-").isdigit():
        return owner
    number = int(owner)
    return number if str(number) == owner and -(2**63) <= number < 2**64 else owner


def owner_of(clientid: ClientId) -> str:
    """Return a client id as an owner. Raises UpdateError."""
    if isinstance(clientid, int) and not -(2**63) <= clientid < 2**64:
        raise UpdateError(bugs=["a clientid that is a number is one of 64 bits"])
    return str(clientid)


def spelled_data(data: bytes) -> tuple[str | None, bytes | None]:
    """Return data as text, or as bytes where it is none."""
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return None, data


def nanoseconds(duration_s: float) -> int:
    """Return seconds as nanoseconds: none for less than none, and a bound for an endless time."""
    return int(min(max(0.0, duration_s) * SECOND_NS, FOREVER_NS))


def seconds(duration_ns: int) -> float:
    """Return the seconds of which a store makes these nanoseconds again."""
    duration_ns = min(max(0, duration_ns), FOREVER_NS)
    duration_s = duration_ns / SECOND_NS
    return duration_s if int(duration_s * SECOND_NS) >= duration_ns else nextafter(duration_s, inf)


def _data(text: str | None, raw: bytes | None, bugs: list[str]) -> bytes | None:
    if text is not None and raw is not None:
        bugs.append("data and data_base64 are both given")
    return text.encode() if text is not None else raw


def _spelled_time(asked: Add | Change) -> tuple[int | None, int | None]:
    after_ns = nanoseconds(asked.after_s) if isfinite(asked.after_s) else FOREVER_NS
    return asked.available_at_ns or None, after_ns or None


def _duration_s(duration_ms: int | None, duration_ns: int | None) -> float:
    if (duration_ms is None) == (duration_ns is None):
        raise UpdateError(bugs=["either duration (milliseconds) or duration_ns says for how long"])
    duration = duration_ns if duration_ns is not None else (duration_ms or 0) * MS_NS
    if duration < 0:
        raise UpdateError(bugs=["a duration is not negative"])
    return seconds(duration)
