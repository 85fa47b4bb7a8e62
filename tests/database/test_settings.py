"""Settings: every part, from every place, and which place wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotkeeper.database import CassandraSettings, Consistency, SettingsError, SqliteSettings, load, parse
from slotkeeper.database.settings import VARIABLES

SECRET = "s3cr3t"

# Each part: how it is spelled, and what becomes of it.
PARTS: dict[str, tuple[str, object]] = {
    "hosts": ("a.example,b.example:9043", ("a.example", "b.example:9043")),
    "port": ("9142", 9142),
    "keyspace": ("slots_2", "slots_2"),
    "local_dc": ("dc-1", "dc-1"),
    "user": ("ada", "ada"),
    "password": (SECRET, SECRET),
    "password_file": ("/run/secrets/pw", "/run/secrets/pw"),
    "consistency": ("quorum", Consistency.QUORUM),
    "tls": ("true", True),
    "tls_ca_file": ("ca.pem", "ca.pem"),
    "tls_cert_file": ("cert.pem", "cert.pem"),
    "tls_key_file": ("key.pem", "key.pem"),
    "tls_verify_host": ("false", False),
    "tls_server_name": ("db.example", "db.example"),
    "connect_timeout_s": ("2.5", 2.5),
    "request_timeout_s": ("7", 7.0),
}
# What a part needs beside it.
BESIDE: dict[str, dict[str, str]] = {
    "user": {"password": SECRET},
    "tls_cert_file": {"tls_key_file": "key.pem"},
    "tls_key_file": {"tls_cert_file": "cert.pem"},
}


def loaded(
    url: str | None = None, parts: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> CassandraSettings:
    """Load settings that name a Cassandra."""
    settings = load(url, parts, environment)
    assert isinstance(settings, CassandraSettings)
    return settings


# Every part, from every place


def test_every_part_has_a_variable_of_ours() -> None:
    assert set(VARIABLES) == set(PARTS)
    assert all(ours.startswith("SLOTKEEPER_") for ours, *_ in VARIABLES.values())


@pytest.mark.parametrize("part", PARTS)
def test_part_comes_from_a_flag(part: str) -> None:
    text, value = PARTS[part]

    settings = loaded("cassandra://h/ks", {**BESIDE.get(part, {}), part: text})

    assert getattr(settings, part) == value


@pytest.mark.parametrize(("part", "variable"), [(part, name) for part, names in VARIABLES.items() for name in names])
def test_part_comes_from_the_environment(part: str, variable: str) -> None:
    text, value = PARTS[part]
    beside = {VARIABLES[name][0]: text for name, text in BESIDE.get(part, {}).items()}

    settings = loaded("cassandra:///" if part == "hosts" else "cassandra://h", {}, {**beside, variable: text})

    assert getattr(settings, part) == value


def test_hosts_of_ours_name_a_database_and_those_of_other_programs_do_not() -> None:
    assert loaded(None, {}, {"SLOTKEEPER_HOSTS": "h"}).hosts == ("h",)
    assert load(None, {}, {"CASSANDRA_HOST": "h", "CQLSH_HOST": "h"}) is None


@pytest.mark.parametrize("part", [part for part in PARTS if part not in ("hosts", "keyspace", "user", "password")])
def test_part_comes_from_an_option_of_the_url(part: str) -> None:
    text, value = PARTS[part]
    options = {**BESIDE.get(part, {}), part: text}

    settings = parse("cassandra://h/ks?" + "&".join(f"{name}={quote(text)}" for name, text in options.items()))

    assert getattr(settings, part) == value


def test_url_names_hosts_keyspace_and_login() -> None:
    settings = parse(
        f"cassandra://ada:{SECRET}@a.example:9043,b.example,[2001:db8::1],[::1]:9044,2001:db8::2/slots?port=9142"
    )

    assert isinstance(settings, CassandraSettings)
    assert settings.contact_points() == [
        ("a.example", 9043),
        ("b.example", 9142),
        ("2001:db8::1", 9142),
        ("::1", 9044),
        ("2001:db8::2", 9142),
    ]
    assert (settings.keyspace, settings.user, settings.secret()) == ("slots", "ada", SECRET)


def test_defaults_are_the_safe_ones() -> None:
    settings = parse("cassandra://h")

    assert settings == CassandraSettings(
        hosts=("h",),
        port=9042,
        keyspace="",
        consistency=Consistency.LOCAL_QUORUM,
        tls=False,
        tls_verify=True,
        tls_verify_host=True,
        connect_timeout_s=5.0,
        request_timeout_s=10.0,
    )


def test_consistency_is_a_pair() -> None:
    assert {level.value: level.serial for level in Consistency} == {"LOCAL_QUORUM": "LOCAL_SERIAL", "QUORUM": "SERIAL"}
    with pytest.raises(SettingsError, match="consistency"):
        parse("cassandra://h/ks?consistency=ONE")


# Which place wins


def test_flag_beats_url_beats_our_variable_beats_a_known_one() -> None:
    places: list[Callable[[], dict[str, Any]]] = [
        lambda: {"parts": {"keyspace": "flag"}},
        lambda: {"url": "cassandra://h/url"},
        lambda: {"environment": {"SLOTKEEPER_KEYSPACE": "ours"}},
        lambda: {"environment": {"CASSANDRA_KEYSPACE": "known"}},
    ]
    for first, expected in enumerate(["flag", "url", "ours", "known"]):
        given: dict[str, Any] = {"url": "cassandra://h", "parts": {}, "environment": {}}
        for place in reversed(places[first:]):
            for name, value in place().items():
                given[name] = {**given[name], **value} if isinstance(value, dict) else value
        assert loaded(**given).keyspace == expected


def test_known_variables_have_an_order_too() -> None:
    assert loaded("cassandra://h", {}, {"CASSANDRA_DB_PORT": "1", "CQLSH_PORT": "2"}).port == 1
    assert loaded("cassandra://h", {}, {"CQLSH_PORT": "2"}).port == 2


@pytest.mark.parametrize("name", ["SLOTKEEPER_KEYSPACE", "SLOTKEEPER_PORT", "SLOTKEEPER_TLS", "SLOTKEEPER_USER"])
def test_empty_variable_is_an_unset_one(name: str) -> None:
    assert loaded("cassandra://h/ks", {}, {name: ""}) == parse("cassandra://h/ks")
    known = {"CASSANDRA_KEYSPACE": "ks", name: ""}
    assert loaded("cassandra://h", {}, known).keyspace == "ks"


def test_empty_flag_is_an_unset_one() -> None:
    assert loaded("cassandra://h/ks", {"keyspace": "", "user": ""}).keyspace == "ks"


def test_url_of_the_environment_stands_where_no_other_does() -> None:
    environment = {"SLOTKEEPER_DATABASE": "cassandra://theirs/ks", "SLOTKEEPER_HOSTS": "others"}

    assert loaded(None, {}, environment).hosts == ("theirs",)
    assert loaded("cassandra://mine/ks", {}, environment).hosts == ("mine",)
    assert loaded(None, {"hosts": "mine"}, environment).hosts == ("mine",)


def test_port_of_a_flag_beats_the_one_beside_a_host_of_the_url() -> None:
    settings = loaded("cassandra://a:1,[::1]:2,b/ks", {"port": "9"})

    assert settings.contact_points() == [("a", 9), ("::1", 9), ("b", 9)]
    assert loaded("cassandra://a:1,b/ks", {}, {"SLOTKEEPER_PORT": "9"}).contact_points() == [("a", 1), ("b", 9)]
    assert loaded(None, {"hosts": "a:1,b", "port": "9"}).contact_points() == [("a", 1), ("b", 9)]


def test_password_and_password_file_hide_each_other_from_above(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("from file\n")
    from_file, plain = {"SLOTKEEPER_PASSWORD_FILE": str(file)}, {"SLOTKEEPER_PASSWORD": "from variable"}

    assert loaded("cassandra://u:url@h/ks", {}, from_file).secret() == "url"
    assert loaded("cassandra://u@h/ks", {}, from_file).secret() == "from file"
    assert loaded("cassandra://u:url@h/ks", {"password_file": str(file)}, plain).secret() == "from file"
    assert loaded("cassandra://u@h/ks", {"password": "flag"}, from_file).secret() == "flag"
    assert loaded("cassandra://u@h/ks", {}, {**plain, **from_file}).secret() == "from file"


def test_nothing_named_is_no_database() -> None:
    assert load() is None
    assert load("", {}, {"CASSANDRA_HOST": "h", "SLOTKEEPER_DATABASE": ""}) is None
    with pytest.raises(SettingsError, match="keyspace: for which database"):
        load(None, {"keyspace": "ks"})


def test_embedded_store_takes_no_part_of_a_cassandra() -> None:
    with pytest.raises(SettingsError, match=r"keyspace, user: an embedded store has no such setting.*sqlite:///x\.db"):
        load("sqlite:///x.db", {"user": "ada", "keyspace": "ks"})
    assert load("sqlite:///x.db", {}, {"SLOTKEEPER_HOSTS": "h", "CASSANDRA_USER": "ada"}) == SqliteSettings(path="x.db")


# TLS


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("disable", (False, True, True)),
        ("require", (True, False, True)),
        ("verify-ca", (True, True, False)),
        ("verify-full", (True, True, True)),
    ],
)
def test_sslmode_says_how_much_is_checked(mode: str, expected: tuple[bool, bool, bool]) -> None:
    settings = loaded(f"cassandra://h/ks?sslmode={mode}")

    assert (settings.tls, settings.tls_verify, settings.tls_verify_host) == expected


def test_sslmode_of_the_url_beats_what_the_environment_leaves_out() -> None:
    lax = {"SLOTKEEPER_TLS_VERIFY_HOST": "false", "SLOTKEEPER_TLS": "false"}

    settings = loaded("cassandra://h/ks?sslmode=verify-full", {}, lax)

    assert (settings.tls, settings.tls_verify, settings.tls_verify_host) == (True, True, True)


def test_names_of_libpq_are_taken() -> None:
    settings = loaded("cassandra://h/ks?sslmode=verify-full&sslrootcert=ca.pem&sslcert=c.pem&sslkey=k.pem")

    assert (settings.tls_ca_file, settings.tls_cert_file, settings.tls_key_file) == ("ca.pem", "c.pem", "k.pem")


@pytest.mark.parametrize(
    "option", ["sslrootcert=ca.pem", "tls_ca_file=ca.pem", "sslcert=c&sslkey=k", "tls_server_name=h"]
)
def test_certificate_that_is_named_means_tls(option: str) -> None:
    assert loaded(f"cassandra://h/ks?{option}").tls
    assert not loaded(f"cassandra://h/ks?{option}&tls=false").tls
    assert not loaded(f"cassandra://h/ks?{option}&sslmode=disable").tls


# Round trips


@pytest.mark.parametrize(
    "url",
    [
        "cassandra://h:9042/",
        "cassandra://a:1,b:2/ks",
        "cassandra://[::1]:9042,h:9042/ks?local_dc=dc+1%26",
        "sqlite:///x.db",
        "sqlite:////tmp/x.db",
        "sqlite:///a%20b%23c%3Fd%25.db",
        "sqlite:///:memory%3A",
    ],
)
def test_settings_spell_the_url_that_names_them(url: str) -> None:
    assert parse(str(parse(url))) == parse(url)


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_any_path_comes_through_its_url(path: str) -> None:
    settings = SqliteSettings(path=path)

    assert parse(str(settings)) == settings


def test_busy_timeout_comes_from_the_url() -> None:
    assert parse("sqlite:///x.db?busy_timeout_s=2.5") == SqliteSettings(path="x.db", busy_timeout_s=2.5)
