"""The repository's `docker-compose.yml`, brought up under a name and on a port of its own."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .container import engine
from .leash import Leash
from .places import free_port
from .server import NotReady, Server

FILE = Path(__file__).parent.parent.parent / "docker-compose.yml"


class NoCompose(Exception):
    """Neither `docker compose` nor `docker-compose` works. Install one of them."""


@contextmanager
def compose_server(*, timeout_s: float = 150) -> Iterator[Server]:
    """Bring the file's server up, wait until its health check says healthy; take it down, data and all, at the end."""
    project = f"slotkeeper-{uuid.uuid4().hex[:8]}"
    port = free_port("127.0.0.1")
    command = [*_compose(), "-p", project, "-f", str(FILE)]
    leash = Leash([*command, "down", "--volumes"])
    try:
        _run([*command, "up", "-d"], port)
        _wait_until_healthy(project, time.monotonic() + timeout_s)
        yield Server("127.0.0.1", port, kind="compose")
    finally:
        leash.let_go()


def _compose() -> list[str]:
    for command in (["docker", "compose"], ["docker-compose"]):
        try:
            subprocess.run([*command, "version"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return command
    raise NoCompose(NoCompose.__doc__)


def _run(command: list[str], port: int) -> None:
    env = {**os.environ, "SLOTKEEPER_PORT": str(port)}
    answer = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if answer.returncode:
        raise NotReady(f"{' '.join(command)} failed:\n{answer.stdout}")


def _wait_until_healthy(project: str, deadline: float) -> None:
    with engine() as client:
        (container,) = client.containers.list(all=True, filters={"label": f"com.docker.compose.project={project}"})
        while container.attrs["State"]["Health"]["Status"] != "healthy":
            if container.status == "exited" or time.monotonic() > deadline:
                raise NotReady(f"{project} is {container.status} and not healthy:\n{container.logs(tail=40).decode()}")
            time.sleep(0.5)
            container.reload()
