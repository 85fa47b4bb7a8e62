"""What a semaphore is: its row is written once, by whoever comes first, also where the answer is lost."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4, uuid5

import cqlserver
import pytest
from contract.patience import PatientPort
from cqlserver import Request, cas_write_unknown, overloaded, server_error, unavailable, write_timeout
from hypothesis import given
from hypothesis import strategies as st
from servedstore import Behind, Landing, Told, driven, served

from slotkeeper.database import Applied, Batch, Slice, Store, Unavailable, Value, drive, insert
from slotkeeper.owner import bucket_of
from slotkeeper.semaphore import ChangeUnknown, NoSuchSemaphore, SemaphoreExists, deletion, domain_id
from slotkeeper.semaphore.metadata import DOMAINS, Description, create, described, page, read
from slotkeeper.semaphore.rows import METADATA, TOKENS

BOUND_S = 20.0
ANSWERED = {
    "write timeout CAS": write_timeout("CAS"),
    "CAS write unknown": cas_write_unknown(),
    "server error": server_error(),
    "overloaded": overloaded(),
}
LANDINGS = pytest.mark.parametrize("landing", Landing, ids=lambda landing: landing.value)


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Behind, Store]]:
    """A scripted server with a real partition behind it, and the driver in front."""
    with served() as behind, driven(behind) as store:
        yield behind, store


class Bench:
    """A domain of its own, on a port whose pauses take no time."""

    def __init__(self, behind: Behind, store: Store) -> None:
        self.behind, self.port, self.domain = behind, PatientPort(store), uuid4()
        self._before = len(behind.server.lwts)

    def create(self, size: int = 4, bucket_size: int | None = 2) -> tuple[Description, bool]:
        """Create the semaphore of the test."""
        deadline = self.port.now() + BOUND_S
        return drive(create(self.port, self.domain, "sem", size, bucket_size, after_ms=0, deadline=deadline))

    def remove(self, found: Description) -> bool:
        """Delete it."""
        return drive(deletion.remove(self.port, found, force=False, deadline=self.port.now() + BOUND_S))

    def read(self) -> Description:
        """Read its row."""
        return drive(read(self.port, self.domain, "sem"))

    def fault(self, told: Told, landing: Landing) -> None:
        """Let the next attempt end so."""
        self.behind.server.script(self.behind.fault(told, landing))

    def never_answer(self) -> None:
        """Let every attempt come to nothing, which nobody tells."""
        self.behind.server.on_lwt = lambda _: write_timeout("CAS")

    def answer_again(self) -> None:
        """Let attempts take effect and be told so."""
        self.behind.server.on_lwt = self.behind.commit

    def put(self, **values: int) -> None:
        """Write the row of somebody else's semaphore of the same name."""
        batch = Batch(METADATA, (self.domain,), (insert(("sem",), values, absent=True),))
        assert self.behind.store.commit(batch) == Applied()

    @property
    def sent(self) -> list[Request]:
        """The transactions that reached the server."""
        return self.behind.server.lwts[self._before :]


@pytest.fixture
def bench(shared: tuple[Behind, Store]) -> Iterator[Bench]:
    """A domain of its own."""
    bench = Bench(*shared)
    bench.answer_again()
    yield bench
    assert not bench.behind.server.script_left


# Creating, when nobody tells


@LANDINGS
@pytest.mark.parametrize("told", ANSWERED)
def test_create_is_settled_by_the_identical_batch(bench: Bench, told: str, landing: Landing) -> None:
    bench.fault(ANSWERED[told], landing)
    made, ours = bench.create()
    assert ours, "an earlier attempt of the same call is no other creator"
    first, again = bench.sent
    assert first.statements == again.statements
    bench.behind.land_late()
    assert bench.read() == made


def test_create_that_met_another_creator_after_a_lost_answer_is_a_conflict(bench: Bench) -> None:
    def taken_meanwhile(_: Request) -> cqlserver.Answer:
        bench.put(size=9, bucket_size=3, created_time=5)
        return write_timeout("CAS")

    bench.behind.server.script(taken_meanwhile)
    with pytest.raises(SemaphoreExists) as caught:
        bench.create()
    assert (caught.value.size, caught.value.bucket_size) == (9, 3)


def test_create_that_met_an_equal_one_after_a_lost_answer_finds_that(bench: Bench) -> None:
    def taken_meanwhile(_: Request) -> cqlserver.Answer:
        bench.put(size=4, bucket_size=2, created_time=5)
        return write_timeout("CAS")

    bench.behind.server.script(taken_meanwhile)
    found, ours = bench.create()
    assert not ours
    assert found.created_ms == 5


@LANDINGS
def test_create_open_at_the_deadline_is_unknown_and_the_next_one_settles_it(bench: Bench, landing: Landing) -> None:
    bench.fault(write_timeout("CAS"), landing)
    bench.never_answer()
    with pytest.raises(ChangeUnknown):
        bench.create()
    assert len({request.statements for request in bench.sent}) == 1
    bench.answer_again()
    made, _ = bench.create()
    bench.behind.land_late()
    assert bench.read() == made


def test_create_that_certainly_came_to_nothing_is_unavailable(bench: Bench) -> None:
    bench.behind.server.script(unavailable())
    with pytest.raises(Unavailable):
        bench.create()
    with pytest.raises(NoSuchSemaphore):
        bench.read()


# Deleting, when nobody tells


@LANDINGS
@pytest.mark.parametrize("untold", range(3))
def test_deletion_is_settled_step_by_step(bench: Bench, landing: Landing, untold: int) -> None:
    """Two buckets to close, then the metadata row: each batch can be the one whose answer is lost."""
    made, _ = bench.create()
    before = [bench.behind.commit] * untold
    bench.behind.server.script(*before, bench.behind.fault(write_timeout("CAS"), landing))
    bench.remove(made)
    bench.behind.land_late()
    with pytest.raises(NoSuchSemaphore):
        bench.read()
    late = bench.behind.store.read(TOKENS, (bench.domain, "sem", 0), (Slice((1,)),), serial=True)
    assert late == []


def test_deletion_open_at_the_deadline_is_unknown_and_the_next_one_goes_on(bench: Bench) -> None:
    made, _ = bench.create()
    bench.fault(write_timeout("CAS"), Landing.APPLIED)
    bench.never_answer()
    with pytest.raises(ChangeUnknown):
        bench.remove(made)
    bench.answer_again()
    assert bench.read() == made, "the metadata row goes last"
    assert bench.remove(made) is True
    with pytest.raises(NoSuchSemaphore):
        bench.read()


# Reading


def test_pages_follow_each_other_in_the_order_of_names(bench: Bench) -> None:
    names = [f"s{number}" for number in range(10)]
    for name in names:
        drive(create(bench.port, bench.domain, name, 1, None, after_ms=0, deadline=bench.port.now() + BOUND_S))
    pages, after = [], None
    while found := drive(page(bench.port, bench.domain, after=after, limit=3)):
        pages.append([each.name for each in found])
        after = found[-1].name
    assert pages == [names[:3], names[3:6], names[6:9], names[9:]]
    assert all(request.limit == 3 for request in (r.statement for r in bench.behind.server.reads) if request.limit)


@pytest.mark.parametrize("missing", ["size", "bucket_size"])
def test_row_that_tells_no_size_is_no_semaphore(bench: Bench, missing: str) -> None:
    values = {"size": 4, "bucket_size": 2, "created_time": 5}
    bench.put(**{column: value for column, value in values.items() if column != missing})
    with pytest.raises(NoSuchSemaphore):
        bench.read()


# Values

SOME = Description("sem", UUID(int=1), size=11, bucket_size=3, created_ms=5)


@given(st.integers(1, 11))
def test_bucket_of_a_token_has_the_token(token: int) -> None:
    assert token in SOME.bucket_of_token(token).tokens


@given(st.text(max_size=20))
def test_bucket_of_an_owner_is_the_one_that_is_computed(owner_id: str) -> None:
    owner_id = owner_id.encode(errors="replace").decode()
    ref = SOME.bucket_of_owner(owner_id)
    assert ref.number == bucket_of(owner_id, 4)
    assert ref.partition == (UUID(int=1), "sem", ref.number)
    assert (ref.semaphore, ref.created_ms) == ("sem", 5)


def test_domain_is_a_uuid_or_the_uuid_of_its_name() -> None:
    known = uuid4()
    assert domain_id(known) == domain_id(str(known)) == domain_id(known.hex.upper()) == known
    assert domain_id("default") == uuid5(DOMAINS, "default") != domain_id("Default")
    assert domain_id("") == uuid5(DOMAINS, "")


def test_row_is_described_as_it_is() -> None:
    row: dict[str, Value] = {
        "domain_id": UUID(int=1),
        "semaphore_name": "sem",
        "size": 11,
        "bucket_size": 3,
        "created_time": 5,
    }
    assert described(row) == SOME
    assert (SOME.buckets, len(SOME.bucket(3).tokens)) == (4, 2)
