"""What `conftest.py` brings in: one server a run, one keyspace a test module, and the hooks that they need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from .choice import Choice, NoServer, choose, named
from .container import NoImage, image_name
from .java import NoJava, find_java
from .server import Server, fresh_keyspace

CHOICE = pytest.StashKey[Choice | NoServer]()
MARKS: dict[str, Callable[[], object]] = {"container": image_name, "local_node": find_java}
SAID = pytest.StashKey[list[str]]()
SHARED, URL = pytest.StashKey[ExitStack](), pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Name the marks that this package looks at."""
    for mark in MARKS:
        config.addinivalue_line("markers", f"{mark}: left out of the run on a machine that cannot have one")
    config.stash[SAID] = []


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take the repository's root for a plain folder.

    It is the package `slotkeeper`, and pytest would import it a second time under the name of the folder that the
    repository was cloned into; which fails where that name has a hyphen.
    """
    return pytest.Dir.from_parent(parent, path=path) if path == parent.config.rootpath else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of a way to a server that this machine does not have, and say so: once, not skip by skip.

    Tests that run on several databases ask for a server where their parameter is "cassandra", and only there.
    """
    for item in items:
        if isinstance(item, pytest.Function) and _runs_on_cassandra(item):
            # A new list: the one in place is shared with the runs of the same test on other databases.
            item.fixturenames = [*item.fixturenames, "cassandra_server"]
    for mark, look in MARKS.items():
        marked = [item for item in items if item.get_closest_marker(mark)]
        if marked and (missing := _missing(look)):
            items[:] = [item for item in items if item not in marked]
            config.hook.pytest_deselected(items=marked)
            config.stash[SAID].append(f"{mark} tests: {len(marked)} left out: {missing}")


def _runs_on_cassandra(item: pytest.Function) -> bool:
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return any("cassandra" in (value if isinstance(value, tuple) else (value,)) for value in values)


def _missing(look: Callable[[], object]) -> str | None:
    try:
        look()
    except NoImage as error:
        return error.reason
    except NoJava as error:
        return str(error)
    return None


@pytest.hookimpl(tryfirst=True)  # before the terminal reporter prints what the run says of itself
def pytest_collection_finish(session: pytest.Session) -> None:
    """Choose the server before the first test: downloads must not count against any test's timeout."""
    config = session.config
    wanted = any("cassandra_server" in getattr(item, "fixturenames", ()) for item in session.items)
    if not wanted or config.option.collectonly:
        return
    config.stash[CHOICE] = choice = _shared(config) or _chosen()
    if isinstance(choice, Choice):
        config.stash[SAID].append(f"cassandra: {choice.name}")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Start the server before the first of several processes, which share it."""
    config = node.config
    if SHARED not in config.stash:
        config.stash[SHARED] = ExitStack()
        if isinstance(choice := _chosen(), Choice):
            config.stash[URL] = config.stash[SHARED].enter_context(choice.run()).url()
            config.get_terminal_writer().line(f"cassandra: {choice.name}")
    node.workerinput["cassandra"] = config.stash.get(URL, None)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server that several processes shared."""
    if SHARED in config.stash:
        config.stash[SHARED].close()


def _chosen() -> Choice | NoServer:
    try:
        return choose()
    except NoServer as error:
        return error


def _shared(config: pytest.Config) -> Choice | None:
    """Return the server that the processes of a run share, where this is one of several."""
    url = getattr(config, "workerinput", {}).get("cassandra")  # what pytest-xdist gives its processes
    return named(url) if url else None


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
