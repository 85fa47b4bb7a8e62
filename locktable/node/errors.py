"""What else can go wrong in a cluster of lock nodes. All of these mean: ask again, here or at another node."""

from __future__ import annotations

from ..errors import LockUnavailable


class NoSpeaker(LockUnavailable):
    """No node is known to speak for the cluster, so nobody grants locks. Ask again; if it lasts, look at the database."""


class Unreachable(LockUnavailable):
    """Another node did not answer in time. What was asked may have happened all the same: ask again with the same request."""

    def __init__(self, address: str = "", why: str = "") -> None:
        self.address = address
        because = f": {why}" if why else ""
        super().__init__(f"The node at {address} did not answer{because}. Ask again." if address else None)


class GrantLate(LockUnavailable):
    """The grant came too late: its lease has ended, or whoever gave it does not speak any more. It was not taken; ask again."""


class NodeLeaving(LockUnavailable):
    """This node is stopping, or has not started, and grants no locks. Ask another one."""


class NoCopy(LockUnavailable):
    """This node does not have that copy of another one's locks: it was restarted since, or gave it up. Begin another."""


class Outdated(LockUnavailable):
    """A later speaker has been answered already. Whoever asks does not speak for the cluster any more."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        super().__init__(f"Epoch {epoch} has begun: whoever asks does not speak for the cluster any more.")
