"""What callers were told, and what they may therefore believe. The partition must agree.

An owner's *parties* are the callers that act for it, each through one client. Once one of them does what may end the owner's
hold, or change its lease, what the others believed is no longer checked: they asked for it. Everything else is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from schedules.history import Violation

from simulator.picture import Picture
from slotkeeper.semaphore.lease import Lease


@dataclass(slots=True)
class Belief:
    """A party's belief to hold a token: until it lets go, or as long as it trusts its lease."""

    owner: str
    token: int
    fence: int
    lease: Lease | None = None

    def is_held(self, now: float) -> bool:
        """Tell whether the party still relies on it."""
        return self.lease is None or (not self.lease.lost and now < self.lease.trusted_until)


@dataclass(slots=True)
class Deed:
    """An operation of a party, from its call to its answer. `alone`: nobody else acted for the owner meanwhile; `quiet`:
    nobody else did what may end the owner's hold. A call that is cancelled ends no hold that others were told of.
    """

    party: str
    client: str
    kind: str
    began_at: float
    disturbing: bool
    alone: bool = True
    quiet: bool = True
    first: bool = False  # the owner held nothing that anybody knew of when it began
    deadline: float = 0.0


@dataclass(frozen=True, slots=True)
class Excuse:
    """Why a hold that nobody knows of may be left behind. A clean-up begins at `at` and leaves none, trouble aside."""

    why: str
    at: float

    def counts(self, trouble_until: float) -> bool:
        """Tell whether it still counts when the trouble has been over since some moment."""
        return self.why != "cancelled" or trouble_until > self.at + 3


@dataclass(slots=True)
class Account:
    """All that is known of one owner."""

    beliefs: dict[str, Belief] = field(default_factory=dict)
    deeds: dict[str, Deed] = field(default_factory=dict)
    lingering: set[str] = field(default_factory=set)  # clients whose attempts may still take it away
    keepers: set[str] = field(default_factory=set)  # parties that renew, or did: a renewal may come late
    holders: set[str] = field(default_factory=set)  # parties that were told that they hold it, and have not let go
    excuses: dict[tuple[str, str], Excuse] = field(default_factory=dict)  # by client and party


class Ledger:
    """The accounts of all owners."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.cancelled: set[str] = set()  # owners whom somebody takes out of the line

    def of(self, owner: str) -> Account:
        """Return an owner's account."""
        account = self.accounts.get(owner)
        if account is None:
            account = self.accounts[owner] = Account()
        return account

    def begin(self, owner: str, deed: Deed) -> None:
        """Note that a party begins to act for an owner."""
        account = self.of(owner)
        for party in [party for party in account.beliefs if party != deed.party and deed.disturbing]:
            del account.beliefs[party]
        for other in account.deeds.values():
            other.alone = deed.alone = False
            other.quiet &= not deed.disturbing
            deed.quiet &= not other.disturbing
        if account.lingering - {deed.client} or account.keepers - {deed.party}:
            deed.alone = deed.quiet = False
        account.deeds[deed.party] = deed

    def end(self, owner: str, deed: Deed) -> None:
        """Note that it has its answer."""
        self.of(owner).deeds.pop(deed.party, None)

    def unsure(self, owner: str, deed: Deed, why: Excuse) -> None:
        """Note that its end is not known to the party."""
        account = self.of(owner)
        account.beliefs.pop(deed.party, None)
        account.excuses[deed.client, deed.party] = why
        if deed.disturbing:
            account.lingering.add(deed.client)

    def sure(self, owner: str, deed: Deed) -> None:
        """Note that the party's client has settled whatever it did for the owner before."""
        account = self.of(owner)
        for key, excuse in list(account.excuses.items()):
            if key[0] == deed.client and excuse.at <= deed.began_at:
                del account.excuses[key]
        account.lingering.discard(deed.client)

    def crashed(self, client: str, parties: set[str], now: float) -> None:
        """Note that a client died: what it was doing, and what it held, may be left behind for good."""
        for account in self.accounts.values():
            deeds = [deed for deed in account.deeds.values() if deed.client == client]
            if deeds or parties & account.holders or any(key[0] == client for key in account.excuses):
                account.excuses[client, ""] = Excuse("crashed", now)
            if any(deed.disturbing for deed in deeds):
                account.lingering.add(client)
            for party in parties:
                account.beliefs.pop(party, None)
                account.deeds.pop(party, None)

    def check(self, picture: Picture, now: float) -> None:
        """Check that every party that believes to hold does hold."""
        for account in self.accounts.values():
            for party, belief in account.beliefs.items():
                held = picture.held.get(belief.token)
                if belief.is_held(now) and (held is None or held[:2] != (belief.owner, belief.fence)):
                    raise Violation(
                        f"{party} was told that it holds token {belief.token} with fence {belief.fence}: it is {held}"
                    )
