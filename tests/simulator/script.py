"""What a caller does: acquire, hold, renew, release, again, twice, or not at all; and what it may conclude from the answers."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable
from functools import cache
from typing import TYPE_CHECKING, Any

from schedules.history import Violation

from simulator.client import Client
from simulator.history import short
from simulator.ledger import Belief, Deed, Excuse
from slotkeeper.database import Unavailable
from slotkeeper.owner import Owner
from slotkeeper.semaphore.errors import HoldUnknown, WaitCancelled
from slotkeeper.semaphore.lease import Lease
from slotkeeper.semaphore.operations import Full, Granted, NotHeld, Released, Renewed, Stale
from slotkeeper.semaphore.waiting import LEAVING_S

if TYPE_CHECKING:
    from simulator.world import World

NAME = "gpu"
LEASES = (None, None, None, 2, 3, 5)
TIMEOUTS = (20.0, 20.0, 20.0, 5.0, 0.3)
HOLDS = (0.0, 0.004, 0.02, 0.1, 0.5, 2.5)
SLACK_S = 1.0


_parsed = cache(Owner.parse)  # there are few owners, and many schedules


class Script:
    """One caller: an owner's life at one client."""

    def __init__(self, world: World, client: Client, owner: str, number: int) -> None:
        self.world, self.client, self.owner, self._asker = world, client, owner, _parsed(owner)
        self.party = f"{client.name}/{short(owner)}#{number}"
        self._random, self._account = world.random, world.ledger.of(owner)

    async def run(self) -> None:
        """Live once or twice, a cancellation aside."""
        await self.client.port.sleep(self._random() * self._random() * 0.3)
        turns = 1 + int(self._random() * self.world.size.turns)
        for turn in range(turns):
            if turn:
                await self.client.port.sleep(self._choice(HOLDS) * self._random())
            try:
                await self._turn()
            except CancelledError:
                if self.party in self._account.holders:
                    self._account.excuses[self.client.name, self.party] = Excuse("forgotten", self.world.now)
                self._let_go()
                if self._random() < 0.3:
                    return

    async def _turn(self) -> None:
        held = await self.acquire(self._choice(self.world.size.waits), self._choice(LEASES))
        if held:
            await self._hold()
            if self._random() < 0.95 or self._belief is None or self._belief.lease is None:
                await self.release()
            self._let_go()
        elif held is None and self._random() < 0.6:  # not known: find out, one way or the other
            if self._random() < 0.5:
                await self.acquire(self._choice(self.world.size.waits), self._choice(LEASES))
            await self.release()
            self._let_go()

    async def _hold(self) -> None:
        await self.client.port.sleep(self._choice(HOLDS) * (0.5 + self._random()))
        chance = self._random()
        if chance < 0.08:
            await self.acquire(0.0, self._choice(LEASES))
        elif chance < 0.2:
            await self.change_lease(self._choice(LEASES))
        else:
            return
        await self.client.port.sleep(self._choice(HOLDS) * self._random())

    # --- operations --------------------------------------------------------------------------------------------------

    async def acquire(self, wait_s: float, lease_s: int | None) -> bool | None:
        """Acquire; tell whether the slot is held, None where that is not known."""
        first = not (self._account.holders or self._account.excuses or self._account.deeds or self._holds_already())
        held = self.party in self._account.holders
        belief, timeout_s = self._let_go(), self._choice(TIMEOUTS)
        deed = self._deed("wait" if wait_s else "acquire", disturbing=lease_s is not None)
        deed.first = first
        call = self.client.core.acquire(NAME, self._asker, wait_s=wait_s, lease_s=lease_s, timeout_s=timeout_s)
        answer = await self._done(deed, call, wait_s + timeout_s)
        if isinstance(answer, Granted):
            self._believe(deed, answer, lease_s)
            return True
        if isinstance(answer, Full):
            self._check_full(deed, wait_s)
        if isinstance(answer, Unavailable):
            self._believe_still(deed, belief)
            if held:
                self._account.holders.add(self.party)
        return None if isinstance(answer, HoldUnknown) else False

    async def release(self) -> None:
        """Release, perhaps by fence, perhaps twice."""
        belief = self._let_go()
        fence = belief.fence if belief is not None and self._random() < 0.5 else None
        await self._release(fence, belief)
        if self._random() < 0.1:
            await self._release(fence, None)

    async def _release(self, fence: int | None, belief: Belief | None) -> None:
        timeout_s, deed = self._choice(TIMEOUTS), self._deed("release", disturbing=True)
        call = self.client.core.release(NAME, self._asker, fence, timeout_s)
        answer = await self._done(deed, call, timeout_s)
        if isinstance(answer, Unavailable):
            self._believe_still(deed, belief)
            self._account.holders.add(self.party)
            await self.client.port.sleep(0.1)
            await self._release(fence, self._let_go())
        elif isinstance(answer, Released | NotHeld):
            self._check_not_held(deed)
        if isinstance(answer, NotHeld | Stale) and belief is not None and self._surely(deed, belief):
            raise Violation(f"{self.party} held its slot, and its release was answered {answer}")

    async def change_lease(self, lease_s: int | None) -> None:
        """Renew by hand: with another lease, or none."""
        belief = self._account.beliefs.get(self.party)
        if belief is None:
            return
        self._let_go()
        timeout_s, deed = self._choice(TIMEOUTS), self._deed("renew", disturbing=True)
        call = self.client.core.renew(NAME, self._asker, fence=belief.fence, lease_s=lease_s, timeout_s=timeout_s)
        answer = await self._done(deed, call, timeout_s)
        if isinstance(answer, Renewed):
            self._believe(deed, answer, lease_s)
        elif isinstance(answer, NotHeld | Stale) and lease_s is None and self._surely(deed, belief):
            raise Violation(f"{self.party} held its slot, and its renewal was answered {answer}")
        elif isinstance(answer, Unavailable):
            self._believe_still(deed, belief)

    async def _done(self, deed: Deed, call: Awaitable[Any], longest_s: float) -> Any:
        world, ledger = self.world, self.world.ledger
        deed.deadline = world.now + longest_s
        ledger.begin(self.owner, deed)
        try:
            answer = await call
        except CancelledError:
            self._note(deed, "cancelled")
            why = "cancelled" if deed.kind in ("acquire", "wait") and deed.first else "unknown"
            ledger.unsure(self.owner, deed, Excuse(why, world.now))
            raise
        except HoldUnknown as error:
            ledger.unsure(self.owner, deed, Excuse("unknown", world.now))
            answer = error
        except WaitCancelled as error:
            if deed.alone and self.owner not in ledger.cancelled:
                raise Violation(f"{self.party} was taken out of the line, and nobody did it") from error
            answer = error
        except Unavailable as error:
            answer = error
        finally:
            ledger.end(self.owner, deed)
        if world.history is not None:
            self._note(deed, repr(answer))
        if not isinstance(answer, Unavailable | HoldUnknown):
            ledger.sure(self.owner, deed)
        if world.now > deed.deadline + LEAVING_S + SLACK_S + world.stalled_s:
            raise Violation(
                f"{self.party} {deed.kind} was answered {world.now - deed.deadline:.1f} s after its deadline"
            )
        return answer

    # --- conclusions -------------------------------------------------------------------------------------------------

    def _believe(self, deed: Deed, granted: Granted | Renewed, lease_s: int | None) -> None:
        lease = None
        if lease_s is not None:
            lease = Lease(NAME, self.owner, granted.fence, lease_s, began_at=granted.began_at)
            self._account.keepers.add(self.party)
            self.client.keep(lease)
        belief = Belief(self.owner, granted.token, granted.fence, lease)
        self._belief = belief
        self._account.holders.add(self.party)
        if deed.quiet:
            self._account.beliefs[self.party] = belief
            self.world.check()

    def _holds_already(self) -> bool:
        return self.owner in self.world.picture.owners

    _belief: Belief | None = None

    def _believe_still(self, deed: Deed, belief: Belief | None) -> None:
        """Rely on the slot as before a call that changed nothing."""
        if belief is None or belief.lease is not None:
            return
        self._belief = belief
        self._account.holders.add(self.party)
        if deed.quiet:
            self._account.beliefs[self.party] = belief
            self.world.check()

    def _let_go(self) -> Belief | None:
        """Rely on the slot no more. Return the belief, if others have not shaken it."""
        if self._belief is not None and self._belief.lease is not None:
            self.client.drop(self._belief.lease)
        self._belief = None
        self._account.holders.discard(self.party)
        return self._account.beliefs.pop(self.party, None)

    def _surely(self, deed: Deed, belief: Belief) -> bool:
        """Tell whether nothing but this call can have ended a hold."""
        return deed.alone and not self._account.excuses and belief.is_held(self.world.now)

    def _check_full(self, deed: Deed, wait_s: float) -> None:
        self._check_not_held(deed)
        if not wait_s and not self.world.was_full_since(deed.began_at):
            raise Violation(f"{self.party} was told that no slot is free, and there was one all the time")

    def _check_not_held(self, deed: Deed) -> None:
        if deed.alone and not self._account.excuses and self.owner in self.world.picture.owners:
            raise Violation(f"{self.party} was told that it holds nothing after its {deed.kind}, and it does")

    def _deed(self, kind: str, *, disturbing: bool) -> Deed:
        return Deed(self.party, self.client.name, kind, self.world.now, disturbing)

    def _note(self, deed: Deed, text: str) -> None:
        if self.world.history is not None:
            self.world.note(self.party, f"{deed.kind}: {text}")

    def _choice(self, among: tuple[Any, ...]) -> Any:
        return among[int(self._random() * len(among))]
