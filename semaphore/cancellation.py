"""What cancelled and interrupted callers leave behind: places in line, and slots that nobody knows of. It is undone."""

from __future__ import annotations

from typing import Protocol

from ..database import Port, Unavailable
from .call import Call
from .errors import HoldUnknown
from .inbox import Inbox
from .operations import Acquire, Cancel, Granted, Release
from .told import Told
from .waiting import LEAVING_S

PAUSE_S = 0.25  # before the database is asked again what it could not tell


class Carrier(Protocol):
    """What carries calls out: their bucket."""

    async def until_answered(self, call: Call) -> None: ...

    def seen_off(self, call: Call) -> None: ...


class Cancellation:
    """Sees cancelled callers off, in a clean-up of its own."""

    def __init__(self, port: Port, bucket: Carrier, inbox: Inbox, told: Told) -> None:
        self._port, self._bucket, self._inbox, self._told = port, bucket, inbox, told

    def begin(self, call: Call) -> None:
        """Begin to undo what a caller that is gone will never know of. What may have to be undone leads on."""
        if not _may_leave_something(call):
            call.abandon()
        self._port.finish(self._see_off(call))

    async def _see_off(self, call: Call) -> None:
        try:
            await self._undo(call)
        finally:
            self._bucket.seen_off(call)

    async def _undo(self, call: Call) -> None:
        if call.abandoned:
            return
        if isinstance(call.operation, Release):
            call.deadline = min(call.deadline, self._port.now() + LEAVING_S)
            await self._bucket.until_answered(call)
        elif _is_withdrawn(call):
            call.attended = False
        else:
            await self._until_gone(call)
            await self._give_all_back(call)

    async def _until_gone(self, call: Call) -> None:
        """Give up a place in line, or learn what was handed to it; again and again while the database cannot tell."""
        if call.answer is not None:
            return
        call.operation = Cancel(call.operation.owner_id, keep=True, unwanted=True)
        call.stand_until = self._port.now()
        call.deadline = until = call.stand_until + LEAVING_S
        await self._bucket.until_answered(call)
        while isinstance(call.error, Unavailable | HoldUnknown) and self._port.now() + PAUSE_S < until:
            await self._port.sleep(PAUSE_S)
            call.error, call.deadline, call.attended = None, until, True
            self._inbox.enter_again([call])
            await self._bucket.until_answered(call)

    async def _give_all_back(self, call: Call) -> None:
        if isinstance(call.answer, Granted):
            self._told.untell(call.answer)
            await self._give_back(call.operation.owner_id, call.answer.token, call.answer.fence)
        for hold in call.tried if call.error is not None else ():
            self._told.owe(hold)
            await self._give_back(call.operation.owner_id, *hold[:2])

    async def _give_back(self, owner_id: str, token: int, fence: int) -> None:
        """Release what nobody knows of, again and again while the database cannot."""
        until = self._port.now() + LEAVING_S
        while self._told.is_owed(token, fence):
            undo = Call.begun(self._port, Release(owner_id, fence, untold=True), until)
            undo.gives_back = token, fence
            self._inbox.enter(undo)
            await self._bucket.until_answered(undo)
            if undo.error is None or self._port.now() + PAUSE_S > until:
                return
            await self._port.sleep(PAUSE_S)


def _may_leave_something(call: Call) -> bool:
    """Tell whether a call goes on without its caller. The release of a known hold does: nobody will ask for it again."""
    match call.operation:
        case Release(fence=fence):
            return fence is not None
        case Cancel(keep=keep):
            return keep
        case operation:
            return isinstance(operation, Acquire)


def _is_withdrawn(call: Call) -> bool:
    """Take a call back that has not been sent, and tell so. One that stands in line, or may, goes on."""
    taken, goes_on = call.claim.take(), call.unsure or call.stood
    if taken and goes_on:
        call.claim.give()
    return taken and not goes_on
