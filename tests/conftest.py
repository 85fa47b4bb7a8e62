"""A real Cassandra for the tests that ask for one: `cassandra_url`, `cassandra_store`, `cassandra_session` (see `cluster`)."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from readystore import ready_store

from slotkeeper.database import Store

pytest_plugins = ["cluster.plugin"]

# A shell that runs the tests in the background, or under nohup, has them ignore these signals; so would the processes that
# tests send them to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

# No promise of ours is about how fast a test draws its examples: a busy machine breaks none.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="module")
def cassandra_store(cassandra_url: str) -> Iterator[Store]:
    """A keyspace of the module's own, with the tables."""
    with ready_store(cassandra_url) as store:
        yield store
