"""The lock under which the schema changes: one holder cell whose TTL is the lease.

The holder names a random id, so "refused, and the row shows me" means that an earlier attempt of mine applied.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from random import Random, SystemRandom

from ..database import Applied, Batch, BlockingPort, Port, Refused, Store, Value, Write, drive, update
from ..database.settling import StillUnknown, settled
from .control import LOCK, Change, batch, look
from .errors import SchemaLocked, SchemaLockLost, SchemaUnsettled

FREE = ("", None)  # released, and ended or never held
SETTLE_S = 30.0


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock as one process sees it. Each step renews it to its whole lease, which outlasts any step."""

    port: Port
    holder: str
    lease_s: int
    random: Random

    async def acquire(self) -> str | None:
        """Take the lock. Return None when it is ours, or else its holder."""
        match await self._settled(batch(self._held(FREE))):
            case Refused(rows) if (other := rows.get(LOCK, {}).get("holder")) != self.holder:
                return str(other)
        return None

    async def commit(self, *writes: Write) -> Refused | None:
        """Renew the lock, together with other writes. Return what was in their way, if it was not the lock.

        Raises SchemaLockLost: then none of them took effect.
        """
        match await self._settled(batch(self._held((self.holder,)), *writes)):
            case Refused(rows) as refused:
                if (other := rows.get(LOCK, {}).get("holder")) != self.holder:
                    raise SchemaLockLost(str(other) if other else None)
                return refused
        return None

    async def release(self) -> None:
        """Give the lock back, where it is still ours."""
        await self._settled(batch(update(LOCK, {"holder": ""}, expect={"holder": (self.holder,)})))

    def _held(self, before: tuple[str | None, ...]) -> Write:
        values: dict[str, Value] = {"holder": self.holder, "updated_time": self.port.wall_ms()}
        return update(LOCK, values, expect={"holder": before}, ttl_s=self.lease_s)

    async def _settled(self, attempt: Batch) -> Applied | Refused:
        return await settle(self.port, attempt, self.random)


async def settle(port: Port, attempt: Batch, random: Random) -> Applied | Refused:
    """Commit a batch, identically again while its outcome is unknown. Raises SchemaUnsettled when that takes too long."""
    try:
        return (await settled(port, attempt, port.now() + SETTLE_S, dice=random.random)).outcome
    except StillUnknown as error:
        raise SchemaUnsettled from error.__cause__


def force_unlock(store: Store, *, who: str | None = None, port: Port | None = None) -> str | None:
    """Break the lock of the schema and return whose it was; None when nobody held it. The history keeps it.

    Needs no lock. Raises SchemaLocked when the lock changed hands meanwhile: that holder is alive.
    """
    return drive(_broken(port or BlockingPort(store), who or this_process(), SystemRandom()))


async def _broken(port: Port, who: str, random: Random) -> str | None:
    seen = (await look(port, serial=True)).holder
    if seen is None:
        return None
    change = Change("unlock", signed(who, random), port.wall_ms(), broken=seen)
    freed = update(LOCK, {"holder": ""}, expect={"holder": (seen,)})
    match await settle(port, batch(freed, change.written()), random):
        case Refused(rows) if change.key not in rows:
            holder = rows.get(LOCK, {}).get("holder")
            if holder not in FREE:
                raise SchemaLocked(str(holder))
            return None
    return seen


def this_process() -> str:
    """Name this process for people who look for it."""
    return f"{socket.gethostname()} pid {os.getpid()}"


def signed(who: str, random: Random) -> str:
    """Make a name that nobody else has, not even another run of the same process."""
    return f"{who} #{random.getrandbits(32):08x}"
