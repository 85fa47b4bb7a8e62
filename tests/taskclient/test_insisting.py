"""Asking again, on a clock that only moves when somebody sleeps or waits for an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from slotkeeper.database import drive
from slotkeeper.web.caller import Answer, Params
from slotkeeper.web.failures import AnswerLost, CallerClosed, CallError, NotSent, Unsendable
from slotkeeper.web.insisting import Request, Settled, insist

PROBLEM = {"content-type": "application/problem+json; charset=utf-8"}
BUSY = Answer(503, {**PROBLEM, "retry-after": "2"})
YES = Answer(200)


class Scripted:
    """A caller that answers by a list; the last entry stays. An answer that is lost takes all the time there is."""

    is_closed = False

    def __init__(self, *script: Answer | CallError) -> None:
        self.script, self.at = list(script), 0.0
        self.tries: list[tuple[float, float]] = []  # when, and with what patience

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.at += seconds

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        params: Params = (),
        headers: Mapping[str, str] | None = None,
        timeout_s: float,
    ) -> Answer:
        self.tries.append((self.at, timeout_s))
        said = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(said, CallError):
            self.at += timeout_s if isinstance(said, AnswerLost) else 0.0
            raise said
        return said

    async def close(self) -> None: ...


def asked(caller: Scripted, seconds: float = 20.0, **request: Any) -> Settled:
    """Insist for some seconds."""
    return drive(insist(caller, Request("POST", "/", **request), deadline=caller.now() + seconds, dice=lambda: 1.0))


def test_an_answer_stands_and_whether_one_was_lost_before_is_told() -> None:
    assert asked(Scripted(YES)) == Settled(YES)
    assert asked(Scripted(NotSent(), YES)) == Settled(YES)
    assert asked(Scripted(AnswerLost(), NotSent(), YES)) == Settled(YES, after_loss=True)
    assert asked(Scripted(AnswerLost(), Answer(409))) == Settled(Answer(409), after_loss=True)


def test_pauses_grow_and_stay_below_a_bound() -> None:
    caller = Scripted(NotSent())

    with pytest.raises(NotSent):
        asked(caller)

    pauses = [round(later - sooner, 2) for (sooner, _), (later, _) in zip(caller.tries, caller.tries[1:], strict=False)]
    assert pauses[:6] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6]
    assert set(pauses[6:]) == {2.0}
    assert caller.at < 20


def test_silence_is_tried_again_before_the_time_is_over() -> None:
    caller = Scripted(AnswerLost())

    with pytest.raises(AnswerLost):
        asked(caller)

    patiences = [round(patience, 1) for _, patience in caller.tries]
    assert patiences[:3] == [10.0, 5.0, 2.4]
    assert len(patiences) > 3
    assert caller.at <= 20.001


def test_a_wait_that_the_service_is_asked_for_is_on_top() -> None:
    caller = Scripted(YES)
    asked(caller, seconds=30, takes_s=10)

    assert caller.tries == [(0.0, 20.0)]
    caller = Scripted(AnswerLost())
    with pytest.raises(AnswerLost):
        asked(caller, seconds=30, takes_s=10)
    assert [round(patience) for _, patience in caller.tries] == [20, 10]
    assert caller.at == 30


def test_who_is_busy_is_asked_when_it_says_and_its_last_word_stands() -> None:
    caller = Scripted(BUSY)

    assert asked(caller, seconds=7) == Settled(BUSY)
    assert [at for at, _ in caller.tries] == [0.0, 2.0, 4.0, 6.0]
    assert asked(Scripted(Answer(503))) == Settled(Answer(503))  # it does not say when


def test_who_is_busy_after_a_loss_does_not_settle_it() -> None:
    with pytest.raises(AnswerLost):
        asked(Scripted(AnswerLost(), BUSY))


@pytest.mark.parametrize("status", [502, 504])
def test_what_a_proxy_says_of_a_service_is_a_loss_unless_the_service_says_it(status: int) -> None:
    with pytest.raises(AnswerLost, match=f"a proxy answered {status}"):
        asked(Scripted(Answer(status)))
    assert asked(Scripted(Answer(status, PROBLEM))).answer.status == status


def test_what_cannot_be_sent_or_is_closed_is_not_tried_again() -> None:
    for error in (Unsendable(), CallerClosed()):
        caller = Scripted(error)
        with pytest.raises(type(error)):
            asked(caller)
        assert len(caller.tries) == 1
    with pytest.raises(AnswerLost):
        asked(Scripted(AnswerLost(), CallerClosed()))
