"""A grant or a release whose outcome nobody tells: the identical batch goes out again until it is certain what became of it.

The real driver stands before a scripted server with a real partition behind it; pauses move the port's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import cqlserver
import pytest
from contract.patience import Loop
from contract.planning import granted as granting
from cqlserver import (
    CutAfter,
    ErrorFrame,
    Request,
    Silence,
    cas_write_unknown,
    overloaded,
    read_timeout,
    server_error,
    unavailable,
    write_timeout,
)
from servedstore import Behind, Landing, Told, batch_of, driven, served

from slotkeeper.database import Applied, Batch, Refused, Store, Unavailable
from slotkeeper.semaphore import HoldUnknown
from slotkeeper.semaphore.operations import Answer, Full, Granted, NotHeld, Released
from slotkeeper.semaphore.rows import TOKENS, owner_key, token_key

HASTY_S = 0.3
ANSWERED: dict[str, ErrorFrame] = {
    "write timeout CAS": write_timeout("CAS"),
    "CAS write unknown": cas_write_unknown(),
    "server error": server_error(),
    "overloaded": overloaded(),
}
UNTOLD: dict[str, Silence | CutAfter] = {"silence": Silence(), "cut": CutAfter()}
LANDINGS = pytest.mark.parametrize("landing", Landing, ids=lambda landing: landing.value)


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Behind, Store]]:
    """A server and a store for the tests that cut no connection."""
    with served() as behind, driven(behind) as store:
        yield behind, store


@pytest.fixture
def loop(shared: tuple[Behind, Store]) -> Iterator[Loop]:
    """One bucket with one token."""
    yield from checked(Loop(*shared))


@pytest.fixture
def wide(shared: tuple[Behind, Store]) -> Iterator[Loop]:
    """One bucket with two tokens."""
    yield from checked(Loop(*shared, size=2))


@pytest.fixture
def hasty() -> Iterator[Loop]:
    """A bucket behind a server of its own, for silence and cuts: the driver waits only briefly."""
    with served() as behind, driven(behind, request_timeout_s=HASTY_S) as store:
        yield from checked(Loop(behind, store))


def checked(loop: Loop) -> Iterator[Loop]:
    """Lend a loop to a test, and see that the server has said all it was to say."""
    server = loop.behind.server
    server.on_lwt, server.on_read = loop.behind.commit, loop.behind.read
    yield loop
    assert not server.script_left


def fault(loop: Loop, told: Told, landing: Landing) -> None:
    """Let the next attempt take effect at once, late or never, and tell its sender something else."""
    loop.behind.server.script(loop.behind.fault(told, landing))


def of(answer: Answer, kind: type) -> tuple[object, ...]:
    """Return what an answer says of a token: which one, and whether the owner had it before."""
    assert isinstance(answer, kind), answer
    return (getattr(answer, "token", None), getattr(answer, "again", None))


def sent_identically(loop: Loop, times: int) -> None:
    """The same statements with the same values and levels: guards, versions and marks too."""
    forms = [(request.statements, request.consistency, request.serial_consistency) for request in loop.sent]
    assert len(forms) == times
    assert all(form == forms[0] for form in forms)


def grant_is_settled(loop: Loop, told: Told, landing: Landing) -> None:
    """Whatever became of the first attempt: a grant, the caller's own, once."""
    fault(loop, told, landing)
    assert of(loop.acquire("eve"), Granted) == (1, False)
    sent_identically(loop, 2)
    loop.behind.land_late()
    assert loop.holders == {"eve": 1}
    assert of(loop.release("eve"), Released) == (1, None)
    assert loop.holders == {}


def release_is_settled(loop: Loop, told: Told, landing: Landing) -> None:
    """Whatever became of the first attempt: a release, and the token is the next one's."""
    loop.acquire("eve")
    already = len(loop.sent)
    fault(loop, told, landing)
    assert isinstance(loop.release("eve"), Released)
    first, *others = loop.sent[already:]
    assert [other.statements for other in others] == [first.statements]
    loop.behind.land_late()
    assert loop.holders == {}
    assert of(loop.acquire("fay"), Granted) == (1, False)
    loop.behind.land_late()
    assert loop.holders == {"fay": 1}


# Settled


@LANDINGS
@pytest.mark.parametrize("told", ANSWERED)
@pytest.mark.parametrize("settled", [grant_is_settled, release_is_settled])
def test_answered_error_is_settled_by_the_identical_batch(
    loop: Loop, told: str, landing: Landing, settled: Callable[[Loop, Told, Landing], None]
) -> None:
    settled(loop, ANSWERED[told], landing)
    assert all(pause < 1 for pause in loop.port.slept)


@LANDINGS
@pytest.mark.parametrize("told", UNTOLD)
@pytest.mark.parametrize("settled", [grant_is_settled, release_is_settled])
def test_silence_is_settled_by_the_identical_batch_after_a_second_or_more(
    hasty: Loop, told: str, landing: Landing, settled: Callable[[Loop, Told, Landing], None]
) -> None:
    """A silent coordinator may still be at work: who comes back at once only contends with it."""
    settled(hasty, UNTOLD[told], landing)
    assert max(later - earlier for earlier, later in pairwise(hasty.port.left_at)) >= 1
    assert max(hasty.port.slept) > 0.9, "a second from the silence on, less what has passed of it"


def test_one_unknown_outcome_after_the_other_is_settled_all_the_same(loop: Loop) -> None:
    for told in ANSWERED.values():
        fault(loop, told, Landing.NEVER)
    assert of(loop.acquire("eve"), Granted) == (1, False)
    sent_identically(loop, len(ANSWERED) + 1)
    assert loop.holders == {"eve": 1}


@pytest.mark.parametrize("landing", [Landing.APPLIED, Landing.NEVER])
def test_repetition_that_comes_to_nothing_leaves_the_first_attempt_open(loop: Loop, landing: Landing) -> None:
    """Unavailable at the serial level: this attempt has changed nothing, and says nothing of the one before."""
    fault(loop, write_timeout("CAS"), landing)
    loop.behind.server.script(unavailable(), read_timeout(), unavailable())
    assert of(loop.acquire("eve"), Granted) == (1, False)
    sent_identically(loop, 5)
    assert loop.holders == {"eve": 1}


@pytest.mark.parametrize("landing", [Landing.BEFORE_NEXT, Landing.AFTER_NEXT])
def test_late_attempt_loses_against_the_one_who_came_between(loop: Loop, landing: Landing) -> None:
    """Somebody else takes the token while nobody knows. The late attempt must not give it to two."""

    def taken_meanwhile(request: Request) -> cqlserver.Answer:
        other = Batch(TOKENS, loop.ref.partition, tuple(granting(1, "fay", seen=None)))
        assert loop.behind.store.commit(other) == Applied()
        return loop.behind.fault(write_timeout("CAS"), landing)(request)

    loop.behind.server.script(taken_meanwhile)
    assert isinstance(loop.acquire("eve"), Full)
    loop.behind.land_late()
    assert loop.holders == {"fay": 1}


# Settled by what the rows show


def test_attempt_that_waits_for_its_owners_other_slot_is_made_impossible(wide: Loop) -> None:
    """Design, section 8: refused only as the owner holds a slot already, which somebody acquired for it elsewhere.

    The first attempt could still land once that slot is released, and would leak a token that nobody knows of. So the
    version of the token that it names is moved.
    """
    late: list[Request] = []

    def held_elsewhere(request: Request) -> cqlserver.Answer:
        late.append(request)
        other = Batch(TOKENS, wide.ref.partition, tuple(granting(2, "eve", seen=None)))
        assert wide.behind.store.commit(other) == Applied()
        return write_timeout("CAS")

    wide.behind.server.script(held_elsewhere)
    assert of(wide.acquire("eve"), Granted) == (2, True)
    first, again, killing, keeping = wide.sent
    assert again.statements == first.statements
    (moved,) = batch_of(killing).writes
    assert moved.key == token_key(1)
    assert set(moved.values) == {"updated_time"}, "same holder, another version"
    assert batch_of(keeping).writes[0].key == token_key(2)

    attempt = batch_of(late[0])
    assert isinstance(wide.behind.store.commit(attempt), Refused)
    assert isinstance(wide.release("eve"), Released)
    assert isinstance(wide.behind.store.commit(attempt), Refused), "the late attempt leaks a token"
    assert wide.holders == {}
    assert [wide.acquire(owner) for owner in ("fay", "gil")] != [Full(2)] * 2
    assert set(wide.holders) == {"fay", "gil"}


@pytest.mark.parametrize("landing", [Landing.APPLIED, Landing.NEVER])
def test_making_it_impossible_may_itself_be_unknown(wide: Loop, landing: Landing) -> None:
    def held_elsewhere(_: Request) -> cqlserver.Answer:
        wide.behind.store.commit(Batch(TOKENS, wide.ref.partition, tuple(granting(2, "eve", seen=None))))
        return write_timeout("CAS")

    wide.behind.server.script(held_elsewhere, wide.behind.commit, wide.behind.fault(write_timeout("CAS"), landing))
    assert of(wide.acquire("eve"), Granted) == (2, True)
    assert wide.holders == {"eve": 2}
    *killing, _ = wide.sent[2:]
    assert len({request.statements for request in killing}) == 1


# Not settled in time


@LANDINGS
def test_grant_open_at_the_deadline_is_unknown_and_the_owners_next_acquire_adopts_it(
    loop: Loop, landing: Landing
) -> None:
    fault(loop, write_timeout("CAS"), landing)
    loop.behind.server.on_lwt = lambda _: write_timeout("CAS")
    with pytest.raises(HoldUnknown) as caught:
        loop.acquire("eve")
    assert (caught.value.semaphore, caught.value.owner_id, caught.value.wanted) == (
        loop.ref.semaphore,
        "eve",
        "acquire",
    )
    assert len(loop.sent) > 5
    sent_identically(loop, len(loop.sent))

    loop.behind.server.on_lwt = loop.behind.commit
    assert of(loop.acquire("eve"), Granted)[0] == 1
    loop.behind.land_late()
    assert loop.holders == {"eve": 1}
    assert of(loop.release("eve"), Released) == (1, None)
    loop.behind.land_late()
    assert loop.holders == {}


@LANDINGS
def test_grant_open_at_the_deadline_is_given_back_by_the_owners_release(loop: Loop, landing: Landing) -> None:
    fault(loop, write_timeout("CAS"), landing)
    loop.behind.server.on_lwt = lambda _: write_timeout("CAS")
    with pytest.raises(HoldUnknown):
        loop.acquire("eve", timeout_s=3)
    loop.behind.server.on_lwt = loop.behind.commit
    loop.release("eve")
    loop.behind.land_late()
    assert loop.holders == {}


def test_grant_open_at_the_deadline_is_adopted_through_another_process(loop: Loop) -> None:
    fault(loop, write_timeout("CAS"), Landing.APPLIED)
    loop.behind.server.on_lwt = lambda _: write_timeout("CAS")
    with pytest.raises(HoldUnknown):
        loop.acquire("eve", timeout_s=3)
    loop.behind.server.on_lwt = loop.behind.commit
    assert of(loop.acquire("eve", bucket=loop.another()), Granted) == (1, True)


@LANDINGS
def test_release_open_at_the_deadline_is_unknown_and_the_next_release_settles_it(loop: Loop, landing: Landing) -> None:
    loop.acquire("eve")
    fault(loop, write_timeout("CAS"), landing)
    loop.behind.server.on_lwt = lambda _: write_timeout("CAS")
    with pytest.raises(HoldUnknown) as caught:
        loop.release("eve")
    assert caught.value.wanted == "release"
    loop.behind.server.on_lwt = loop.behind.commit
    assert isinstance(loop.release("eve"), Released | NotHeld)
    loop.behind.land_late()
    assert loop.holders == {}
    assert of(loop.acquire("fay"), Granted) == (1, False)
    loop.behind.land_late()
    assert loop.holders == {"fay": 1}


def test_reading_that_fails_while_an_attempt_may_have_applied_does_not_say_that_nothing_happened(loop: Loop) -> None:
    loop.acquire("eve")
    loop.release("eve")
    fault(loop, write_timeout("CAS"), Landing.APPLIED)
    loop.behind.server.on_read = lambda _: server_error()
    with pytest.raises(HoldUnknown):
        loop.acquire("eve")
    loop.behind.server.on_read = loop.behind.read
    assert of(loop.acquire("eve"), Granted)[0] == 1


# Nothing happened


@pytest.mark.parametrize("told", [unavailable(), read_timeout()], ids=["unavailable", "read timeout"])
def test_attempt_that_certainly_came_to_nothing_is_unavailable_and_not_unknown(loop: Loop, told: ErrorFrame) -> None:
    loop.behind.server.script(told)
    with pytest.raises(Unavailable):
        loop.acquire("eve")
    assert len(loop.sent) == 1
    assert loop.holders == {}
    assert of(loop.acquire("eve"), Granted) == (1, False)


def test_failed_reading_before_the_first_attempt_is_unavailable(loop: Loop) -> None:
    loop.behind.server.on_read = lambda _: server_error()
    with pytest.raises(Unavailable):
        loop.acquire("eve")
    assert not loop.sent


def test_only_owner_row_in_the_way_is_read_from_the_refusal(loop: Loop) -> None:
    """What the server shows of a refused batch leads to the owner's row: nothing else was broken."""
    loop.acquire("eve")
    again = loop.another()
    assert of(loop.acquire("eve", bucket=again), Granted) == (1, True)
    first, _ = loop.sent
    outcome = loop.behind.store.commit(batch_of(first))
    assert isinstance(outcome, Refused)
    assert owner_key("eve") in outcome.rows
