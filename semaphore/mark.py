"""The mark of a token row (its `held_token`): drawn anew by each grant and renewal, it tells whose word the hold rests on.

A hold is given back for a caller who was cancelled only by the process that it was granted through, and only while no other
one has told anybody of it: whoever tells of a hold that another process was granted writes a mark of its own first.

- none: granted by Cadence;
- handed: to a place in line, and not confirmed yet by the client that the place is of: the mark names it;
- taken: granted to a caller of the process that wrote it, or confirmed or renewed by the one that it was granted through;
- kept: by any other process, or by a renewal. Nobody gives it back any more, but who releases it as its holder.
"""

from __future__ import annotations

from functools import lru_cache

from ..owner import fingerprint32

HANDED, TAKEN, KEPT = 1, 2, 3
KINDS = 3  # the bits that tell the kind


@lru_cache(maxsize=1024)
def handed_to(client_id: str) -> int:
    """Return the mark of a slot that is handed to a place of a client."""
    return _of_kind(fingerprint32(client_id.encode()) - 2**31, HANDED)


def taken(drawn: int) -> int:
    """Make a mark of a random int of 32 bits."""
    return _of_kind(drawn, TAKEN)


def kept(drawn: int) -> int:
    """Make a mark of a random int of 32 bits."""
    return _of_kind(drawn, KEPT)


def is_kept(mark: int | None) -> bool:
    """Tell whether nobody gives the hold back but its holder."""
    return mark is not None and mark & KINDS == KEPT


def _of_kind(drawn: int, kind: int) -> int:
    return drawn & ~KINDS | kind
