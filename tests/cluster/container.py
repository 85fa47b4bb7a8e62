"""The server in a container, through testcontainers; the image is the official one, or the stand-in built by `standin`."""

from __future__ import annotations

import gc
import socket
import sys
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import docker
import docker.errors
from docker.models.images import Image
from testcontainers.community.cassandra import CassandraContainer
from testcontainers.core.config import testcontainers_config
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from .leash import Leash
from .server import CQL_PORT, NotReady, Server

IMAGE = "cassandra:5.0"
STAND_IN = "slotkeeper.stand-in"  # the label by which our own image is told from the official one

# Cassandra 4.1 and later take any setting of cassandra.yaml this way; the image has no variable for this one.
PAXOS_V2 = "-Dcassandra.config.allow_system_properties=true -Dcassandra.settings.paxos_variant=v2"

REMOVE_LABELLED = """
import sys
from testcontainers.core.docker_client import DockerClient
for left in DockerClient().client.containers.list(all=True, filters={"label": sys.argv[1]}):
    left.remove(force=True, v=True)
"""


class NoImage(Exception):
    """There is no container to be had. `reason` says it in few words, the message in full."""

    def __init__(self, reason: str, details: object = None) -> None:
        super().__init__(f"{reason}: {details}" if details else reason)
        self.reason = reason


@contextmanager
def engine() -> Iterator[docker.DockerClient]:
    """Connect to the Docker engine that testcontainers would use; raises NoImage when none answers."""
    client = _connect()
    try:
        yield client
    finally:
        client.close()


def _connect() -> docker.DockerClient:
    with warnings.catch_warnings():
        # docker-py leaves the socket of a failed attempt to the garbage collector: have it collected here and now.
        warnings.simplefilter("ignore", ResourceWarning)
        with suppress(docker.errors.DockerException):
            return DockerClient().client
        gc.collect()
    raise NoImage("no Docker engine answers")


def image_name() -> str:
    """Pull the image unless it is there, and say which it is; raises NoImage."""
    with engine() as client:
        try:
            image = client.images.get(IMAGE)
        except docker.errors.ImageNotFound:
            image = pull(client)
        return f"{IMAGE} (stand-in)" if STAND_IN in image.labels else IMAGE


def pull(client: docker.DockerClient) -> Image:
    """Pull the official image; raises NoImage."""
    try:
        return client.images.pull(IMAGE)
    except docker.errors.DockerException as error:
        raise NoImage(f"the Docker engine cannot pull {IMAGE}", error) from error


@contextmanager
def container_server() -> Iterator[Server]:
    """Run a container on a free port, ready for lightweight transactions."""
    # The reaper is an image of its own, and a second download; the leash does its work.
    testcontainers_config.ryuk_disabled = True
    run = f"slotkeeper.run={uuid.uuid4().hex}"
    leash = Leash([sys.executable, "-c", REMOVE_LABELLED, run])
    container = _container(run)
    try:
        container.start()
        server = Server(*_address(container), container.get_local_datacenter(), "container")
        _wait_for_lwt(container, server)
        yield server
    finally:
        container.stop()
        leash.let_go()


def _container(label: str) -> CassandraContainer:
    key, value = label.split("=")
    container = CassandraContainer(IMAGE)
    container.with_env("MAX_HEAP_SIZE", "512M").with_env("JVM_EXTRA_OPTS", PAXOS_V2)
    container.with_kwargs(labels={key: value})
    return container.waiting_for(LogMessageWaitStrategy("Startup complete").with_poll_interval(0.25))


def _address(container: CassandraContainer) -> tuple[str, int]:
    """Prefer loopback where the port answers there: testcontainers takes any machine with a /.dockerenv for a container."""
    port = int(container.get_docker_client().port(container.get_container_id(), CQL_PORT))
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return "127.0.0.1", port
    return container.get_contact_points()[0]


def _wait_for_lwt(container: CassandraContainer, server: Server) -> None:
    try:
        server.wait_for_lwt(timeout_s=60)
    except NotReady as error:
        said = "\n".join(container.get_logs()[0].decode(errors="replace").splitlines()[-40:])
        raise NotReady(f"{error}\nIts log ends with:\n{said}") from error
