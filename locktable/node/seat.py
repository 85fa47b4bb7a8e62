"""The speaker's seat: one row, taken by whoever finds it vacant, kept by renewal, and lost without a word when that fails.

Every change names the epoch, the version and the speaker that were read, and moves the version on. So of two candidates one
gets it, a late attempt is refused, and nothing that a former speaker still has on its way can apply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from ...database import Batch, Port, Refused, Row, Value, Write, update
from ...database.batch import MOST_WRITES
from .rows import CLUSTERS, SPEAKER_KEY, SPEAKER_ROW, Peer, Seen
from .settle import Unsettled, settled
from .terms import Terms

MOST_RIDES = MOST_WRITES - 2  # beside the two statements of the speaker row


@dataclass(slots=True)
class Term:
    """Our time in the seat. It is trusted until then, on the port's clock, and never again after that."""

    epoch: int
    trusted_until: float


class Seat:
    """The speaker row of a cluster, and our term when we sit in it."""

    def __init__(self, port: Port, cluster: str, me: Peer, terms: Terms) -> None:
        self.seen = Seen()
        self.term: Term | None = None
        self._port, self._cluster, self._me, self._terms = port, cluster, me, terms

    def __repr__(self) -> str:
        return f"<Seat of {self._cluster}: {self.seen}, ours {self.term}>"

    @property
    def is_ours(self) -> bool:
        """Tell whether nobody else can have taken it yet: asked anew at each grant."""
        return self.term is not None and self._port.now() < self.term.trusted_until

    @property
    def is_free(self) -> bool:
        """Tell whether we may take it: nobody sits there, or we ourselves do, and do not trust it any more."""
        return self.seen.speaker is None or self.seen.speaker.instance == self._me.instance

    async def look(self) -> Seen:
        """Read who sits there. Raises Unsettled, DatabaseError."""
        pending = self._port.begin_read(CLUSTERS, (self._cluster,), (SPEAKER_ROW,), serial=False)
        if not await pending.wait(self._terms.ask_s):
            raise Unsettled
        rows = pending.result()
        seen = Seen.of(rows[0] if rows else None)
        if (seen.version or 0) >= (self.seen.version or 0):  # a plain read may show what was
            self.seen = seen
        return self.seen

    async def take(self) -> bool:
        """Take the free seat, and tell whether it is ours now. Raises Unsettled, DatabaseError."""
        after = replace(self._moved(self._me), epoch=1 + (self.seen.epoch or 0))
        began_at = self._port.now()
        trusted_until = began_at + self._terms.surely(self._terms.speaker_lease_s)
        if not await self._change(after, (), trusted_until):
            return False
        self.term = Term(after.epoch or 0, trusted_until)
        return self.is_ours

    async def extend(self, rides: Sequence[Write] = ()) -> bool:
        """Renew our term, and let other writes ride along; False when it is over. Raises Unsettled, DatabaseError."""
        term, began_at = self.term, self._port.now()
        if term is None or began_at >= term.trusted_until:
            self.leave()
            return False
        applied = await self._change(self._moved(self._me), rides, term.trusted_until)
        # Whoever saw meanwhile that the trust had ended has acted on it: it does not come back, although the seat is ours.
        if not applied or self.term is not term or not self.is_ours:
            self.leave()
            return False
        term.trusted_until = began_at + self._terms.surely(self._terms.speaker_lease_s)
        return True

    async def resign(self, rides: Sequence[Write] = (), *, deadline: float = inf) -> bool:
        """Vacate our seat at once. Raises Unsettled, DatabaseError."""
        self.leave()
        return await self._change(self._moved(None), rides, deadline)

    def leave(self) -> None:
        """Trust our term no more."""
        self.term = None

    def _moved(self, speaker: Peer | None) -> Seen:
        return Seen(self.seen.epoch, 1 + (self.seen.version or 0), speaker)

    async def _change(self, after: Seen, rides: Sequence[Write], deadline: float) -> bool:
        numbers: dict[str, Value] = {"epoch": after.epoch, "version": after.version}
        guarded = update(SPEAKER_KEY, numbers, expect=self.seen.guard)
        batch = Batch(CLUSTERS, (self._cluster,), (guarded, self._sitting(after.speaker), *rides))
        outcome = await settled(self._port, batch, deadline)
        if isinstance(outcome, Refused) and not _is(after, outcome.rows.get(SPEAKER_KEY)):
            return False
        self.seen = after
        return True

    def _sitting(self, speaker: Peer | None) -> Write:
        if speaker is None:
            return update(SPEAKER_KEY, {"speaker": None, "node": None, "address": None})
        values = {"speaker": speaker.instance, "node": speaker.node, "address": speaker.address}
        return update(SPEAKER_KEY, values, ttl_s=self._terms.speaker_lease_s)


def _is(after: Seen, row: Row | None) -> bool:
    """Tell whether a refusal shows that an earlier attempt has applied: nobody else writes this epoch, version and speaker."""
    if row is None:
        return False
    return all(row.get(column) == wanted for column, (wanted,) in after.guard.items())
