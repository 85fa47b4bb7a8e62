"""The third port: the same core under a scheduler that decides what happens next, over a store in memory, on a clock that
only the schedule moves. Nothing here draws lots or asks the time: whoever runs a schedule passes both in.

>>> from slotkeeper.database import Batch, Kind, Slice, Table, insert
>>> from slotkeeper.database.simulated import Scheduler, SimulatedPort, SimulatedStore, Straight
>>> lamps = Table("lamps", {"room": Kind.TEXT}, {"lamp": Kind.INT}, {"state": Kind.TEXT})
>>> scheduler = Scheduler()
>>> store = SimulatedStore(clock=lambda: scheduler.now)
>>> port = SimulatedPort(scheduler, Straight(store))
>>> batch = Batch(lamps, ("hall",), (insert((1,), {"state": "on"}, absent=True, ttl_s=60),))
>>> scheduler.finished(port.commit(batch))
Applied()
>>> scheduler.run(until=61.0)
>>> scheduler.finished(port.read(lamps, ("hall",), (Slice(),), serial=True))
[]
"""

from __future__ import annotations

from .port import Flag, Network, SimulatedPending, SimulatedPort, Straight
from .rows import Cells, Rows, Stored
from .scheduler import Scheduler, Task
from .store import SimulatedStore

__all__ = [
    "Cells",
    "Flag",
    "Network",
    "Rows",
    "Scheduler",
    "SimulatedPending",
    "SimulatedPort",
    "SimulatedStore",
    "Stored",
    "Straight",
    "Task",
]
