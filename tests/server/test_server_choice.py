"""The order in which a server is chosen, and what a run without any is told."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from cluster import Server, choice
from cluster.container import NoImage
from cluster.java import NoJava


@pytest.fixture(autouse=True)
def nothing_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    monkeypatch.setattr(choice, "image_name", _no_image)
    monkeypatch.setattr(choice, "find_java", _no_java)
    monkeypatch.setattr(choice, "jars", lambda: Path("cassandra-5.0.8"))


def _no_image() -> NoReturn:
    raise NoImage("no Docker engine answers")


def _no_java() -> NoReturn:
    raise NoJava


def test_a_named_server_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(choice.VARIABLE, "cassandra://db.example:9142/?local_dc=dc2")
    monkeypatch.setattr(choice, "image_name", lambda: "cassandra:5.0")

    assert choice.choose().name == "cassandra://db.example:9142/?local_dc=dc2, named by SLOTKEEPER_TEST_DATABASE"


def test_a_container_comes_before_a_node_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "image_name", lambda: "cassandra:5.0")
    monkeypatch.setattr(choice, "find_java", lambda: Path("/opt/java/bin/java"))

    assert choice.choose().name == "a container of cassandra:5.0"


def test_without_an_engine_a_local_node_runs_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "find_java", lambda: Path("/opt/java/bin/java"))

    assert choice.choose().name == "a local node: cassandra-5.0.8 on /opt/java/bin/java (no Docker engine answers)"


def test_a_run_without_any_server_is_told_what_to_install() -> None:
    with pytest.raises(choice.NoServer) as refusal:
        choice.choose()

    message = str(refusal.value)
    assert "openjdk-17-jre-headless" in message
    assert "no Docker engine answers" in message
    assert "No Java 17 or 11" in message
    assert choice.VARIABLE in message


@pytest.mark.parametrize("url", ["sqlite:///x.db", "cassandra:///keyspace", "127.0.0.1:9042"])
def test_a_url_that_names_no_cassandra_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv(choice.VARIABLE, url)

    with pytest.raises(choice.NoServer, match="not a database URL"):
        choice.choose()


def test_a_server_reads_the_url_that_it_writes() -> None:
    server = Server("127.0.0.3", 9142, "dc2")

    assert Server.parse(server.url("holds")) == server
    assert server.url("holds") == "cassandra://127.0.0.3:9142/holds?local_dc=dc2"
