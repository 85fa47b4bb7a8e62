"""A batch on its way, until it is certain what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from ..database import Batch, Outcome, Port
from ..database.port import Pending
from ..database.settling import pause_s
from .call import Call
from .operations import Granted
from .planned import Plan


@dataclass(slots=True)
class Flight:
    """A planned batch, and the calls that it answers. `sent` is `batch`, or the one that makes it impossible."""

    plan: Plan
    calls: list[Call]
    batch: Batch
    sent: Batch
    began_at: float
    pending: Pending[Outcome] | None = None
    unsure: bool = False
    attempts: int = 0
    again_at: float = 0.0

    @property
    def is_for_nobody(self) -> bool:
        """Tell whether it would grant something, and all who asked for that have given up."""
        grants = any(isinstance(answer, Granted) for _, answer in self.plan.after)
        return grants and not self.plan.served and all(call.done for call in self.calls)

    async def outcome(self, port: Port, deadline: float) -> Outcome | None:
        """Send it where it is not on its way, and wait for what becomes of it; None when the deadline comes first."""
        if self.pending is None:
            if (pause := min(self.again_at, deadline) - port.now()) > 0:
                await port.sleep(pause)
            if port.now() < self.again_at:
                return None
            self.pending = port.begin_commit(self.sent)
        if not await self.pending.wait(deadline - port.now()):
            return None
        pending, self.pending = self.pending, None
        return pending.result()

    def again_later(self, now: float, chance: float, *, answered: bool) -> None:
        """Send it again after a pause: longer after silence, and with each attempt. `chance` is in 0..1."""
        self.again_at = now + pause_s(self.attempts, chance, answered=answered)
        self.attempts += 1
