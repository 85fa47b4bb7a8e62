"""A bucket's rows as they lie in the store, checked to agree with each other."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from slotkeeper.database import Slice, Store
from slotkeeper.semaphore.rows import OWNER, TOKEN, TOKENS, WAITER, WAITING_OWNER, is_free, number, text


@dataclass(frozen=True, slots=True)
class Seen:
    """Who holds which token, who waits in which order, and how long leases still last (seconds, by holder)."""

    holders: dict[str, int]
    line: list[str]
    leases: dict[str, int]


def seen(store: Store, domain_id: UUID, name: str, bucket: int = 0) -> Seen:
    """Read a bucket. Both indexes must agree, of holders and of waiters, and nobody both holds and waits."""
    partition = (domain_id, name, bucket)
    rows = store.read(TOKENS, partition, (Slice(ttl_of="holder"),), serial=True)
    held = [row for row in rows if row["type"] == TOKEN and not is_free(text(row, "holder"))]
    holders = {str(row["holder"]): number(row, "token_id") or 0 for row in held}
    versions = {(str(row["holder"]), row["token_id"], row["updated_time"]) for row in held}
    owners = {(row["owner_id"], row["held_token"], row["updated_time"]) for row in rows if row["type"] == OWNER}
    assert versions == owners, "token rows and owner rows disagree"
    assert len(holders) == len(held), "an owner holds two tokens"

    line = [(str(row["owner_id"]).partition("/")[0], str(row["holder"])) for row in rows if row["type"] == WAITER]
    waiting = [(str(row["holder"]), str(row["owner_id"])) for row in rows if row["type"] == WAITING_OWNER]
    assert sorted(line) == sorted(waiting), "waiter rows and waiting-owner rows disagree"
    assert not holders.keys() & {owner_id for _, owner_id in line}, "an owner holds and waits"
    leases = {str(row["holder"]): int(str(row["ttl(holder)"])) for row in held if row["ttl(holder)"] is not None}
    return Seen(holders, [owner_id for _, owner_id in line], leases)
