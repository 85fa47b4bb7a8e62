"""Which server a run uses: the one it is given, else a container, else a node of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from .container import NoImage, container_server, image_name
from .jars import NoJars, jars
from .java import NoJava, find_java
from .node import LocalNode
from .server import Server

VARIABLE = "SLOTKEEPER_TEST_DATABASE"


class NoServer(Exception):
    """There is no Cassandra for the tests. Install Java 17 (Debian: openjdk-17-jre-headless) or Docker, or name a server."""


@dataclass(frozen=True)
class Choice:
    """A server that can be had, fetched but not started; `run` starts it for as long as its context lasts."""

    name: str
    run: Callable[[], AbstractContextManager[Server]]


def choose() -> Choice:
    """Find a server, and fetch what it takes to start it; raises NoServer."""
    if url := os.environ.get(VARIABLE):
        return named(url)
    try:
        return Choice(f"a container of {image_name()}", container_server)
    except NoImage as no_image:
        return _local_node(no_image)


def named(url: str) -> Choice:
    """Use the server at a URL; raises NoServer where it is none."""
    try:
        server = Server.parse(url)
    except ValueError as error:
        raise NoServer(f"{VARIABLE}: {error}") from error
    return Choice(f"{server.url()}, named by {VARIABLE}", lambda: _given(server))


def _local_node(no_image: NoImage) -> Choice:
    try:
        return Choice(f"a local node: {jars().name} on {find_java()} ({no_image.reason})", _node)
    except (NoJava, NoJars) as nor_node:
        reasons = [f"{VARIABLE} is not set", str(no_image), str(nor_node)]
        raise NoServer("\n- ".join([str(NoServer.__doc__), *reasons])) from nor_node


@contextmanager
def _given(server: Server) -> Iterator[Server]:
    server.wait_for_lwt(timeout_s=60)
    yield server


@contextmanager
def _node() -> Iterator[Server]:
    with LocalNode() as node:
        yield node.server
