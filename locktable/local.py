"""The one table and the one `Held` of a process, for a program that is a node itself and not one of the service's.

The table may be asked for from anywhere in the process. It is not rebuilt at first, as any table. The nodes of
`slotkeeper lock serve` have their own, so that many nodes fit in one process.
"""

from __future__ import annotations

import os
import threading
import time

from .held import Held
from .table import Table


class _Local:
    def __init__(self) -> None:
        self.table = Table()
        self.held = Held(time.monotonic, guard=threading.Lock())


_local = _Local()


def speaker_table() -> Table:
    """Return the table of this process, always the same one."""
    return _local.table


def local_held() -> Held:
    """Return the locks of this process's own clients, always the same ones. Threads may share them."""
    return _local.held


def _anew() -> None:
    """Begin anew in a child process: with a copy of its parent's table it would grant what the parent has granted."""
    global _local
    _local = _Local()


os.register_at_fork(after_in_child=_anew)
