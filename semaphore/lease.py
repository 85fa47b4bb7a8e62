"""A lease, counted without anyone else's clock, and the loop that keeps it.

Its holder trusts a lease until it has lasted as long as the server surely kept it: whole seconds by the server's count, from
before the request left, less one second for the server's rounding and a margin for our own delay. So `lost` fires before
the database would let anybody else in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from ..database import Port
from .operations import NotHeld, Renewed, Stale

log = logging.getLogger(__name__)

MARGIN_S = 0.2


class Renewer(Protocol):
    """What renews a hold: the core, in the product."""

    async def renew(
        self, name: str, owner: str, *, fence: int | None, lease_s: int | None, timeout_s: float
    ) -> Renewed | NotHeld | Stale: ...


class Lease:
    """A leased hold: until when it may be trusted (on the port's clock), and whether it was let go or lost."""

    def __init__(
        self,
        semaphore: str,
        owner_id: str,
        fence: int,
        lease_s: int,
        *,
        began_at: float,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self.semaphore, self.owner_id, self.fence, self.lease_s = semaphore, owner_id, fence, lease_s
        self.began_at = began_at
        self.let_go = self.lost = False
        self._on_lost = on_lost

    @property
    def trusted_until(self) -> float:
        """The last moment at which the slot is surely its holder's."""
        return self.began_at + self.lease_s - 1 - MARGIN_S

    @property
    def over(self) -> bool:
        """Tell whether nothing is to be renewed any more."""
        return self.let_go or self.lost

    def lose(self) -> None:
        """Note that the hold has ended without its holder's will. A renewal that comes too late for a release is no loss."""
        if not self.over:
            self.lost = True
            self._on_lost()

    def due_at(self, phase: float) -> float:
        """Return when to renew: at a fourth to a third of the lease, at the next tick of a process's own beat.

        So leases of one process that are due at about the same time are renewed in one batch, and those of other processes
        at another time: `phase` in 0..1 is a process's own.
        """
        latest, beat_s = self.began_at + self.lease_s / 3, self.lease_s / 12
        return latest - (latest - phase * beat_s) % beat_s


async def keep(lease: Lease, port: Port, renewer: Renewer, dice: Callable[[], float], phase: float = 0.0) -> None:
    """Renew a lease until it is let go or lost. Failing renewals are tried again while the lease can be trusted."""
    next_at = lease.due_at(phase)
    while not lease.over:
        await port.sleep(max(0.0, min(next_at, lease.trusted_until) - port.now()))
        left_s = lease.trusted_until - port.now()
        if left_s <= 0:
            lease.lose()
        elif not lease.over:
            await _renew(lease, renewer, left_s)
            retry_s = lease.lease_s / 12 * (0.5 + dice() / 2)
            next_at = lease.due_at(phase)
            if next_at <= port.now():  # it failed
                next_at = port.now() + retry_s


async def _renew(lease: Lease, renewer: Renewer, timeout_s: float) -> None:
    try:
        answer = await renewer.renew(
            lease.semaphore, lease.owner_id, fence=lease.fence, lease_s=lease.lease_s, timeout_s=timeout_s
        )
    except Exception:  # whatever it is: an end of this loop would be the end of the lease, and nobody would be told
        log.debug("a lease of %s was not renewed", lease.semaphore, exc_info=True)
        return  # it may have been renewed; the count says when it can no longer be trusted
    if isinstance(answer, Renewed):
        lease.began_at = answer.began_at
    else:
        lease.lose()
