"""Where a service is, and who may ask there."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotkeeper.web.address import Address
from slotkeeper.web.caller import bearer
from slotkeeper.web.failures import BadAddress, BadToken


@pytest.mark.parametrize(
    ("url", "spelled"),
    [
        ("http://127.0.0.1:8048", "http://127.0.0.1:8048"),
        ("http://Tasks.Example.org/", "http://tasks.example.org"),
        ("https://tasks.example.org:443/a/b/", "https://tasks.example.org/a/b"),
        ("HTTPS://[::1]:8048", "https://[::1]:8048"),
        ("http://h:443", "http://h:443"),
    ],
)
def test_an_address_is_read_and_spelled(url: str, spelled: str) -> None:
    address = Address.parse(url)

    assert str(address) == spelled
    assert Address.parse(spelled) == address


@given(st.sampled_from(["http", "https"]), st.from_regex(r"[a-z][a-z0-9]{0,9}", fullmatch=True), st.integers(1, 65535))
def test_what_is_spelled_is_read_again(scheme: str, host: str, port: int) -> None:
    address = Address(scheme, host, port, "/p")

    assert Address.parse(str(address)) == address


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "http://HOST:PORT"),
        ("localhost:8048", "http://HOST:PORT"),
        ("ftp://host", "http:// or https://"),
        ("http://", "names a host"),
        ("http://:8048", "names a host"),
        ("http://a b", "names a host"),
        ("http://h:0", "1 to 65535"),
        ("http://h:x", "1 to 65535"),
        ("http://h:99999", "1 to 65535"),
        ("http://[::1", "http://HOST:PORT"),
        ("http://h/?a=1", "no ?"),
        ("http://h/#x", "no ?"),
        (None, "http://HOST:PORT"),
    ],
)
def test_what_is_no_address_is_told(url: str, said: str) -> None:
    with pytest.raises(BadAddress) as refused:
        Address.parse(url)

    assert said in str(refused.value)
    assert isinstance(refused.value, ValueError)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_a_secret_in_an_address_is_refused_and_not_quoted() -> None:
    with pytest.raises(BadAddress) as refused:
        Address.parse("http://me:hunter2@host")

    assert "hunter2" not in str(refused.value)
    assert "token" in str(refused.value)


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://127.9.9.9", True),
        ("http://[::1]", True),
        ("http://localhost", True),
        ("http://x.localhost", True),
        ("http://10.0.0.1", False),
        ("http://localhost.example.org", False),
    ],
)
def test_loopback_is_known(url: str, loopback: bool) -> None:
    assert Address.parse(url).is_loopback is loopback


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "ä", "a\x7f"])
def test_what_is_no_token_is_refused_and_not_quoted(token: str) -> None:
    with pytest.raises(BadToken) as refused:
        bearer(token)

    assert not token or token not in str(refused.value)
