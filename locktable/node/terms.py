"""How long things last in a cluster of lock nodes. All its nodes should have the same."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_LEASE_S = 3


@dataclass(frozen=True, slots=True)
class Terms:
    """Durations, in seconds. `speaker_lease_s` is how long the others wait for a speaker that has vanished.

    `margin_s` is for clocks of the database's servers that disagree, and for our own delay; `ahead_s` is how much longer
    than its last lease a horizon is noted, so that a steady load costs no transaction a grant; `witness_s` is how long clients
    of the speaker wait for a witness that does not answer.
    """

    speaker_lease_s: int = 6
    margin_s: float = 0.5
    ahead_s: float = 6.0
    ask_s: float = 5.0
    again_s: float = 0.5
    witness_s: float = 1.0
    member_ttl_s: int = 30
    stop_s: float = 10.0

    def __post_init__(self) -> None:
        if self.speaker_lease_s < LEAST_LEASE_S:
            raise ValueError(f"a speaker's lease is at least {LEAST_LEASE_S} seconds, not {self.speaker_lease_s}")
        if not 0 <= self.margin_s <= self.speaker_lease_s / 3 - 0.5:
            raise ValueError(f"a margin of {self.margin_s} s leaves no time to renew {self.speaker_lease_s} s")

    @property
    def beat_s(self) -> float:
        """How often a speaker renews its lease, and the others look who speaks."""
        return self.speaker_lease_s / 3

    def surely(self, ttl_s: int) -> float:
        """Return how long a cell with this TTL lasts at least, from before it was written.

        A TTL counts whole seconds on the clocks of the database's servers: one second for the rounding, and a margin.
        """
        return ttl_s - 1 - self.margin_s
