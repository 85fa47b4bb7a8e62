"""A lock node behind HTTP, and raw requests to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx2
import pytest
from locknodes import RunningNode, new_database, running_node, running_nodes

Ask = Callable[..., httpx2.Response]


@pytest.fixture(scope="package")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An embedded store with our tables."""
    return new_database(tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="package")
def node(database: str) -> Iterator[RunningNode]:
    """A node that is a cluster of its own."""
    with running_node(database, cluster="one") as node:
        yield node


@pytest.fixture(scope="package")
def three(database: str) -> Iterator[list[RunningNode]]:
    """Three nodes; the first one speaks."""
    with running_nodes(database, cluster="three") as nodes:
        yield nodes


@pytest.fixture
def http() -> Iterator[httpx2.Client]:
    """Connections."""
    with httpx2.Client(trust_env=False, timeout=30) as client:
        yield client


@pytest.fixture
def ask(http: httpx2.Client, node: RunningNode) -> Ask:
    """Ask the node."""

    def send(method: str, path: str, **options: object) -> httpx2.Response:
        return http.request(method, f"{node.url}{path}", **options)  # type: ignore[arg-type]

    return send


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A lock of the test's own."""
    return f"lock of {request.node.name}"[:200]
