"""Asking a task service: again where an answer was lost, in slices where a claim waits, and with a store's own errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn, TypeVar

import msgspec

from ...web.caller import Answer, Caller
from ...web.failures import AnswerLost, CallerClosed, NotSent, Unsendable
from ...web.insisting import Request, Settled, insist
from ...web.instances import ANOTHER, FOR, INSTANCE
from ...web.problem import ProblemDocument
from .. import wire
from ..errors import OutcomeUnknown, StoreClosed, UpdateError
from ..operations import Claim
from ..task import Task
from . import questions
from .errors import AccessDenied, BadAnswer, ServiceUnreachable
from .questions import Question

T = TypeVar("T")
SLICE_S = 10.0  # of a wait: less than services and what stands before them let a request last
BREATH_S = 0.05
TOO_LONG = (400, 413, 414, 431)  # without a reason: said by servers and proxies that read no further
LOST = "The service did not say in time whether it made the change. It is in whole or not at all: look before you repeat it."


class Core:
    """Questions on their way to one service. `dice` spreads those that ask again, `new_key` names what is asked once."""

    def __init__(
        self, caller: Caller, *, timeout_s: float, dice: Callable[[], float], new_key: Callable[[], str]
    ) -> None:
        self._caller, self._timeout_s, self._dice = caller, timeout_s, dice
        self.new_key = new_key
        self._slice_s = SLICE_S
        self._instance: str | None = None  # the process that answered last; empty for a service that names none

    async def ask(self, question: Question[T]) -> T:
        """Ask, and return the answer. Raises what a store would, ServiceUnreachable, AccessDenied or BadAnswer."""
        return self._read(question, await self._settled(question))

    async def claim(self, op: Claim, wait_s: float) -> Task | None:
        """Claim a task; stand in line for a slice of the wait at a time, until all of it has passed."""
        until, left_s = self._caller.now() + wait_s, max(0.0, wait_s)
        while True:
            task = await self._claim_for_a_slice(op, min(left_s, self._slice_s))
            left_s = until - self._caller.now()
            if task is not None or left_s <= 0:
                return task
            await self._caller.sleep(min(left_s, BREATH_S))

    async def _claim_for_a_slice(self, op: Claim, wait_s: float) -> Task | None:
        try:
            return await self._claim_once(op, wait_s)
        except UpdateError as error:
            if not error.has_bugs or not wait_s:
                raise
        task = await self._claim_once(op, 0.0)  # raises what is wrong with the claim itself
        self._slice_s = wait_s / 2  # so it is the wait: this service lets nobody wait so long
        return task

    async def _claim_once(self, op: Claim, wait_s: float) -> Task | None:
        try:
            return await self.ask(questions.claim(op, int(wait_s * 1e9), self.new_key()))
        except OutcomeUnknown as error:
            if self._caller.is_closed:  # a task that it got comes back by itself when its time has passed
                raise StoreClosed from error
            raise

    async def _settled(self, question: Question[T]) -> Settled:
        deadline = self._caller.now() + question.request.takes_s + self._timeout_s
        try:
            if not question.request.headers.get(questions.KEY):
                return await self._insist(question.request, deadline)
            return await self._of_one_instance(question.request, deadline)
        except CallerClosed as error:
            raise StoreClosed from error
        except Unsendable as error:
            raise UpdateError(bugs=[str(error)]) from error
        except NotSent as error:
            raise ServiceUnreachable(f"{ServiceUnreachable.__doc__} ({error})") from error
        except AnswerLost as error:
            if question.changes:
                raise OutcomeUnknown(f"{LOST} ({error})") from error
            raise ServiceUnreachable(f"{ServiceUnreachable.__doc__} ({error})") from error

    async def _of_one_instance(self, request: Request, deadline: float) -> Settled:
        """Ask under a key, which means something to one process only: another one must not carry the request out again."""
        if self._instance is None:
            await self._insist(Request("GET", "/healthz"), deadline)
        while self._instance:
            settled = await self._insist(replace(request, headers={**request.headers, FOR: self._instance}), deadline)
            if not _is_from_another(settled.answer):
                return settled
            if settled.after_loss:
                raise OutcomeUnknown(f"{LOST} (it was started anew meanwhile)")
        return await self._insist(request, deadline)

    async def _insist(self, request: Request, deadline: float) -> Settled:
        settled = await insist(self._caller, request, deadline=deadline, dice=self._dice)
        self._instance = settled.answer.headers.get(INSTANCE, "")
        return settled

    def _read(self, question: Question[T], settled: Settled) -> T:
        answer = settled.answer
        if answer.status != 200 and answer.status != 204:
            _refuse(question, answer)
        try:
            return question.read(answer.body)
        except (msgspec.MsgspecError, ValueError) as error:
            raise _misread(question, answer) from error


def _is_from_another(answer: Answer) -> bool:
    said = _decoded(answer.body, ProblemDocument) if answer.status == 412 and answer.is_problem else None
    return said is not None and said.name == ANOTHER


def _refuse(question: Question[T], answer: Answer) -> NoReturn:
    """Raise what an answer says went wrong."""
    if answer.status in TOO_LONG and not answer.is_problem:
        raise UpdateError(bugs=[f"the request is too long for what carries it there (status {answer.status})"])
    if not answer.is_problem:
        raise _broken(answer) or _misread(question, answer)
    said = _decoded(answer.body, ProblemDocument)
    if said is None:
        raise _misread(question, answer)
    told = said.detail or said.title
    if (kind := wire.PROBLEMS.get(said.name)) is not None:
        raise kind[0](told)
    if answer.status in (401, 403):
        raise AccessDenied(f"{AccessDenied.__doc__} ({told})")
    if 400 <= answer.status < 500 and answer.status not in (404, 405):
        raise UpdateError(bugs=[told])
    raise _misread(question, answer)


def _broken(answer: Answer) -> UpdateError | None:
    """Return the refusal of a change, with its lists."""
    said = _decoded(answer.body, wire.Answer) if answer.status in (409, 422) else None
    return said.error.as_error() if said is not None and said.error is not None else None


def _misread(question: Question[T], answer: Answer) -> OutcomeUnknown | BadAnswer:
    """Return the error for an answer that means nothing: after a change that was not refused, it may have happened."""
    told = f"(status {answer.status}, {answer.headers.get('content-type', 'no content type')})"
    if question.changes and not 300 <= answer.status < 500:
        return OutcomeUnknown(f"{LOST} {told}")
    return BadAnswer(f"{BadAnswer.__doc__} {told}")


def _decoded(body: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeError):
        return None
