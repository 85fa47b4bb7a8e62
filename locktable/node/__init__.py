"""A cluster of lock nodes: one *speaks* for it and grants the locks, and another one takes over when it is gone.

The nodes meet in a database. Who *speaks* is one row with a lease, taken by a conditional batch; each time somebody takes it,
the *epoch* grows, and with it every fence. A new speaker grants nothing before the *rebuild*: it asks each node what its
clients hold. For those that do not answer, the database has a *horizon* row each, which outlasts the leases granted
through them: it waits until that is gone. So kill all nodes and start them again, and no lock is granted while its former
holder may still trust its lease.

What is promised: no two leases of one name overlap, whatever nodes crash, stall, are cut off from one another or from the
database, and whatever messages are lost or late. What breaks it: clocks of different *rates*, clocks of the database's servers
that are further apart than `Terms.margin_s`, and a database that loses what it acknowledged.

The core is `Node`, over a `Port`. `open_node` makes one for an asyncio loop; its service carries `Message`s to the addresses of
others, and gives those that arrive to `Node.answer`. See docs/locktable-cluster.md.
"""

from __future__ import annotations

from .errors import GrantLate, NodeLeaving, NoSpeaker, Outdated, Unreachable
from .messages import Answer, Message
from .node import Node
from .opening import open_node
from .port import Background, Port
from .ports import NodePort, Post
from .rows import Peer
from .settle import Unsettled
from .status import HeldUp, Status
from .terms import Terms

__all__ = [
    "Answer",
    "Background",
    "GrantLate",
    "HeldUp",
    "Message",
    "NoSpeaker",
    "Node",
    "NodeLeaving",
    "NodePort",
    "Outdated",
    "Peer",
    "Port",
    "Post",
    "Status",
    "Terms",
    "Unreachable",
    "Unsettled",
    "open_node",
]
