"""A real Cassandra for tests, and for anyone who wants one on their own machine for a while.

Tests ask for `cassandra_url` (or `keyspace`, `cassandra_session`, `cassandra_server`); a run has one server, and each
test module a keyspace of its own. Which server that is, a line at the start of the run tells: the one that
SLOTKEEPER_TEST_DATABASE names, else a container, else a node started with the machine's Java. None at all fails the run.

A server is ready when it has applied a lightweight transaction. It is gone when the run is, however the run ends.

By hand: `python -m cluster` in the folder `tests` runs one node until Ctrl-C. In code:

    with LocalNode() as node, node.server.session() as session:
        session.execute("SELECT release_version FROM system.local")
"""

from __future__ import annotations

from .node import LocalNode
from .server import NotReady, Server, fresh_keyspace

__all__ = ["LocalNode", "NotReady", "Server", "fresh_keyspace"]
