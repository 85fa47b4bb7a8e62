"""Cassandra's jars, resolved from Maven coordinates once and kept."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from pathlib import Path

from .places import cache_folder

VERSION = "5.0.8"
ATTEMPTS = 3


class NoJars(Exception):
    """Cassandra's jars are not here and could not be fetched. Is a Maven repository reachable?"""


def jars(version: str = VERSION) -> Path:
    """Give the folder with every jar that a node needs; the first call for a version downloads about 70 MB."""
    folder = cache_folder() / f"cassandra-{version}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with Path(f"{folder}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the download takes what another one has begun for a mistake
            if not folder.is_dir():
                _fill(folder, _resolve(version))
    return folder


def _fill(folder: Path, files: list[Path]) -> None:
    """Fill a folder beside the wanted one and rename it, so that a run cut short leaves nothing half full."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="filling-") as scratch:
        complete = Path(scratch, "jars")
        complete.mkdir()
        for file in files:
            os.link(file.resolve(), complete / file.name)
        try:
            complete.rename(folder)
        except OSError:  # another run was faster; its folder is as good
            if not folder.is_dir():
                raise


def _resolve(version: str) -> list[Path]:
    for attempt in range(ATTEMPTS):
        try:
            return _download(version)
        except (OSError, RuntimeError) as error:  # what has arrived is not fetched again
            cause = error
            time.sleep(attempt)
    raise NoJars(f"Cassandra {version} could not be downloaded: {cause}") from cause


def _download(version: str) -> list[Path]:
    from jgo.env import EnvironmentBuilder, LinkStrategy  # its import costs more than a whole run with full caches
    from jgo.maven import MavenContext

    maven = MavenContext(repo_cache=cache_folder() / "maven", timeout=60)
    builder = EnvironmentBuilder(context=maven, cache_dir=cache_folder() / "jgo", link_strategy=LinkStrategy.HARD)
    environment = builder.from_endpoint(f"org.apache.cassandra:cassandra-all:{version}")
    # jgo sorts modular jars apart; Cassandra wants all of them on the class path.
    return [*environment.class_path_jars, *environment.module_path_jars]
