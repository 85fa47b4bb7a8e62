"""Bounded slots for workflow engines, kept in Apache Cassandra.

`slotkeeper.semaphore` has the clients that engines use; `slotkeeper.owner` spells who asks for a slot;
`slotkeeper.schema` brings the tables in and checks them; `slotkeeper.database` is the one verb below all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import SlotkeeperError

if TYPE_CHECKING:
    from .owner import Owner as Owner
    from .semaphore import AsyncClient as AsyncClient
    from .semaphore import Client as Client

__all__ = ["AsyncClient", "Client", "Owner", "SlotkeeperError", "__version__"]

__version__ = "0.1.0"

_LATER = {"AsyncClient": "semaphore", "Client": "semaphore", "Owner": "owner"}


def __getattr__(name: str) -> object:
    """Import the clients only for who asks for them: the codec and the command's help start without the rest."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_LATER[name]}", __name__), name)
