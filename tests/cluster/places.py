"""Where things are kept between runs, and which addresses are free."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path


def cache_folder() -> Path:
    """Give the folder for jars and nodes: SLOTKEEPER_TEST_CACHE, or `slotkeeper` in the user's cache folder."""
    if own := os.environ.get("SLOTKEEPER_TEST_CACHE"):
        return Path(own).resolve()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slotkeeper"


def free_address() -> str:
    """Pick a loopback address of this run's own, so that runs side by side may all use the usual ports."""
    address = f"127.{random.randint(1, 254)}.{random.randint(0, 254)}.{random.randint(1, 254)}"
    # Linux answers on the whole of 127/8; other systems on 127.0.0.1 only, where the ports must differ instead.
    return address if can_bind(address, 0) else "127.0.0.1"


def free_port(address: str, usual: int | None = None) -> int:
    """Give the usual port where it is free (a port that a container publishes may not be), else any free one."""
    if usual and can_bind(address, usual):
        return usual
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def can_bind(address: str, port: int) -> bool:
    """Tell whether a server could listen there; port 0 asks for the address alone."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
