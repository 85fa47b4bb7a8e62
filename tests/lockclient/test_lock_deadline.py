"""Until when a holder may trust what it was told, by its own clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from slotkeeper.locktable.wire import LockDocument

SENT = 1_000.0


def told(*, lease_s: float = 30, ahead_s: float = 0, expires_in: str = "", lasts_ms: int | None = None) -> LockDocument:
    """What a service tells, whose wall clock is ahead of ours."""
    acquired_at = datetime.now(UTC) + timedelta(seconds=ahead_s)
    return LockDocument(
        name="a",
        id="1",
        node="n1",
        acquired_at=acquired_at,
        expires_at=acquired_at + timedelta(seconds=lease_s),
        expires_in=expires_in,
        lasts_ms=lasts_ms,
    )


@pytest.mark.parametrize(
    ("document", "received", "until"),
    [
        pytest.param(
            told(ahead_s=3600), SENT + 1, SENT + 30, id="no time left told: the clock of the speaker is no matter"
        ),
        pytest.param(told(expires_in="29.9s"), SENT + 20, SENT + 20 + 28.9, id="waited 20 s"),
        pytest.param(told(expires_in="29.9s"), SENT + 0.1, SENT + 30, id="granted at once"),
        pytest.param(told(expires_in="29.9s", lasts_ms=50_000), SENT + 21, SENT + 50, id="told from when it was asked"),
        pytest.param(told(expires_in="29.9s", lasts_ms=10), SENT + 21, SENT + 0.01, id="and that is all that counts"),
    ],
)
def test_a_lease_is_trusted_from_before_it_was_asked_for(document: LockDocument, received: float, until: float) -> None:
    assert document.trusted_until(SENT, received) == pytest.approx(until)


def test_a_lock_that_is_listed_counts_from_when_it_was_told() -> None:
    assert told(expires_in="12.5s", ahead_s=-7200).as_lock(SENT).until == SENT + 12.5
    assert told(ahead_s=-7200).as_lock(SENT).until == SENT + 30
