"""How much one request may ask for."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UpdateError
from ..wire import MS_NS, SECOND_NS, ClaimRequest, UpdateRequest

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """A body of `most_bytes`, `most_named` tasks and groups in it, and `most_wait_s` in line for a claim."""

    most_bytes: int = 8 * MIB
    most_named: int = 10_000
    most_wait_s: float = 300.0

    def check_update(self, asked: UpdateRequest) -> None:
        """Raise UpdateError for an update that is too large."""
        named = sum(len(part or ()) for part in (asked.adds, asked.updates, asked.deletes, asked.depends))
        self._check_number(named, "an update")

    def check_claim(self, asked: ClaimRequest) -> None:
        """Raise UpdateError for a claim that names too much or wants to wait too long."""
        self._check_number(len(asked.groups or ()) + len(asked.depends or ()), "a claim")
        if not 0 <= asked.wait * MS_NS <= self.most_wait_s * SECOND_NS:
            most_ms = int(self.most_wait_s * 1000)
            raise UpdateError(bugs=[f"a claim waits 0 to {most_ms} ms here, not {asked.wait}; ask again after that"])

    def _check_number(self, named: int, what: str) -> None:
        if named > self.most_named:
            raise UpdateError(bugs=[f"{what} names at most {self.most_named} tasks and groups here, not {named}"])
