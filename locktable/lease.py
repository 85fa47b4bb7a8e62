"""A held lock's lease as its holder counts it, and the loop that keeps it.

`until` of a lock that its holder has is on the holder's own clock, counted from before the request left. So `lost` fires
before anybody else could be granted the lock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from .errors import NotHeld
from .lock import Lock

log = logging.getLogger(__name__)

LEAST_PAUSE_S = 0.05
LEAST_TRY_S = 1.0


class Clock(Protocol):
    """What the loop needs of the world. Every port has it."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Renewer(Protocol):
    """Renews locks, for a keeper."""

    async def renew(self, lock: Lock, lease_s: float, timeout_s: float) -> Lock:
        """Count a lock's lease anew. Raises NotHeld when it has ended; whatever else is raised means: try again."""
        ...


class Lease:
    """The lease of a held lock, and whether it was let go or lost."""

    def __init__(self, lock: Lock, lease_s: float, on_lost: Callable[[], None] = lambda: None) -> None:
        self.lock, self.lease_s = lock, lease_s
        self.let_go = self.lost = False
        self._on_lost = on_lost

    @property
    def trusted_until(self) -> float:
        """The last moment at which the lock is surely its holder's."""
        return self.lock.until

    @property
    def over(self) -> bool:
        """Tell whether nothing is to be renewed any more."""
        return self.let_go or self.lost

    def due_at(self, now: float) -> float:
        """Return when to renew it: when a third has passed of the time that it can be trusted."""
        return now + (self.lock.until - now) / 3

    def lose(self) -> None:
        """Note that the lock has ended without its holder's will. A renewal that comes too late for a release is no loss."""
        if not self.over:
            self.lost = True
            self._on_lost()


async def keep(lease: Lease, clock: Clock, renewer: Renewer, dice: Callable[[], float]) -> None:
    """Renew a lease until it is let go or lost. What fails, or is not answered soon, is tried again while it can be trusted."""
    next_at = lease.due_at(clock.now())
    while not lease.over:
        await clock.sleep(max(0.0, min(next_at, lease.trusted_until) - clock.now()))
        left_s = lease.trusted_until - clock.now()
        if left_s <= 0:
            lease.lose()
        elif not lease.over:
            is_renewed = await _renew(lease, renewer, min(left_s, max(LEAST_TRY_S, lease.lease_s / 4)))
            retry_s = max(LEAST_PAUSE_S, lease.lease_s / 12 * (0.5 + dice() / 2))
            next_at = lease.due_at(clock.now()) if is_renewed else clock.now() + retry_s


async def _renew(lease: Lease, renewer: Renewer, timeout_s: float) -> bool:
    try:
        renewed = await renewer.renew(lease.lock, lease.lease_s, timeout_s)
    except NotHeld:
        lease.lose()
        return False
    except Exception:  # whatever it is: an end of this loop would be the end of the lease, and nobody would be told
        log.debug("the lease of lock %s was not renewed", lease.lock.name, exc_info=True)
        return False
    if renewed.until > lease.lock.until:
        lease.lock = renewed
    return True
