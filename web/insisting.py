"""Asking again: the identical request, until there is an answer or the time is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .caller import Answer, Caller, Params
from .failures import AnswerLost, CallerClosed, CallError, NotSent

BUSY = (429, 503)
GATEWAY = (502, 504)  # said by who stands between, and does not know what became of it
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0
SHORTEST_TRY_S = 1.0


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked. `takes_s` is how long the service may let it wait on purpose."""

    method: str
    path: str
    body: bytes | None = field(default=None, repr=False)
    params: Params = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    takes_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Settled:
    """An answer, and whether an earlier one was lost: then what it says may be about the earlier request."""

    answer: Answer
    after_loss: bool = False


async def insist(caller: Caller, request: Request, *, deadline: float, dice: Callable[[], float]) -> Settled:
    """Ask until there is an answer; only for requests that may be repeated. `deadline` is on the caller's clock.

    A service that is busy, and says when to come back, is asked again. When the time is over: its answer is returned if
    nothing can have happened, else AnswerLost is raised; NotSent where none of the requests left. Unsendable and
    CallerClosed end it at once.
    """
    lost: AnswerLost | None = None
    tries = 0
    while True:
        said: Answer | CallError
        try:
            said = await _once(caller, request, deadline)
        except AnswerLost as error:
            lost = said = error
        except NotSent as error:
            said = error
        except CallerClosed as error:
            raise lost or error from None
        pause = _pause_s(said, tries, dice)
        if pause is None or caller.now() + pause >= deadline:
            return _ended(said, lost)
        await caller.sleep(pause)
        tries += 1


async def _once(caller: Caller, request: Request, deadline: float) -> Answer:
    left_s = max(deadline - caller.now(), 0.001)
    spare_s = max((left_s - request.takes_s) / 2, SHORTEST_TRY_S)  # a silent try leaves time for another
    answer = await caller.request(
        request.method,
        request.path,
        body=request.body,
        params=request.params,
        headers=request.headers,
        timeout_s=min(left_s, request.takes_s + spare_s),
    )
    if answer.status in GATEWAY and not answer.is_problem:
        raise AnswerLost(f"{AnswerLost.__doc__} (a proxy answered {answer.status})")
    return answer


def _pause_s(said: Answer | CallError, tries: int, dice: Callable[[], float]) -> float | None:
    """Return how long to wait before asking again; None where the answer stands."""
    backing_off = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(tries, 10)) * (0.5 + dice() / 2)
    if isinstance(said, CallError):
        return backing_off
    wanted = said.retry_after_s
    return max(wanted, backing_off) if said.status in BUSY and wanted is not None else None


def _ended(said: Answer | CallError, lost: AnswerLost | None) -> Settled:
    if isinstance(said, Answer) and (lost is None or said.status not in BUSY):
        return Settled(said, lost is not None)
    if lost is not None:
        raise lost
    assert isinstance(said, CallError)
    raise said
