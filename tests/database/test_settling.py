"""Committing until it is certain what became of a batch: what is tried again, after which pauses, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from slotkeeper.database import (
    Applied,
    Batch,
    BlockingPort,
    ClosedError,
    Kind,
    Outcome,
    Refused,
    Table,
    Unavailable,
    Unknown,
    drive,
    insert,
)
from slotkeeper.database.settling import StillUnknown, pause_s, settled

LAMPS = Table("lamps", {"room": Kind.TEXT}, {"lamp": Kind.INT}, {"state": Kind.TEXT})
BATCH = Batch(LAMPS, ("hall",), (insert((1,), {"state": "on"}, absent=True),))
REFUSED = Refused({(1,): {"state": "off"}})
SAID = Unknown(TimeoutError("the server says so"))
SILENCE = Unknown(TimeoutError("silence"), answered=False)
NEVER = None  # no answer comes at all


@dataclass
class Scripted(BlockingPort):
    """A port that answers what is written, on a clock that moves with each wait."""

    answers: list[Outcome | Exception | None]
    at: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(round(seconds, 3))
        self.at += seconds

    def begin_commit(self, batch: Batch) -> Any:
        assert batch is BATCH, "always the identical batch"
        return Answer(self, self.answers.pop(0))


@dataclass
class Answer:
    """A request whose answer takes no time, or never comes."""

    port: Scripted
    what: Outcome | Exception | None

    async def wait(self, timeout_s: float) -> bool:
        if self.what is NEVER:
            self.port.at += timeout_s
        return self.what is not NEVER

    def result(self) -> Outcome:
        if isinstance(self.what, Exception):
            raise self.what
        assert self.what is not None
        return self.what


@pytest.mark.parametrize(
    ("answers", "outcome", "unsure"),
    [
        ([Applied()], Applied(), False),
        ([REFUSED], REFUSED, False),
        ([SAID, Applied()], Applied(), True),
        ([SILENCE, REFUSED], REFUSED, True),
        ([SAID, Unavailable(), REFUSED], REFUSED, True),
        ([SAID, ClosedError(), Applied()], Applied(), True),
    ],
)
def test_the_last_answer_counts_and_an_open_one_before_it_is_told(
    answers: list[Any], outcome: Outcome, unsure: bool
) -> None:
    assert drive(settled(Scripted(answers), BATCH, 60.0)) == (outcome, unsure)
    assert answers == []


def test_what_certainly_did_not_happen_is_not_tried_again() -> None:
    port = Scripted([Unavailable(), Applied()])
    with pytest.raises(Unavailable):
        drive(settled(port, BATCH, 60.0))
    assert port.pauses == []


def test_an_attempt_that_left_before_makes_an_error_no_answer() -> None:
    assert drive(settled(Scripted([Unavailable(), REFUSED]), BATCH, 60.0, unsure=True)) == (REFUSED, True)


def test_pauses_grow_and_are_longer_after_silence() -> None:
    port = Scripted([SAID, SAID, SILENCE, *[SAID] * 6, Applied()])
    drive(settled(port, BATCH, 60.0))
    assert port.pauses == [0.05, 0.1, 1.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]


def test_chance_halves_a_pause_at_most() -> None:
    assert [pause_s(3, chance, answered=True) for chance in (0.0, 1.0)] == [0.2, 0.4]
    port = Scripted([SAID, SAID, Applied()])
    drive(settled(port, BATCH, 60.0, dice=iter([0.0, 1.0]).__next__))
    assert port.pauses == [0.025, 0.1]


def test_the_deadline_ends_it_with_what_kept_the_answer_away() -> None:
    port = Scripted([SILENCE] * 9)
    with pytest.raises(StillUnknown) as raised:
        drive(settled(port, BATCH, 3.0))
    assert raised.value.__cause__ is SILENCE.cause
    assert port.at <= 3.0


def test_an_answer_that_does_not_come_is_waited_for_until_the_deadline() -> None:
    port = Scripted([NEVER])
    with pytest.raises(StillUnknown) as raised:
        drive(settled(port, BATCH, 3.0))
    assert isinstance(raised.value.__cause__, TimeoutError)
    assert port.at == 3.0
