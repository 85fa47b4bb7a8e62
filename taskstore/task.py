"""The values: a task, and what a caller asks to add or to change. All are frozen, and equal when their contents are."""

from __future__ import annotations

from typing import Any, Self

import msgspec


class Task(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A piece of work, as it is under this id: every change makes a new task with a new id, and no id ever comes back.

    Until `available_at_ns` (since the epoch) only its owner may change or delete it; from then on anybody may, and may
    claim it. The owner stays named after that. `claims` counts how often it was claimed, `attempt` how many of those claims
    did not give it back unharmed, and `error` says how the last one failed.
    """

    id: int
    group: str
    owner: str
    available_at_ns: int
    data: bytes = b""
    claims: int = 0
    attempt: int = 0
    error: str = ""

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """Read a task from what `str` made of it. Raises ValueError."""
        try:
            named = msgspec.json.decode(text, type=dict[str, Any])
            return msgspec.convert([named[field] for field in cls.__struct_fields__], cls)
        except (KeyError, msgspec.MsgspecError, UnicodeError) as error:
            raise ValueError(f"no task: {error}") from error

    def __str__(self) -> str:
        """Spell the task as one line of JSON, its data in base64."""
        return msgspec.json.encode(msgspec.structs.asdict(self)).decode()

    def __repr__(self) -> str:
        """Show what a log line needs; of the data, only how much there is."""
        failed = f" attempt={self.attempt} error={self.error!r}" if self.error else ""
        return (
            f"<Task {self.id} group={self.group!r} owner={self.owner!r} available_at_ns={self.available_at_ns}"
            f" claims={self.claims}{failed} {len(self.data)} bytes>"
        )


class Add(msgspec.Struct, frozen=True, gc=False):
    """A task to add: available at `available_at_ns` (0: now; in the past: as old as that), or `after_s` seconds from now.

    One that is not available yet is born owned by who adds it. With a `key` it is added once: as long as the key is
    remembered, another add with it answers with the task that the first one made, and adds nothing.
    """

    group: str
    data: bytes = b""
    available_at_ns: int = 0
    after_s: float = 0.0
    key: str | None = None


class Change(msgspec.Struct, frozen=True, gc=False):
    """A change of the task `id`. What is None stays. Without a time it becomes available now, and so is given back."""

    id: int
    data: bytes | None = None
    available_at_ns: int = 0
    after_s: float = 0.0
    group: str | None = None
    attempt: int | None = None
    error: str | None = None
