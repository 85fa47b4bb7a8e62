"""How a client asks: again, elsewhere, in slices, and what it makes of silence. No socket, and a clock that the test moves."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from slotkeeper.database import drive
from slotkeeper.locktable import (
    AlreadyReleased,
    BadLockRequest,
    Lock,
    LockError,
    LockHeld,
    LockUnavailable,
    LockUnknown,
    NoName,
    NotHeld,
    NotRebuilt,
    NotTheSpeaker,
    Request,
    TakenOver,
)
from slotkeeper.locktable.remote import BadLockAnswer, LockAccessDenied, LockClientClosed, ServiceUnreachable
from slotkeeper.locktable.remote.core import AGAIN_S, ANSWER_S, GIVE_UP_S, SLICE_S, Core
from slotkeeper.web.caller import Answer, Params
from slotkeeper.web.failures import AnswerLost, CallerClosed, NotSent

Step = Answer | Exception | Callable[[], Answer]
NOW = datetime.now(UTC)


def document(**more: Any) -> dict[str, Any]:
    when = {"acquired_at": NOW.isoformat(), "expires_at": NOW.isoformat()}
    return {"name": "a", "id": "1", "node": "n1", "holder": "eve", "fence": 7, "expires_in_ms": 30_000, **when, **more}


def granted(**more: Any) -> Answer:
    return Answer(200, {}, json.dumps(document(lasts_ms=30_000, waited_ms=0, **more)).encode())


def problem(status: int, name: str, detail: str = "why", **more: Any) -> Answer:
    told = {"type": f"urn:slotkeeper:problem:{name}", "title": "t", "status": status, "detail": detail, **more}
    return Answer(status, {"content-type": "application/problem+json"}, json.dumps(told).encode())


HELD = problem(409, "lock-held", lock=document(), ahead=2)
WAITING = Answer(202, {}, b'{"waiting": true, "kept_ms": 5000}')
BUSY = problem(503, "not-rebuilt")
GONE = Answer(204)
NOT_HELD = problem(404, "not-held")


@dataclass
class World:
    """A clock, and what was asked when: `method`, the body or the parameters, and the node."""

    now: float = 100.0
    asked: list[tuple[float, str, dict[str, Any], str]] = field(default_factory=list)

    @property
    def methods(self) -> list[str]:
        return [method for _, method, _, _ in self.asked]

    @property
    def nodes(self) -> str:
        return "".join(node for _, _, _, node in self.asked)

    @property
    def times(self) -> list[float]:
        return [round(at - 100.0, 3) for at, _, _, _ in self.asked]


class ScriptedCaller:
    """A node that follows a script; the last step stays. An answer takes `takes_s`, a lost one as long as is waited."""

    def __init__(self, world: World, name: str, *steps: Step, takes_s: float = 0.0) -> None:
        self._world, self._name, self._steps, self._takes_s = world, name, list(steps), takes_s

    def now(self) -> float:
        return self._world.now

    async def sleep(self, seconds: float) -> None:
        self._world.now += seconds

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        params: Params = (),
        headers: Any = None,
        timeout_s: float,
    ) -> Answer:
        self._world.asked.append((self.now(), method, json.loads(body) if body else dict(params), self._name))
        step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        if isinstance(step, AnswerLost):
            self._world.now += timeout_s
        elif not isinstance(step, Exception):
            self._world.now += self._takes_s
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, Answer) else step()

    async def close(self) -> None:
        pass

    @property
    def is_closed(self) -> bool:
        return False


@pytest.fixture
def world() -> World:
    return World()


def core(world: World, *nodes: tuple[Step, ...], takes_s: float = 0.0) -> Core:
    callers = [ScriptedCaller(world, "xyz"[at], *steps, takes_s=takes_s) for at, steps in enumerate(nodes)]
    return Core(callers, timeout_s=20.0, finish=drive)


def acquired(core: Core, wait_s: float = 0.0, lease_s: float = 30.0) -> Lock:
    return drive(core.acquire(Request("a", "", "eve", lease_s, wait_s, "r1")))


# --- what is sent, and what is made of the answer -------------------------------------------------------------------------


def test_a_grant_is_trusted_from_before_it_was_asked_for(world: World) -> None:
    lock = acquired(core(world, (granted(),), takes_s=3.0))

    assert (lock.name, lock.id, lock.fence, lock.holder) == ("a", "1", 7, "eve")
    assert lock.until == 100.0 + 30.0
    ((_, method, body, _),) = world.asked
    assert (method, body) == (
        "POST",
        {"name": "a", "holder": "eve", "request": "r1", "lease_ms": 30_000, "wait_ms": 0},
    )


ERRORS: list[tuple[Answer, type[LockError], str]] = [
    (problem(409, "already-released"), AlreadyReleased, "r1"),
    (problem(409, "taken-over"), TakenOver, "r1"),
    (problem(503, "not-the-speaker", "n2 speaks for the cluster: ask again"), NotTheSpeaker, "n2 speaks"),
    (BUSY, NotRebuilt, "not rebuilt"),
    (problem(503, "limit-reached", "There are 7"), LockUnavailable, "There are 7"),
    (problem(429, "slow-down", "later"), LockUnavailable, "later"),
    (problem(400, "invalid-body", "'x' is no duration"), BadLockRequest, "'x' is no duration"),
    (problem(400, "invalid-body", "a lock needs a name"), NoName, "a lock needs a name"),
    (problem(413, "body-too-large", "too much"), BadLockRequest, "too much"),
    (problem(401, "token", "which token?"), LockAccessDenied, "which token"),
    (problem(403, "forbidden", "not that name"), LockAccessDenied, "not that name"),
    (problem(404, "not-found", "nothing here"), BadLockAnswer, "404: nothing here"),
    (problem(500, "unexpected", "oh"), BadLockAnswer, "500: oh"),
    (Answer(200, {"content-type": "text/html"}, b"<html>"), BadLockAnswer, "status 200, text/html"),
    (Answer(200, {}, b"{}"), BadLockAnswer, "no content type"),
    (Answer(301, {}, b""), BadLockAnswer, "status 301"),
    (Answer(503, {"content-type": "text/html"}, b"<html>"), LockUnavailable, "503"),
]


@pytest.mark.parametrize(("answer", "error", "told"), ERRORS, ids=lambda value: getattr(value, "__name__", None))
def test_each_refusal_is_an_error_of_its_own(world: World, answer: Answer, error: type[LockError], told: str) -> None:
    with pytest.raises(LockError) as caught:
        acquired(core(world, (answer,)))

    assert isinstance(caught.value, error)
    assert told in str(caught.value)


def test_leases_and_waits_without_end_are_sent_as_long_ones(world: World) -> None:
    acquired(core(world, (granted(),)), wait_s=float("inf"), lease_s=float("inf"))

    assert world.asked[0][2]["wait_ms"] == world.asked[0][2]["lease_ms"] == 10**12


@pytest.mark.parametrize("times", [{"wait_s": float("nan")}, {"lease_s": float("nan")}])
def test_what_is_no_number_is_not_sent(world: World, times: dict[str, float]) -> None:
    with pytest.raises(BadLockRequest):
        acquired(core(world, (granted(),)), **times)

    assert world.asked == []


def test_a_held_lock_comes_with_its_holder(world: World) -> None:
    with pytest.raises(LockHeld) as caught:
        acquired(core(world, (HELD,)))

    assert (caught.value.lock.holder, caught.value.lock.until, caught.value.ahead) == ("eve", 130.0, 2)


# --- again ----------------------------------------------------------------------------------------------------------------


def test_without_a_wait_the_first_503_is_the_answer(world: World) -> None:
    with pytest.raises(NotRebuilt):
        acquired(core(world, (BUSY,)))

    assert world.times == [0.0]


def test_503_is_asked_again_every_half_second_while_more_than_that_is_left(world: World) -> None:
    with pytest.raises(NotRebuilt):
        acquired(core(world, (BUSY,)), wait_s=2.2)

    assert world.times == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert AGAIN_S == 0.5
    assert [body["wait_ms"] for _, _, body, _ in world.asked] == [2200, 1700, 1200, 700, 200]
    assert {body["request"] for _, _, body, _ in world.asked} == {"r1"}


def test_a_node_that_wakes_up_grants(world: World) -> None:
    lock = acquired(core(world, (BUSY, NotSent(), granted())), wait_s=5)

    assert lock.until == 101.0 + 30


def test_a_long_wait_is_asked_in_slices(world: World) -> None:
    def waits() -> Answer:
        world.now += SLICE_S
        return WAITING

    acquired(core(world, (waits, waits, granted())), wait_s=25)

    assert world.times == [0.0, 10.0, 20.0]
    assert [(body["wait_ms"], body.get("slice_ms")) for _, _, body, _ in world.asked] == [
        (25_000, 10_000),
        (15_000, 10_000),
        (5_000, None),
    ]


def test_a_service_that_waits_less_than_it_is_asked_to_is_asked_again(world: World) -> None:
    def early() -> Answer:
        world.now += 1.0
        return HELD

    with pytest.raises(LockHeld):
        acquired(core(world, (early,)), wait_s=3)

    assert len(world.asked) == 3


# --- elsewhere ------------------------------------------------------------------------------------------------------------


def test_another_node_is_asked_at_once_where_one_cannot_be_reached(world: World) -> None:
    asking = core(world, (NotSent(),), (granted(),))

    acquired(asking)
    acquired(asking)

    assert world.nodes == "xyy"  # and it stays there
    assert world.times == [0.0, 0.0, 0.0]


def test_where_no_node_can_be_reached_nothing_has_happened(world: World) -> None:
    with pytest.raises(ServiceUnreachable):
        acquired(core(world, (NotSent(),), (NotSent(),)))

    assert world.nodes == "xy"


def test_a_busy_node_is_left_for_the_next_try(world: World) -> None:
    acquired(core(world, (BUSY,), (granted(),)), wait_s=5)

    assert (world.nodes, world.times) == ("xy", [0.0, 0.5])


def test_a_closed_client_says_so(world: World) -> None:
    with pytest.raises(LockClientClosed):
        acquired(core(world, (CallerClosed(),)))


# --- lost answers ---------------------------------------------------------------------------------------------------------


def test_a_lost_answer_is_asked_for_again_under_the_same_id_elsewhere(world: World) -> None:
    lock = acquired(core(world, (AnswerLost(),), (granted(again=True),)))

    assert world.nodes == "xy"
    assert [body["request"] for _, _, body, _ in world.asked] == ["r1", "r1"]
    assert lock.until == pytest.approx(100.0 + ANSWER_S + 0.05 + 30)  # from before the second question


@pytest.mark.parametrize(
    "lost",
    [
        AnswerLost(),
        Answer(502, {"content-type": "text/html"}, b"<html>"),
        Answer(504, {}, b""),
        problem(503, "node-unreachable"),
    ],
    ids=["hung up", "a proxy's 502", "a proxy's 504", "a node that handed it over"],
)
def test_whoever_says_that_there_was_no_answer_the_request_is_asked_again(world: World, lost: Step) -> None:
    assert acquired(core(world, (lost, granted()))).id == "1"


def test_a_request_that_nobody_answers_is_taken_back(world: World) -> None:
    with pytest.raises(ServiceUnreachable):
        acquired(core(world, (AnswerLost(), AnswerLost(), AnswerLost(), AnswerLost(), NOT_HELD)))

    assert world.methods == ["POST", "POST", "POST", "POST", "DELETE"]
    assert world.asked[-1][2] == {"name": "a", "request": "r1"}
    assert world.times[-1] <= 20 + ANSWER_S


def test_a_request_that_can_not_be_taken_back_is_unknown(world: World) -> None:
    with pytest.raises(LockUnknown) as caught:
        acquired(core(world, (AnswerLost(),)), wait_s=3)

    assert (caught.value.name, caught.value.request) == ("a", "r1")
    assert world.methods.count("DELETE") >= 1
    assert world.now - 100 <= 3 + 20 + 3 + ANSWER_S + GIVE_UP_S


def test_what_waited_on_somewhere_is_taken_back_when_nobody_grants(world: World) -> None:
    """The place in line may have come to the lock meanwhile."""

    def waits() -> Answer:
        world.now += SLICE_S
        return WAITING

    with pytest.raises(NotRebuilt):
        acquired(core(world, (waits, *[BUSY] * 44, GONE)), wait_s=11)

    assert world.methods[-1] == "DELETE"


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), SystemExit(143)])
def test_an_interrupted_request_is_taken_back(world: World, interruption: BaseException) -> None:
    def interrupted() -> Answer:
        raise interruption

    with pytest.raises(type(interruption)):
        acquired(core(world, (interrupted, GONE)), wait_s=5)

    assert world.methods == ["POST", "DELETE"]


# --- renewals and releases ------------------------------------------------------------------------------------------------


def lock_of(world: World) -> Lock:
    return Lock("a", "1", "n1", "eve", NOW, NOW, world.now + 30, 7, "r1")


def call(core: Core, work: Callable[[Core], Coroutine[Any, Any, Any]]) -> Any:
    return drive(work(core))


def test_a_renewal_is_repeated_and_trusted_from_before_the_last_try(world: World) -> None:
    lock = call(core(world, (AnswerLost(), BUSY, granted())), lambda core: core.renew(lock_of(world), 60.0))

    assert world.methods == ["PUT"] * 3
    assert world.asked[0][2] == {"name": "a", "id": "1", "lease_ms": 60_000}
    assert lock.until == 100 + world.times[-1] + 30


def test_a_renewal_of_what_is_not_held(world: World) -> None:
    with pytest.raises(NotHeld) as caught:
        call(core(world, (NOT_HELD,)), lambda core: core.renew(lock_of(world), 60.0))

    assert (caught.value.name, caught.value.id) == ("a", "1")


@pytest.mark.parametrize(
    ("step", "error"), [(AnswerLost(), LockUnknown), (BUSY, NotRebuilt), (NotSent(), ServiceUnreachable)]
)
def test_a_renewal_gives_up_in_time(world: World, step: Step, error: type[LockError]) -> None:
    with pytest.raises(error):
        call(core(world, (step,)), lambda core: core.renew(lock_of(world), 3.0, 2.0))

    assert world.now - 100 <= 2.5


@pytest.mark.parametrize(
    ("steps", "released"),
    [
        ((GONE,), True),
        ((NOT_HELD,), False),
        ((BUSY, GONE), True),
        ((NotSent(), NOT_HELD), False),
        ((AnswerLost(), NOT_HELD), True),  # the first one has done it
    ],
)
def test_a_release_is_true_where_it_was_ours(world: World, steps: tuple[Step, ...], released: bool) -> None:
    assert call(core(world, steps), lambda core: core.release("a", "1")) is released
    assert set(world.methods) == {"DELETE"}
    assert world.asked[0][2] == {"name": "a", "id": "1"}


@pytest.mark.parametrize(
    ("step", "error"), [(AnswerLost(), LockUnknown), (BUSY, NotRebuilt), (NotSent(), ServiceUnreachable)]
)
def test_a_release_that_nobody_answers(world: World, step: Step, error: type[LockError]) -> None:
    with pytest.raises(error):
        call(core(world, (step,)), lambda core: core.release("a", "1"))


@pytest.mark.parametrize(("left_s", "bound_s"), [(30.0, 20.0), (6.0, 6.0), (0.0, GIVE_UP_S)])
def test_a_release_is_not_asked_for_long_after_the_lease_has_ended(world: World, left_s: float, bound_s: float) -> None:
    with pytest.raises(NotRebuilt):
        call(core(world, (BUSY,)), lambda core: core.release("a", "1", until=world.now + left_s))

    assert bound_s - 1 <= world.now - 100 <= bound_s


def test_a_release_is_refused_for_a_reason(world: World) -> None:
    with pytest.raises(LockAccessDenied):
        call(core(world, (problem(403, "forbidden"),)), lambda core: core.release("a", "1"))


# --- looking --------------------------------------------------------------------------------------------------------------


def test_a_list_counts_on_our_clock(world: World) -> None:
    listed = Answer(200, {}, json.dumps({"kind": "ClusterLockList", "items": [document()]}).encode())

    (lock,) = call(core(world, (AnswerLost(), listed)), lambda core: core.locks())

    assert lock.until == world.now + 30


@pytest.mark.parametrize(
    ("step", "error"),
    [(AnswerLost(), ServiceUnreachable), (BUSY, NotRebuilt), (problem(401, "token"), LockAccessDenied)],
)
def test_who_looks_and_is_told_nothing(world: World, step: Step, error: type[LockError]) -> None:
    with pytest.raises(error):
        call(core(world, (step,)), lambda core: core.status())
