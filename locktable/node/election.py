"""The election: looks who speaks, takes the seat when it is free, keeps it, and notes horizons with each renewal."""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import inf
from typing import Protocol

from ...database import DatabaseError, Event
from ..errors import NotTheSpeaker
from .errors import GrantLate
from .horizon import Horizon
from .port import Port
from .rows import Peer, Seen
from .seat import MOST_RIDES, Seat, Term
from .settle import Unsettled
from .terms import Terms

log = logging.getLogger(__name__)


class Watcher(Protocol):
    """Whoever is to learn how the election goes: the node, in the product."""

    def saw(self, seen: Seen) -> None:
        """Learn who speaks, as it was read."""
        ...

    async def won(self, term: Term) -> None:
        """Begin to speak. The term may be over at any moment after that."""
        ...

    async def lost(self) -> None:
        """Stop speaking."""
        ...


class Election:
    """One node's part in the election. `run` goes on until `end`; nothing else writes the speaker row meanwhile."""

    def __init__(
        self, port: Port, seat: Seat, horizon: Horizon, terms: Terms, dice: Callable[[], float], watcher: Watcher
    ) -> None:
        self.trouble: Exception | None = None  # why the last look or change failed
        self._port, self._seat, self._horizon, self._terms, self._dice = port, seat, horizon, terms, dice
        self._watcher = watcher
        self._nudge = port.event()
        self._waiting: list[Event] = []
        self._is_ending = False

    async def run(self) -> None:
        """Stand for election, speak, and again, until it is ended. Our seat is vacated by who ends it."""
        while not self._is_ending:
            try:
                await self._stand()
                self.trouble = None
            except (DatabaseError, Unsettled) as error:
                log.debug("the speaker row was not read or taken", exc_info=True)
                self.trouble = error
            if self._seat.term is not None:
                await self._speak(self._seat.term)
            else:
                await self._rest(self._pause_s(self._terms.beat_s / 2))  # a free seat waits no longer than that

    def end(self) -> None:
        """End it soon."""
        self._is_ending = True
        self._nudge.set()

    def look_soon(self) -> None:
        """Look who speaks at once: the seat may be free."""
        self._nudge.set()

    async def cover(self, peer: Peer, until: float) -> None:
        """Return once a horizon row covers a lease. Raises LockUnavailable when that cannot be had, or not in time."""
        term = self._seat.term
        while not self._horizon.covers(peer.instance, until):
            if term is None or self._seat.term is not term or self._horizon.has_left(peer.instance):
                raise NotTheSpeaker
            if until <= self._port.now():
                raise GrantLate
            self._horizon.need(peer, until)
            await self._written()
        self._horizon.need(peer, until)

    async def gone(self, instance: str) -> None:
        """Return once an instance that was let go has no horizon row. Raises LockUnavailable when our term ends first."""
        term = self._seat.term
        while not self._horizon.is_gone(instance):
            if term is None or self._seat.term is not term:
                raise NotTheSpeaker
            await self._written()

    async def _written(self) -> None:
        """Have the horizon written, and wait for what comes of it."""
        event = self._port.event()
        self._waiting.append(event)
        self._nudge.set()
        await event.wait(inf)

    async def _stand(self) -> None:
        self._watcher.saw(await self._seat.look())
        if self._seat.is_free and not self._is_ending:
            is_ours = await self._seat.take()
            self._watcher.saw(self._seat.seen if is_ours else await self._seat.look())  # who was faster?

    async def _speak(self, term: Term) -> None:
        log.info("speaking for the cluster, epoch %d", term.epoch)
        await self._watcher.won(term)
        renew_at = self._port.now() + self._pause_s(self._terms.beat_s)
        while self._seat.is_ours and not self._is_ending:
            await self._nudge.wait(min(renew_at, term.trusted_until) - self._port.now())
            self._nudge.clear()
            if self._is_ending:
                break
            if self._port.now() >= renew_at or self._horizon.is_asked:
                renew_at = self._port.now() + await self._extend()
        log.info("not speaking for the cluster any more, epoch %d", term.epoch)
        self._seat.leave()
        await self._watcher.lost()
        self._tell_waiting()

    async def _extend(self) -> float:
        """Renew our lease and write what is due. Return in how many seconds the next renewal is."""
        rides = self._horizon.rides(self._port.now(), MOST_RIDES)
        try:
            if await self._seat.extend(rides.writes):
                self._horizon.applied(rides)
            self.trouble = None
        except DatabaseError as error:  # nothing happened; our lease still runs
            self.trouble = error
            await self._port.sleep(self._pause_s(self._terms.beat_s / 8))
            return 0.0
        except Unsettled as error:
            self.trouble = error
            self._seat.leave()
        self._tell_waiting()
        return self._pause_s(self._terms.beat_s)

    def _tell_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            event.set()

    async def _rest(self, seconds: float) -> None:
        await self._nudge.wait(seconds)
        self._nudge.clear()

    def _pause_s(self, longest: float) -> float:
        """Return a part of a beat: nodes that began together shall not go on together."""
        return longest * (0.75 + self._dice() / 4)
