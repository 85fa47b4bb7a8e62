"""Settings that are wrong are told what is wrong with them, and no text ever has a password in it."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slotkeeper.database import CassandraSettings, SettingsError, open_store, parse

SECRET = "s3cr3t"

# Secrets


def test_password_is_in_no_text_of_the_settings() -> None:
    settings = parse(f"cassandra://ada:{SECRET}@h/ks")

    assert SECRET not in f"{settings} {settings!r} {settings!s:>200}"


def test_password_file_is_read_when_it_is_needed(tmp_path: Path) -> None:
    file = tmp_path / "password"
    settings = CassandraSettings(hosts=("h",), user="ada", password_file=str(file))

    with pytest.raises(SettingsError, match=r"password file .*password cannot be read: .*No such file"):
        settings.secret()
    file.write_text(f" {SECRET} \r\n", encoding="utf-8")
    assert settings.secret() == f" {SECRET} "  # an editor ends the line, a password may have spaces
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="cannot be read"):
        settings.secret()


def test_password_file_may_stand_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "pw").write_text(SECRET)

    assert CassandraSettings(hosts=("h",), user="ada", password_file="~/pw").secret() == SECRET


texts = st.text(st.characters(codec="utf-8"), min_size=1) | st.text("/?#@:[]%&=+ ;,\\'\"é🙂\n\t\x00", min_size=1)


@given(texts, texts)
@example("a:b@c/d?e#f", "%40%")
def test_any_user_and_password_come_through_when_quoted(user: str, password: str) -> None:
    settings = parse(f"cassandra://{quote(user, safe='')}:{quote(password, safe='')}@h:1,[::1]/ks?local_dc=dc")

    assert isinstance(settings, CassandraSettings)
    assert (settings.user, settings.secret(), settings.hosts) == (user, password, ("h:1", "[::1]"))


@given(st.text("/?#@:[]%+ ,\\é℀", max_size=8), st.text("/?#@:[]%+ ,\\é℀", max_size=8))
@example("", "")
@example("", "/")
@example("", "#")
@example("", "℀")
@example("@", "/")
def test_password_that_is_not_quoted_is_in_no_error(before: str, after: str) -> None:
    for url in (
        f"cassandra://ada:{before}{SECRET}{after}@h/ks",
        f"cassandra://h/ks?user=ada&password={before}{SECRET}{after}&x",
        f"ada:{before}{SECRET}{after}@h/ks",
        f"cassandra://ada:{SECRET}",
        f"{SECRET}@h/ks",
    ):
        assert SECRET not in _told(url)


def _told(url: str) -> str:
    """Return what a user or a log would see of a URL that is wrong: the message, and the chain behind it."""
    try:
        parse(url)
    except SettingsError as error:
        return "".join(traceback.format_exception(error))
    return ""


# Errors

BAD_URLS: list[tuple[str, str]] = [
    ("", "starts with cassandra:// or sqlite:///"),
    ("h/ks", "starts with cassandra:// or sqlite:///"),
    ("postgres://h/ks", "not with postgres:"),
    ("h:9042/ks", "not with h:"),
    ("cassandra://", "names no host"),
    ("cassandra:///ks", "names no host"),
    ("cassandra://,/ks", "names no host"),
    ("cassandra://ada:pw@/ks", "names no host"),
    ("cassandra://[::1/ks", r"are its \[\] closed"),
    ("cassandra://h:x/ks", "'h' is no host: what is behind its colon is no port"),
    ("cassandra://h:٣/ks", "is no port"),
    ("cassandra://h:-1/ks", "is no port"),
    ("cassandra://h:0/ks", "between 1 and 65535, not 0"),
    ("cassandra://h:65536/ks", "between 1 and 65535, not 65536"),
    ("cassandra://h/ks?port=0", "between 1 and 65535"),
    ("cassandra://h/ks?port=many", r"setting.*port"),
    ("cassandra://a:1:2/ks", "'a' is no host: a comma stands between hosts"),
    ("cassandra://2001:db8::g/ks", r"\[\] around an IPv6 address"),
    ("cassandra://h/my-ks", "keyspace 'my-ks'"),
    ("cassandra://h/ks/more", "keyspace 'ks/more'"),
    ("cassandra://ada@h/ks", "User 'ada' has no password"),
    ("cassandra://ada:@h/ks", "User 'ada' has no password"),
    ("cassandra://ada:pw/x@h/ks", "%2F"),
    ("cassandra://ada:pw#x@h/ks", "%23"),
    ("cassandra://ada:pw?x@h/ks", "%3F"),
    ("cassandra://h/ks?local_dc", "NAME=VALUE"),
    ("cassandra://h/ks?local-dc=x", r"no setting local-dc. There are: .*local_dc"),
    ("cassandra://h/ks?tls=perhaps", "tls"),
    ("cassandra://h/ks?sslmode=prefer", "sslmode is one of disable, require, verify-ca, verify-full, not 'prefer'"),
    ("cassandra://h/ks?sslcert=c.pem", "give both files"),
    ("cassandra://h/ks?sslkey=k.pem", "give both files"),
    ("cassandra://h/ks?request_timeout_s=0", "timeout"),
    ("cassandra://h/ks?connect_timeout_s=-1", "timeout"),
    ("cassandra://h/ks?request_timeout_s=soon", "request_timeout_s"),
    ("cassandra://h/ks?request_timeout_s=nan", "timeout"),
    ("cassandra://h/ks?request_timeout_s=inf", "timeout"),
    ("sqlite:", "three slashes"),
    ("sqlite://", "three slashes"),
    ("sqlite:///", "three slashes"),
    ("sqlite://x.db", "three slashes"),
    ("sqlite:x.db", "three slashes"),
    ("sqlite:///x#1.db", "%23"),
    ("sqlite:///x.db?busy_timeout_s=-1", "busy timeout"),
    ("sqlite:///x.db?busy_timeout_s=nan", "busy timeout"),
    ("sqlite:///x.db?mode=ro", "no setting mode. There are: path, busy_timeout_s"),
]


@pytest.mark.parametrize(("url", "complaint"), BAD_URLS)
def test_bad_url_is_told_what_is_wrong(url: str, complaint: str) -> None:
    for use in (parse, open_store):
        with pytest.raises(SettingsError, match=complaint) as caught:
            use(url)
        assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args


def test_settings_error_is_a_value_error() -> None:
    assert issubclass(SettingsError, ValueError)
