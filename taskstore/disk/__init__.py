"""The journal in a directory: records in framed segments, each naming its predecessor, and snapshots that replace old ones.

    0000000007.snapshot     all that came before segment 7
    0000000007.log          the records since, in segments of up to 64 MiB
    0000000008.log
    lock                    held by the one process that has the journal open

A record is written and synced before it is acknowledged. Whatever of a crash is left at the end of the last segment was never
acknowledged: it is dropped, and told. Anything else that cannot be read had been acknowledged, and the journal is refused;
each frame says up to where the journal was durable when it was written, so the two can be told apart.
"""

from __future__ import annotations

from .journal import DiskJournal
from .repair import Repaired, repair
from .verify import Verified, verify

__all__ = ["DiskJournal", "Repaired", "Verified", "repair", "verify"]
