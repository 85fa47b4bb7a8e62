"""A lease whose renewals fail: tried again while it can be trusted, and lost before the database would let anybody else in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from contract.clients import some_owner
from cqlserver import CutBefore, Request, Silence, overloaded, unavailable, write_timeout
from eventually import until
from servedstore import Behind, driven, served

from slotkeeper.database import Store
from slotkeeper.semaphore import Client, LeaseLost

LEASE_S = 2


@pytest.fixture
def behind() -> Iterator[Behind]:
    """A scripted server with a partition behind it."""
    with served() as behind:
        yield behind


@pytest.fixture
def store(behind: Behind) -> Iterator[Store]:
    """The real driver in front of it."""
    with driven(behind) as store:
        yield store


@pytest.fixture
def calm(behind: Behind) -> Iterator[Client]:
    """A client that stands beside the server, on the same partition."""
    with Client(behind.store) as client:
        client.create("s", 1)
        yield client


def answer_all(behind: Behind, answer: Callable[[Request], object]) -> None:
    """Answer reads and transactions alike."""
    behind.server.on_lwt = behind.server.on_read = answer  # type: ignore[assignment]


def silent(behind: Behind) -> None:
    """Answer nothing."""
    answer_all(behind, lambda _: Silence())


def overburdened(behind: Behind) -> None:
    """Answer transactions, none of which takes effect, with an error that leaves it open."""
    behind.server.on_lwt = lambda _: overloaded()


def refusing(behind: Behind) -> None:
    """Have too few replicas."""
    answer_all(behind, lambda _: unavailable())


def cutting(behind: Behind) -> None:
    """Cut every connection that asks."""
    answer_all(behind, lambda _: CutBefore())


def gone(behind: Behind) -> None:
    """Refuse connections."""
    for host in behind.server.hosts:
        behind.server.stop(host.address)


@pytest.mark.parametrize("ill", [silent, overburdened, refusing, cutting, gone], ids=lambda ill: ill.__name__)
def test_lease_is_lost_before_anybody_else_is_let_in(
    behind: Behind, store: Store, calm: Client, ill: Callable[[Behind], None]
) -> None:
    with Client(store) as client:
        hold = client.acquire("s", some_owner(), lease_s=LEASE_S)
        ill(behind)
        until(hold.lost.is_set, bound_s=LEASE_S)
        lost_at = time.monotonic()
        assert calm.try_acquire("s", some_owner()) is None, "somebody else was let in before it was lost"
        assert lost_at >= (hold.trusted_until or 0.0)
        with pytest.raises(LeaseLost):
            hold.check()


@pytest.mark.parametrize("ill", [silent, overburdened, refusing], ids=lambda ill: ill.__name__)
def test_lease_survives_what_heals_while_it_can_be_trusted(
    behind: Behind, calm: Client, ill: Callable[[Behind], None]
) -> None:
    with driven(behind, request_timeout_s=0.5) as store, Client(store) as client:
        hold = client.acquire("s", some_owner(), lease_s=2 * LEASE_S)
        trusted = hold.trusted_until or 0.0
        ill(behind)
        until(lambda: time.monotonic() > trusted - 1)  # the renewal that was due has failed
        answer_all(behind, behind.read)
        behind.server.on_lwt = behind.commit
        until(lambda: (hold.trusted_until or 0.0) > trusted, bound_s=2 * LEASE_S)
        hold.check()
        assert hold.release()


def test_unknown_renewal_counts_from_its_first_attempt(behind: Behind, store: Store, calm: Client) -> None:
    """The attempt that took effect may be the first one: the server counts from then."""
    with Client(store) as client:
        hold = client.acquire("s", some_owner(), lease_s=30)
        behind.server.script(*[lambda _: write_timeout("CAS")] * 3)
        before = time.monotonic()
        fence = client.renew("s", hold.owner, lease_s=600)
        attached = client.attach("s", hold.owner, fence, lease_s=600)
        assert before < (attached.trusted_until or 0.0) - 600 + 1.2 + 0.001
