"""Bounded slots for workflow engines, kept in Apache Cassandra.

`slotkeeper.semaphore` has the clients that engines use; `slotkeeper.owner` spells who asks for a slot;
`slotkeeper.schema` brings the tables in and checks them; `slotkeeper.database` is the one verb below all of it.
"""

from __future__ import annotations

from .errors import SlotkeeperError

__all__ = ["SlotkeeperError", "__version__"]

__version__ = "0.1.0"
