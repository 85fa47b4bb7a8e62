"""Which database a command line names: options before or after the subcommand, a URL, the environment, or none."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from commandline import Run

from slotkeeper.cli import opening
from slotkeeper.cli.commands import Command, Group
from slotkeeper.cli.options import DATABASE, OUTPUT, SCOPE, Choices, shared
from slotkeeper.database import CassandraSettings, Consistency, Settings, SettingsError


@click.group(cls=Group)
@shared(OUTPUT, SCOPE, DATABASE)
def root() -> None:
    """Take options before the subcommand."""


@root.command(cls=Command)
@shared(OUTPUT, SCOPE, DATABASE)
def leaf() -> None:
    """Take options after it."""


def chosen(*args: str) -> Choices:
    """Return what a command line of `root` and `leaf` says."""
    choices = Choices()
    CliRunner().invoke(root, args, obj=choices, catch_exceptions=False)
    return choices


def cassandra(*args: str) -> CassandraSettings:
    """Return the settings that a command line names."""
    found: Settings | None = opening.named(chosen(*args))
    assert isinstance(found, CassandraSettings)
    return found


URL = "cassandra://h1/ks"


def test_an_option_may_stand_before_the_subcommand_or_after_it() -> None:
    for args in (("--database", URL, "--json", "leaf"), ("leaf", "--database", URL, "--json")):
        assert cassandra(*args).hosts == ("h1",)
        assert chosen(*args).json


def test_the_option_nearer_to_the_command_wins() -> None:
    assert cassandra("--keyspace", "far", "--database", URL, "leaf", "--keyspace", "near").keyspace == "near"


def test_the_environment_does_not_beat_what_was_typed_before_the_subcommand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOTKEEPER_DATABASE", "cassandra://elsewhere/ks")
    monkeypatch.setenv("SLOTKEEPER_DOMAIN", "elsewhere")

    assert cassandra("--database", URL, "leaf").hosts == ("h1",)
    assert opening.domain(chosen("--domain", "here", "leaf")) == "here"


def test_a_flag_beats_the_url_and_the_url_beats_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOTKEEPER_KEYSPACE", "of_the_variable")
    monkeypatch.setenv("CASSANDRA_USER", "known_name")
    monkeypatch.setenv("SLOTKEEPER_PASSWORD", "secret")

    assert cassandra("leaf", "--database", URL).keyspace == "ks"
    assert cassandra("leaf", "--database", URL, "--keyspace", "of_the_flag").keyspace == "of_the_flag"
    assert cassandra("leaf", "--database", "cassandra://h1").keyspace == "of_the_variable"
    assert cassandra("leaf", "--database", URL).user == "known_name"


def test_every_setting_has_an_option() -> None:
    found = cassandra(
        *("leaf", "--hosts", "h1,h2:9043", "--hosts", "h3", "--port", "9100", "--keyspace", "ks", "--local-dc", "dc1"),
        *("--user", "me", "--password-file", "/etc/secret", "--consistency", "quorum", "--ssl", "--tls-ca-file", "ca"),
        *("--tls-cert-file", "cert", "--tls-key-file", "key", "--tls-server-name", "cassandra.example"),
        *("--no-tls-verify-host", "--connect-timeout", "1.5", "--request-timeout", "30"),
    )

    assert found == CassandraSettings(
        hosts=("h1", "h2:9043", "h3"),
        port=9100,
        keyspace="ks",
        local_dc="dc1",
        user="me",
        password_file="/etc/secret",
        consistency=Consistency.QUORUM,
        tls=True,
        tls_ca_file="ca",
        tls_cert_file="cert",
        tls_key_file="key",
        tls_verify_host=False,
        tls_server_name="cassandra.example",
        connect_timeout_s=1.5,
        request_timeout_s=30.0,
    )


def test_the_name_that_cadence_has_for_the_host_check_is_known() -> None:
    assert cassandra("leaf", "--database", URL, "--tls", "--tls-enable-host-verification").tls_verify_host
    assert not cassandra("leaf", "--database", URL, "--no-tls").tls


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("SLOTKEEPER_DATABASE", "SLOTKEEPER_DOMAIN", "SLOTKEEPER_HOSTS"):
        monkeypatch.setenv(name, "")

    assert opening.named(Choices()) is None
    assert opening.domain(Choices()) == "default"


def test_without_a_database_the_file_is_in_the_users_data_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert str(opening.settings(Choices())) == f"sqlite:///{tmp_path}/data/slotkeeper/slotkeeper.db"

    monkeypatch.setenv("XDG_DATA_HOME", "relative/paths/do/not/count")
    assert opening.default_file() == tmp_path / ".local/share/slotkeeper/slotkeeper.db"

    monkeypatch.setattr("sys.platform", "darwin")
    assert opening.default_file() == tmp_path / "Library/Application Support/slotkeeper/slotkeeper.db"


def test_the_default_file_makes_itself_and_says_so_once(run: Run, tmp_path: Path) -> None:
    first, second = run("semaphore", "create", "gpu", "--size", "1"), run("semaphore", "list")

    assert (first.code, second.code) == (0, 0)
    assert "made the embedded store" in first.err
    assert second.err == ""
    assert (tmp_path / "data/slotkeeper/slotkeeper.db").exists()


def test_a_data_folder_that_cannot_be_made_is_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file is in the way")

    ran = run("semaphore", "list")

    assert ran.code == 6
    assert "cannot be made" in ran.err
    assert ran.err.count("\n") == 1


def test_a_folder_that_somebody_named_is_theirs_to_make(run: Run, tmp_path: Path) -> None:
    ran = run("semaphore", "list", "--database", f"sqlite:///{tmp_path}/nowhere/slots.db")

    assert ran.code == 6
    assert not (tmp_path / "nowhere").exists()


def test_a_named_file_that_is_new_gets_its_tables(run: Run, embedded: str) -> None:
    assert run("semaphore", "list", "--database", embedded).code == 0
    assert run("schema", "status", "--database", embedded, "--json").json["state"] == "current"


def test_single_settings_ask_for_a_database(run: Run) -> None:
    ran = run("semaphore", "list", "--keyspace", "ks")

    assert ran.code == 2
    assert "for which database?" in ran.err


def test_an_embedded_store_takes_no_settings_of_a_cassandra(run: Run, embedded: str) -> None:
    assert run("semaphore", "list", "--database", embedded, "--local-dc", "dc1").code == 2


def test_a_keyspace_is_for_a_cassandra_only() -> None:
    with pytest.raises(SettingsError, match="has no keyspaces"):
        opening.cassandra_settings(Choices())
