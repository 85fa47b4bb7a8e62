"""What `conftest.py` brings in: one server a run, one keyspace a test module, and the hooks that they need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from .choice import Choice, NoServer, choose
from .container import NoImage, image_name
from .server import Server, fresh_keyspace

CHOICE = pytest.StashKey[Choice | NoServer]()
SAID = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark that this package looks at."""
    config.addinivalue_line("markers", "container: needs a Docker engine; left out of the run where there is none")
    config.stash[SAID] = []


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take the repository's root for a plain folder.

    It is the package `slotkeeper`, and pytest would import it a second time under the name of the folder that the
    repository was cloned into; which fails where that name has a hyphen.
    """
    return pytest.Dir.from_parent(parent, path=path) if path == parent.config.rootpath else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the container tests where no container can be had, and say so: once, not as a row of skips."""
    marked = [item for item in items if item.get_closest_marker("container")]
    if not marked:
        return
    try:
        image_name()
    except NoImage as error:
        items[:] = [item for item in items if item not in marked]
        config.hook.pytest_deselected(items=marked)
        config.stash[SAID].append(f"container tests: {len(marked)} left out, {error.reason}")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Choose the server before the first test: downloads must not count against any test's timeout."""
    config = session.config
    wanted = any("cassandra_server" in getattr(item, "fixturenames", ()) for item in session.items)
    if not wanted or config.option.collectonly:
        return
    try:
        choice = config.stash[CHOICE] = choose()
        config.stash[SAID].append(f"cassandra: {choice.name}")
    except NoServer as error:
        config.stash[CHOICE] = error


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Tell which server the run uses."""
    return config.stash[SAID]


@pytest.fixture(scope="session")
def cassandra_server(pytestconfig: pytest.Config) -> Iterator[Server]:
    """One Cassandra for the whole run: never skipped, a run that finds none fails."""
    match pytestconfig.stash[CHOICE]:
        case NoServer() as error:
            pytest.fail(str(error), pytrace=False)
        case choice:
            with choice.run() as server:
                yield server


@pytest.fixture(scope="session")
def cassandra_session(cassandra_server: Server) -> Iterator[Session]:
    """A session of the plain driver, for what tests arrange and check behind slotkeeper's back."""
    with cassandra_server.session() as session:
        yield session


@pytest.fixture(scope="module")
def keyspace(cassandra_server: Server, cassandra_session: Session) -> Iterator[str]:
    """A fresh keyspace of this test module's own."""
    with fresh_keyspace(cassandra_session, cassandra_server.local_dc, "test") as name:
        yield name


@pytest.fixture(scope="module")
def cassandra_url(cassandra_server: Server, keyspace: str) -> str:
    """The database URL of this test module's keyspace."""
    return cassandra_server.url(keyspace)
