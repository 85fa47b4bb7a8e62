"""What a batch on a bucket does, in words. Names are short: an owner_id is its run id."""

from __future__ import annotations

from collections.abc import Iterator

from slotkeeper.database import Batch, Expect, Verb, Write
from slotkeeper.owner import FREE
from slotkeeper.semaphore.rows import OWNER, QUEUE, TOKEN, WAITER

START_MS = 1_700_000_000_000


def short(owner_id: object) -> str:
    """Return an owner's short name."""
    text = str(owner_id)
    return "nobody" if text in (FREE, "None") else text.split(":")[2] if text.count(":") == 3 else text


def told(batch: Batch) -> str:
    """Say what a batch wants to do."""
    return "; ".join(text for write in batch.writes for text in _words(write)) or "other rows"


def _words(write: Write) -> Iterator[str]:
    kind, token, name = write.key[0], str(write.key[1]), str(write.key[2])
    holder, version = write.values.get("holder"), write.values.get("updated_time")
    expected = write.condition.columns if isinstance(write.condition, Expect) else {}
    if kind == TOKEN and write.condition is not None:
        was = "/".join(short(value) for value in expected["holder"])
        seen = ", ".join(_version(value) for value in expected["updated_time"])
        lease = "" if write.ttl_s is None else f" for {write.ttl_s}s"
        to = f" -> {short(holder)}" if "holder" in write.values else ""
        yield f"token {token} {was} {seen}{to} {_version(version) if version else ''}{lease}"
    elif kind == TOKEN:
        yield f"(token {token} {_version(version)})"
    elif kind == OWNER:
        yield f"{'un' if write.verb is Verb.DELETE else ''}mark {short(name)}"
    elif kind == WAITER:
        ticket = name.lstrip("0")
        yield f"{write.verb.value} waiter {ticket} {short(holder) if holder else ''}".rstrip()
    elif kind == QUEUE:
        last, mark = expected["holder"][0], write.values.get("held_token")
        guards = f"last {int(last)}" if isinstance(last, str) else "last 0"
        guards += f", mark {expected['held_token'][0]!r}" if "held_token" in expected else ""
        yield f"queue row [{guards}] last {int(str(holder))}{'' if mark is None else f', mark {mark!r}'}"


def _version(value: object) -> str:
    return "v-" if value is None else f"v{int(str(value)) - START_MS}"
