"""What nodes say to one another survives its way as JSON, and a lease counts on the clock of whoever is told."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

import msgspec
import pytest

from slotkeeper.locktable import (
    AlreadyReleased,
    BadLockRequest,
    Grant,
    Lock,
    LockError,
    LockHeld,
    LockUnavailable,
    NoName,
    NotHeld,
    NotRebuilt,
    NotTheSpeaker,
    Request,
    TakenOver,
)
from slotkeeper.locktable.node import (
    Answer,
    GrantLate,
    Message,
    NodeLeaving,
    NoSpeaker,
    Outdated,
    Peer,
    Unreachable,
    Unsettled,
)
from slotkeeper.locktable.node.messages import (
    Acquire,
    Copy,
    Done,
    Forget,
    Given,
    Holdings,
    Item,
    Leave,
    Listed,
    ListLocks,
    ListNode,
    Rebuild,
    Recall,
    Refusal,
    Release,
    Renew,
    Told,
    Vacant,
)

PEER = Peer("n1", "i1", "http://n1:1")
WHEN = datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC)
LOCK = Lock("network/blue", "id", "n1", "job 7", WHEN, WHEN, 130.0, (3 << 32) + 1, "r")
TOLD = Told.of(LOCK, 100.0)

MESSAGES = [
    Acquire(asker=PEER, request=Request("x", "n1", "h", 1.5, 2.5, "r")),
    Renew(asker=PEER, name="x", id="i", lease_s=1.5),
    Release(asker=PEER, name="x", id="i", request="r"),
    Forget(items=(Item("x", "i"), Item("y", request="r"))),
    Rebuild(epoch=7, speaker=PEER),
    Leave(asker=PEER, held=(TOLD,)),
    Copy(asker=PEER, epoch=7, copy="c", held=(TOLD,), begins=True),
    Recall(epoch=7, speaker=PEER, copy="c"),
    Vacant(epoch=7),
    ListLocks(),
    ListNode(),
]
ANSWERS = [
    Given.of(Grant(LOCK, 1.0, 30.0, True), 3, 100.0),
    Holdings(peer=PEER, held=(TOLD,), granted=(TOLD, TOLD)),
    Listed(locks=(TOLD,)),
    Done(),
    Refusal(error="NotRebuilt"),
]
ERRORS: list[LockError] = [
    LockHeld(LOCK, ahead=2),
    NotHeld("x", "i"),
    AlreadyReleased("x", "r"),
    TakenOver("x", "r"),
    NotTheSpeaker("n2"),
    NotTheSpeaker(),
    NotRebuilt(),
    Outdated(9),
    BadLockRequest("a bad one"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_survives_its_way(message: Message) -> None:
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_an_answer_survives_its_way(answer: Answer) -> None:
    assert msgspec.json.decode(msgspec.json.encode(answer), type=Answer) == answer


def test_a_lease_counts_on_the_clock_of_whoever_is_told() -> None:
    assert TOLD.left_s == 30.0
    assert TOLD.here(5_000.0).until == 5_030.0
    assert TOLD.here(5_000.0).fence == LOCK.fence
    lapsed = Told.of(LOCK, 200.0)
    assert lapsed.here(7.0).has_lapsed(7.0)


def test_a_grant_is_told_with_how_long_it_lasts_from_when_it_was_asked_for() -> None:
    given = Given.of(Grant(LOCK, 4.0, 34.0), 3, 100.0)
    grant = given.grant(1_000.0)

    assert (grant.waited_s, grant.lasts_s, grant.lock.until) == (4.0, 34.0, 1_034.0)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_as_it_was(error: LockError) -> None:
    sent = msgspec.json.decode(msgspec.json.encode(Refusal.of(error, 100.0)), type=Refusal)
    raised = sent.raised(100.0)

    assert type(raised) is type(error)
    assert str(raised) == str(error)
    assert vars(raised) == vars(error)


def test_errors_of_no_kind_of_their_own_come_back_as_what_is_to_be_done() -> None:
    assert isinstance(Refusal.of(NoName(), 0).raised(0), BadLockRequest)
    for error in (NodeLeaving(), GrantLate(), NoSpeaker(), Unsettled()):
        raised = Refusal.of(error, 0).raised(0)
        assert isinstance(raised, LockUnavailable)
        assert str(raised) == str(error)


@pytest.mark.parametrize("error", [Unreachable("http://n2", "refused"), Unreachable(), Outdated(3), NodeLeaving()])
def test_errors_of_nodes_say_what_to_do_and_pickle(error: LockError) -> None:
    again = pickle.loads(pickle.dumps(error))

    assert (str(again), vars(again)) == (str(error), vars(error))
    assert "ask" in str(error).lower() or "not speak" in str(error)
