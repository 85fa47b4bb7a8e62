"""Asking a cluster of lock nodes: another one where one is silent, again where an answer was lost, in slices where it waits.

A request has an id of its own, so it may be repeated: it means the same as one, and keeps its place in line. Where no answer
comes at all, it is taken back by that id; only if that fails too is its outcome unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf, isnan
from typing import Any

from ...web.caller import Caller
from ...web.failures import AnswerLost, CallerClosed, CallError, NotSent
from ..errors import BadLockRequest, LockError, LockUnavailable, LockUnknown
from ..lock import Lock, Request, lease
from ..node.status import Status
from ..wire import LockDocument, LockList, WaitingDocument
from . import questions
from .errors import LockClientClosed, ServiceUnreachable
from .questions import Asked, Question

SLICE_S = 10.0  # of a wait: less than what stands before a service lets a request last
ANSWER_S = 5.0
AGAIN_S = 0.5
BREATH_S = 0.05
GIVE_UP_S = 2.0
SHORTEST_TRY_S = 0.5

Finish = Callable[[Coroutine[Any, Any, None]], None]


class Core:
    """Questions on their way to the nodes of one cluster, each behind a caller.

    `timeout_s` is how long to go on when nodes are slow or silent; `finish` runs a clean-up whose caller is gone.
    """

    def __init__(self, callers: Sequence[Caller], *, timeout_s: float, finish: Finish) -> None:
        self._callers, self._timeout_s, self._finish = callers, timeout_s, finish
        self._at = 0  # the node that has answered last

    def now(self) -> float:
        """Return seconds on the callers' clock."""
        return self._callers[0].now()

    async def sleep(self, seconds: float) -> None:
        """Wait a while."""
        await self._callers[0].sleep(seconds)

    async def acquire(self, request: Request) -> Lock:
        """Ask for a lock, and stand in line for it as long as the request says. The request must have an id.

        Raises what a table does, ServiceUnreachable, LockUnknown, LockAccessDenied, BadLockAnswer.
        """
        try:
            return await _Acquiring(self, request, self._timeout_s).granted()
        except (LockUnavailable, LockUnknown):
            raise
        except BaseException as error:
            if not isinstance(error, Exception):  # the caller is cancelled, or interrupted: nobody would take the lock
                self._finish(self.take_back(request))
            raise

    async def take_back(self, request: Request) -> None:
        """Give up a request, if a node can be told within a moment: its place in line, or the lock that it was granted."""
        with suppress(Exception):
            await self.release(request.name, request=request.request, timeout_s=GIVE_UP_S)

    async def renew(self, lock: Lock, lease_s: float, timeout_s: float | None = None) -> Lock:
        """Count a lock's lease anew. Raises NotHeld where it has ended, LockUnavailable, LockUnknown."""
        question = questions.renew(lock.name, lock.id, lease_s)
        try:
            asked = await self._settled(question, timeout_s, try_s=max(SHORTEST_TRY_S, lease(lease_s) / 6))
        except AnswerLost as error:
            raise LockUnknown(lock.name, lock.request) from error
        if asked.answer.status != 200:
            raise asked.refusal(name=lock.name, some_id=lock.id)
        return _leased(asked)

    async def release(
        self, name: str, lock_id: str = "", *, request: str = "", timeout_s: float | None = None, until: float = inf
    ) -> bool:
        """Give a lock back. False: it was not held under that id. Raises ServiceUnreachable, LockUnknown.

        Its lease ends `until`, and frees it: nobody is helped by asking for much longer.
        """
        lost: list[AnswerLost] = []
        timeout_s = min(self._timeout_s if timeout_s is None else timeout_s, max(GIVE_UP_S, until - self.now()))
        try:
            asked = await self._settled(questions.release(name, lock_id, request), timeout_s, lost=lost)
        except AnswerLost as error:
            raise LockUnknown(name, request) from error
        if asked.answer.status == 404 and asked.answer.is_problem:
            return bool(lost)  # an earlier one, whose answer was lost, has done it
        if asked.answer.status != 204:
            raise asked.refusal(name=name, some_id=lock_id or request)
        return True

    async def locks(self) -> list[Lock]:
        """Return what is held in the cluster, by name. Raises ServiceUnreachable."""
        asked = await self._looked(questions.locks())
        return [each.as_lock(asked.received) for each in asked.read(LockList).items]

    async def status(self) -> Status:
        """Return how a node sees the cluster. Raises ServiceUnreachable."""
        return (await self._looked(questions.status())).read(Status)

    async def _looked(self, question: Question) -> Asked:
        try:
            asked = await self._settled(question, None)
        except AnswerLost as error:
            raise _unreachable(error) from error
        if asked.answer.status != 200:
            raise asked.refusal()
        return asked

    async def _settled(
        self,
        question: Question,
        timeout_s: float | None,
        *,
        try_s: float = ANSWER_S,
        lost: list[AnswerLost] | None = None,
    ) -> Asked:
        """Ask, for what may be repeated, until there is an answer. Raises AnswerLost, LockUnavailable."""
        lost = [] if lost is None else lost
        deadline = self.now() + (self._timeout_s if timeout_s is None else timeout_s)
        while True:
            failure: LockError | None = None
            try:
                asked = await self.ask(question, min(try_s, max(0.1, deadline - self.now())))
                if not asked.is_busy:
                    return asked
                failure = asked.refusal()
            except AnswerLost as error:
                lost.append(error)
            except ServiceUnreachable as error:
                failure = error
            if self.now() + AGAIN_S >= deadline:
                raise lost[-1] if lost else failure or ServiceUnreachable()
            await self.sleep(BREATH_S if failure is None else AGAIN_S)

    async def ask(self, question: Question, try_s: float) -> Asked:
        """Ask one node; the next one where it cannot be reached, or was silent the last time.

        Raises AnswerLost, ServiceUnreachable where none can be reached, LockClientClosed.
        """
        unsent: CallError | None = None
        for _ in self._callers:
            try:
                asked = await self._ask(self._callers[self._at], question, try_s)
            except NotSent as error:
                unsent = error
            except CallerClosed as error:
                raise LockClientClosed from error
            except AnswerLost:
                self._turn()
                raise
            else:
                if asked.is_busy:
                    self._turn()
                return asked
            self._turn()
        raise _unreachable(unsent) from unsent

    def _turn(self) -> None:
        self._at = (self._at + 1) % len(self._callers)

    async def _ask(self, caller: Caller, question: Question, try_s: float) -> Asked:
        sent = caller.now()
        answer = await caller.request(
            question.method,
            question.path,
            body=question.body,
            params=question.params,
            timeout_s=question.takes_s + try_s,
        )
        asked = Asked(answer, sent, caller.now())
        if asked.is_about_another:
            raise AnswerLost(f"{AnswerLost.__doc__} (who stands between answered {answer.status})")
        return asked


class _Acquiring:
    """One request for a lock on its way, until it is granted or its time is over."""

    def __init__(self, core: Core, request: Request, timeout_s: float) -> None:
        self._core, self._request, self._timeout_s = core, request, timeout_s
        if isnan(request.wait_s):
            raise BadLockRequest("A wait is a number of seconds.")
        self._ends_at = core.now() + max(0.0, request.wait_s)
        self._is_open = False  # whether it may be granted by what was asked before

    async def granted(self) -> Lock:
        while True:
            try:
                leased = await self._once()
            except AnswerLost:
                self._is_open = True
                await self._again(ServiceUnreachable(), BREATH_S)
            except LockUnavailable as error:
                await self._again(error, AGAIN_S)
            else:
                if leased is not None:
                    return leased

    async def _once(self) -> Lock | None:
        """Ask once. None: it waits on."""
        left_s = max(0.0, self._ends_at - self._core.now())
        slice_s = min(left_s, SLICE_S)
        asked = await self._core.ask(questions.acquire(self._request, left_s, slice_s), ANSWER_S)
        match asked.answer.status:
            case 200:
                return _leased(asked)
            case 202:
                asked.read(WaitingDocument)
                self._is_open = True
                return None
            case 409 if self._is_early(asked):
                await self._core.sleep(BREATH_S)
                return None
        raise asked.refusal(name=self._request.name, some_id=self._request.request)

    def _is_early(self, asked: Asked) -> bool:
        """Tell whether the service waited for less than it was asked to: its own limit is shorter."""
        return b"lock-held" in asked.answer.body and self._ends_at - self._core.now() > BREATH_S

    async def _again(self, error: LockUnavailable, pause_s: float) -> None:
        """Wait before the next try; raise the error when there is no time for one."""
        until = self._ends_at + self._timeout_s if self._is_open else self._ends_at
        if self._core.now() + pause_s < until:
            await self._core.sleep(pause_s)
        elif self._is_open:
            await self._take_back(error)
        else:
            raise error

    async def _take_back(self, problem: LockUnavailable) -> None:
        """Have the request count for nothing, since nobody says what became of it."""
        try:
            await self._core.release(self._request.name, request=self._request.request, timeout_s=GIVE_UP_S)
        except Exception as error:
            raise LockUnknown(self._request.name, self._request.request) from error
        raise problem


def _unreachable(error: CallError | None) -> ServiceUnreachable:
    why = None if error is None else error.__cause__ or error
    return ServiceUnreachable(None if why is None else f"{ServiceUnreachable.__doc__} ({why})")


def _leased(asked: Asked) -> Lock:
    """Return a lock that was granted or renewed, with the end that its holder may trust."""
    document = asked.read(LockDocument)
    return replace(document.as_lock(asked.received), until=document.trusted_until(asked.sent, asked.received))
