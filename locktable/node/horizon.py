"""How a speaker's successor learns when the leases have ended, though the memory of them died with the speaker.

For each instance of a node through which leases are out, the store has a *horizon row* whose TTL outlasts all of them. The
speaker notes it, in a batch that only applies while it speaks, *before* it answers a grant or a renewal. Rows are noted a few
seconds ahead with each renewal of its own lease, so that a steady load costs no transaction a grant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, inf

from ...database import Row, Write, delete
from .rows import Peer, Witnessed, horizon_key, horizon_row, number, peer_of
from .terms import Terms


@dataclass(slots=True)
class Reach:
    """How far an instance's leases reach: the last one ends at `needed`, and the row surely lasts until `noted`.

    `found` is until when the row lasted at most when it was found: leases that nobody has told of yet may reach that far.
    `witness` is what the row is to name, `written` what it was seen to name or surely does, and `names` what it may name.
    """

    peer: Peer
    needed: float = -inf
    noted: float = -inf
    found: float = -inf
    witness: Witnessed | None = None
    written: Witnessed | None = None
    names: Witnessed | None = None

    @property
    def is_needed(self) -> bool:
        """Tell whether a lease was asked for through this instance in this term."""
        return self.needed > -inf

    @property
    def misleads(self) -> bool:
        """Tell whether the row may name a witness that is told no more: nothing new may rely on it."""
        return self.names is not None and self.names != self.witness

    @property
    def is_short(self) -> bool:
        """Tell whether somebody waits for this row."""
        return self.needed > self.noted or (self.is_needed and self.misleads)


@dataclass(frozen=True, slots=True)
class Rides:
    """What rides along with a renewal: writes of rows, until when each will last and whom it names, and whose rows go."""

    writes: tuple[Write, ...] = ()
    noted: dict[str, tuple[float, Witnessed | None]] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()


class Horizon:
    """The horizon rows, as this speaker knows them. A new term begins with `clear` and `find`."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._reaches: dict[str, Reach] = {}
        self._leaving: set[str] = set()  # their rows are to go
        self._left: set[str] = set()
        self._witnesses: dict[str, Witnessed] = {}  # of those that have one: the speaker itself

    def __repr__(self) -> str:
        return f"<Horizon of {len(self._reaches)} instances>"

    @property
    def peers(self) -> list[Peer]:
        """Whose clients may hold locks."""
        return [reach.peer for reach in self._reaches.values()]

    @property
    def is_asked(self) -> bool:
        """Tell whether somebody waits for a row to be noted, or to go."""
        return bool(self._leaving) or any(reach.is_short for reach in self._reaches.values())

    def clear(self) -> None:
        """Begin a term: nothing is known yet."""
        self._reaches.clear()
        self._leaving.clear()
        self._left.clear()
        self._witnesses.clear()

    def find(self, rows: list[Row], began_at: float, now: float) -> None:
        """Know the rows that a read found. No later write may end one of them sooner than it would have ended."""
        for row in rows:
            peer, left_s = peer_of(row), number(row, "ttl(node)") or 0
            noted = began_at + self._terms.surely(left_s)
            witness = Witnessed.of(row)
            self._reaches[peer.instance] = Reach(
                peer, noted=noted, found=now + left_s + 1, written=witness, names=witness
            )

    def ends_at(self, instance: str) -> float:
        """Return when an instance's row is surely gone, unless it is written anew."""
        reach = self._reaches.get(instance)
        return reach.found if reach is not None else -inf

    def covers(self, instance: str, until: float) -> bool:
        """Tell whether a lease through this instance may last so long."""
        reach = self._reaches.get(instance)
        return reach is not None and until <= reach.noted and not reach.misleads

    def need(self, peer: Peer, until: float) -> None:
        """Ask for a row that lasts at least so long."""
        reach = self._reaches.setdefault(peer.instance, Reach(peer, witness=self._witnesses.get(peer.instance)))
        reach.needed = max(reach.needed, until)
        if peer.instance not in self._left:
            self._leaving.discard(peer.instance)

    def lose(self, instance: str) -> None:
        """Forget a row that has ended by itself. Where it is needed again by now, it is written anew."""
        reach = self._reaches.get(instance)
        if reach is not None and not reach.is_needed:
            del self._reaches[instance]

    def let_go(self, instance: str) -> None:
        """Let an instance's row go: it hands out nothing more, and what its clients hold is covered by another row."""
        self._reaches.pop(instance, None)
        self._leaving.add(instance)
        self._left.add(instance)

    def retire(self, instance: str) -> None:
        """Let a row go whose leases are covered by another one. Its instance may need a new one: it has not left."""
        reach = self._reaches.get(instance)
        if reach is not None and not reach.is_needed:
            reach.noted = -inf  # from now on it may be gone at any moment
            self._leaving.add(instance)

    def witness_of(self, instance: str) -> Witnessed | None:
        """Return who has a copy of what an instance's clients hold, as its row was found or written."""
        reach = self._reaches.get(instance)
        return reach.written if reach is not None else None

    def name_witness(self, instance: str, witness: Witnessed | None) -> None:
        """Let an instance's row name a witness, or none: leases are covered again once no other one can be named."""
        if witness is not None:
            self._witnesses[instance] = witness
        else:
            self._witnesses.pop(instance, None)
        if (reach := self._reaches.get(instance)) is not None:
            reach.witness = witness

    def has_left(self, instance: str) -> bool:
        """Tell whether an instance hands out nothing more."""
        return instance in self._left

    def is_gone(self, instance: str) -> bool:
        """Tell whether an instance that was let go has no row any more."""
        return instance in self._left and instance not in self._leaving

    def rides(self, now: float, most: int) -> Rides:
        """Return what is to be written, the urgent first. Rows go with or after what covers their leases."""
        due = sorted((r for r in self._reaches.values() if self._is_due(r)), key=lambda reach: not reach.is_short)
        writes: list[Write] = []
        noted: dict[str, tuple[float, Witnessed | None]] = {}
        for reach in due[:most]:
            ttl_s = self._ttl_s(reach, now)
            writes.append(horizon_row(reach.peer, ttl_s, reach.witness))
            noted[reach.peer.instance] = now + self._terms.surely(ttl_s), reach.witness
            reach.names = reach.names or reach.witness  # from now on it may
        gone = sorted(self._leaving)[: most - len(writes)]
        return Rides((*writes, *(delete(horizon_key(each)) for each in gone)), noted, frozenset(gone))

    def applied(self, rides: Rides) -> None:
        """Note what has been written."""
        for instance, (noted, witness) in rides.noted.items():
            if (reach := self._reaches.get(instance)) is not None:
                reach.noted = max(reach.noted, noted)
                reach.written = reach.names = witness
        for instance in rides.gone:
            self._is_gone(instance)
        self._leaving -= rides.gone

    def _is_gone(self, instance: str) -> None:
        """Know nothing of a row that was deleted, unless it is needed again by now."""
        reach = self._reaches.get(instance)
        if reach is not None and reach.is_needed:
            self._reaches[instance] = Reach(reach.peer, needed=reach.needed, witness=reach.witness)
        else:
            self._reaches.pop(instance, None)

    def _is_due(self, reach: Reach) -> bool:
        if reach.peer.instance in self._leaving:
            return False
        is_to_name = reach.witness is not None and reach.written != reach.witness
        return reach.is_short or reach.needed > reach.noted - self._terms.ahead_s / 2 or is_to_name

    def _ttl_s(self, reach: Reach, now: float) -> int:
        until = max(reach.needed + self._terms.ahead_s, reach.found, reach.noted)
        return max(1, ceil(until - now + 1 + self._terms.margin_s))  # a lease may have ended while it waited for this
