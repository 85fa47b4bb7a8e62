"""The bench of locks runs: in memory, through real nodes, and straight in the database."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from bench import lockpairs, lockservice, locksuite, places
from bench.crowd import NothingCounted, Readings

Run = Callable[[str, float], Readings]
PATIENCE_S = (0.2, 1.0, 4.0, 16.0)

PAIRS: dict[str, Run] = {
    "threads": partial(lockpairs.in_memory, threads=2),
    "a task": lockpairs.in_a_loop,
    "direct": partial(lockpairs.direct, threads=2),
    "the speaker": partial(lockservice.pairs, clients=2),
    "another node": partial(lockservice.pairs, clients=2, nodes=3),
}
EMPTY = (lockservice.EMPTY_PAIRS, "empty request, p50", "empty request, p99")


def read(load: Run, url: str) -> Readings:
    """Measure for as long as it takes for something to count."""
    for seconds in PATIENCE_S:
        try:
            return load(url, seconds)
        except NothingCounted:
            continue
    raise AssertionError(f"nothing counted in {PATIENCE_S[-1]} s")


@pytest.fixture(scope="module")
def sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with the tables."""
    return places.ready(f"sqlite:///{tmp_path_factory.mktemp('bench') / 'locks.db'}")


@pytest.mark.parametrize("load", PAIRS.values(), ids=PAIRS)
def test_pairs_are_counted_and_timed(load: Run, sqlite_url: str) -> None:
    found = read(load, sqlite_url)
    assert found["cycles"] > 0
    assert 0 < found["p50"] <= found["p99"]


def test_pairs_through_a_node_stand_beside_its_empty_requests(sqlite_url: str) -> None:
    found = read(PAIRS["the speaker"], sqlite_url)
    assert all(found[name] > 0 for name in EMPTY)


def test_pairs_through_a_node_are_counted_on_cassandra(cassandra_url: str) -> None:
    assert read(PAIRS["the speaker"], places.ready(cassandra_url))["cycles"] > 0


def test_a_hot_name_is_handed_from_one_to_the_next(sqlite_url: str) -> None:
    found = read(partial(lockservice.hot, waiters=3, hold_s=0.005), sqlite_url)
    assert 0 < found["p50"] <= found["p99"]


def test_a_release_wakes_one() -> None:
    assert lockpairs.woken("", 0.0, waiters=5)["woken"] == 1


def test_many_names_are_held_at_once(sqlite_url: str) -> None:
    found = read(partial(lockservice.held, names=50, clients=2), sqlite_url)
    assert found["a second"] > 0
    assert found["cycles"] > 0


def test_every_target_has_a_figure_to_be_met_by() -> None:
    targets = {line.title for group in locksuite.groups() for measure in group for line in measure.lines if line.target}
    assert targets == {
        "locks through the speaker, 1 connection",
        "locks through the speaker, 8 connections",
        "hand-off of a lock, 64 wait, p50",
        "woken by a release in memory, 64 wait",
    }
