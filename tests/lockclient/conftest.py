"""A real lock node for clients, and a proxy before it that loses what it is told to lose."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from locknodes import RunningNode, new_database, running_node
from lossyproxy import LossyProxy, lossy


@pytest.fixture(scope="package")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node that is a cluster of its own."""
    with running_node(new_database(tmp_path_factory.mktemp("client"))) as node:
        yield node


@pytest.fixture
def proxy(node: RunningNode) -> Iterator[LossyProxy]:
    """A proxy before the node."""
    with lossy(int(node.url.rpartition(":")[2])) as proxy:
        yield proxy


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A lock of the test's own."""
    return f"lock of {request.node.name}"[:200]
