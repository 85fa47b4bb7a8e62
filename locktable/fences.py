"""Fences: `epoch << 32` plus a count of grants. A greater epoch, which an election gives, is above all fences before it."""

from __future__ import annotations

from .errors import BadEpoch, FencesUsedUp

COUNT_BITS = 32
MOST_EPOCHS = 1 << 31  # so that a fence fits a signed 64-bit integer


class Fences:
    """The fences of one table: one count for all names, so that the fence of each only grows."""

    __slots__ = ("epoch", "last")

    def __init__(self, epoch: int = 0) -> None:
        self.epoch, self.last = -1, 0
        self.begin(epoch)

    def begin(self, epoch: int) -> None:
        """Begin an epoch, or go on with the same one. Raises BadEpoch for an older one."""
        if not self.epoch <= epoch < MOST_EPOCHS:
            raise BadEpoch(f"Epoch {epoch} cannot follow {self.epoch}: {BadEpoch.__doc__}")
        self.epoch, self.last = epoch, max(self.last, epoch << COUNT_BITS)

    def is_former(self, fence: int) -> bool:
        """Tell whether a fence is of an epoch before this one."""
        return fence >> COUNT_BITS < self.epoch

    def seen(self, fence: int) -> None:
        """Let later fences be above one that was given elsewhere."""
        self.last = max(self.last, fence)

    def next(self) -> int:
        """Return the next fence. Raises FencesUsedUp at the last of an epoch."""
        if (self.last + 1) >> COUNT_BITS != self.last >> COUNT_BITS:
            raise FencesUsedUp
        self.last += 1
        return self.last
