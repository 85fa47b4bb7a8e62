"""Who may ask for which locks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from locknodes import RunningNode, client_of, new_database, running_node, running_nodes

from slotkeeper.locktable.remote import LockAccessDenied
from slotkeeper.locktable.service.grants import EVERYBODY, PEER, Permit, read_permits, with_peers
from slotkeeper.web.tokens import BadTokenFile

LOCK, CI, ADMIN, PEERS = "/api/cluster/lock", "ci-token-0123456789", "admin-token-0123456789", "peer-token-0123456789"
PERMITS = {CI: Permit("ci", ("ci/", "network/blue")), ADMIN: Permit("admin", ("",)), PEERS: PEER}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node that wants tokens."""
    with running_node(new_database(tmp_path_factory.mktemp("guarded")), tokens=PERMITS, peer_token=PEERS) as node:
        yield node


def ask(node: RunningNode, token: str | None, method: str, path: str, **options: object) -> httpx2.Response:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    with httpx2.Client(trust_env=False) as http:
        return http.request(method, f"{node.url}{path}", headers=headers, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("token", [None, "another-token-0123456789"])
@pytest.mark.parametrize("path", [LOCK, "/api/status", "/metrics", "/openapi.json", "/api/node/name/n1/lock"])
def test_nobody_looks_without_a_token(guarded: RunningNode, token: str | None, path: str) -> None:
    answer = ask(guarded, token, "GET", path)

    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


def test_health_is_for_everybody(guarded: RunningNode) -> None:
    assert [ask(guarded, None, "GET", path).status_code for path in ("/healthz", "/readyz")] == [200, 200]


@pytest.mark.parametrize(
    ("name", "status"), [("ci/build", 200), ("network/blue", 200), ("network/green", 403), ("c", 403)]
)
def test_a_token_stands_for_some_names(guarded: RunningNode, name: str, status: int) -> None:
    lock = ask(guarded, CI, "POST", LOCK, json={"name": name})
    some_id = lock.json().get("id", "some")
    renewed = ask(guarded, CI, "PUT", LOCK, json={"name": name, "id": some_id})
    forgotten = ask(guarded, CI, "DELETE", "/api/node/name/n1/lock", params={"name": name, "id": "other"})
    released = ask(guarded, CI, "DELETE", LOCK, params={"name": name, "id": some_id})

    assert (lock.status_code, renewed.status_code) == (status, status)
    assert (released.status_code, forgotten.status_code) == ((204, 204) if status == 200 else (403, 403))
    if status == 403:
        assert lock.json()["title"] == "Forbidden"
        assert name in lock.json()["detail"]


def test_a_list_has_the_names_that_the_token_stands_for(guarded: RunningNode) -> None:
    for name in ("ci/listed", "other/listed"):
        assert ask(guarded, ADMIN, "POST", LOCK, json={"name": name}).status_code == 200

    for path in (LOCK, "/api/node/name/n1/lock"):
        names = {each["name"] for each in ask(guarded, CI, "GET", path).json()["items"]}
        assert "ci/listed" in names
        assert "other/listed" not in names
        assert "other/listed" in {each["name"] for each in ask(guarded, ADMIN, "GET", path).json()["items"]}


def test_nodes_have_a_token_of_their_own(guarded: RunningNode) -> None:
    message = {"says": "list_node"}

    assert ask(guarded, PEERS, "POST", "/api/peer", json=message).json()["says"] == "listed"
    assert ask(guarded, ADMIN, "POST", "/api/peer", json=message).status_code == 403
    assert ask(guarded, None, "POST", "/api/peer", json=message).status_code == 401
    assert ask(guarded, PEERS, "POST", "/api/peer", content=b"{").status_code == 400
    assert ask(guarded, PEERS, "POST", "/api/peer", json={"says": "nothing"}).status_code == 400
    assert ask(guarded, PEERS, "POST", LOCK, json={"name": "a"}).status_code == 403


def test_a_client_shows_its_token(guarded: RunningNode) -> None:
    with client_of(guarded, token=CI) as client:
        assert client.release(client.acquire("ci/shown"))
        with pytest.raises(LockAccessDenied, match="network/green"):
            client.acquire("network/green")
    with client_of(guarded) as stranger, pytest.raises(LockAccessDenied, match="token"):
        stranger.locks()
    assert CI not in repr(client)


def test_three_nodes_with_tokens_are_one_cluster(tmp_path: Path) -> None:
    cluster = running_nodes(new_database(tmp_path), tokens=PERMITS, peer_token=PEERS)
    with cluster as nodes, client_of(nodes[2], token=CI) as client:
        assert client.release(client.acquire("ci/build"))


# --- the file -----------------------------------------------------------------------------------------------------------


def test_a_file_of_tokens_is_read(tmp_path: Path) -> None:
    tmp_path.joinpath("admin.token").write_text(f"{ADMIN}\n")
    entries = [
        {"name": "ci", "token": CI, "locks": ["ci/", "network/blue"]},
        {"name": "admin", "token_file": "admin.token", "locks": [""]},
    ]
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps({"tokens": entries}))

    permits = read_permits(path)

    assert permits == {CI: PERMITS[CI], ADMIN: PERMITS[ADMIN]}
    assert with_peers(permits, PEERS) == PERMITS
    assert with_peers(permits, None) == permits
    assert EVERYBODY.allows("anything")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read"),
        ("no json", "is no file of tokens"),
        ('{"tokens": [{"name": "a", "locks": "all", "token": "secret-secret-secret"}]}', "is no file of tokens"),
        ('{"tokens": [{"name": "a", "lock": [], "token": "secret-secret-secret"}]}', "is no file of tokens"),
        ('{"tokens": []}', "has no tokens"),
        ('{"tokens": [{"name": "a", "locks": [""]}]}', "'a' needs a token or a token_file"),
        (
            '{"tokens": [{"name": "a", "locks": [""], "token": "secret-secret-secret", "token_file": "x"}]}',
            "and not both",
        ),
        ('{"tokens": [{"name": "a", "locks": [""], "token": "short-secret"}]}', "holds no token"),
        ('{"tokens": [{"name": "a", "locks": [""], "token_file": "nowhere"}]}', "holds no token"),
        (
            '{"tokens": [{"name": "a", "locks": [""], "token": "secret-secret-secret"},'
            ' {"name": "b", "locks": [""], "token": "secret-secret-secret"}]}',
            "'b' has the token of 'a'",
        ),
    ],
)
def test_a_wrong_file_is_told_without_its_secrets(tmp_path: Path, content: str | None, told: str) -> None:
    path = tmp_path / "tokens.json"
    if content is not None:
        path.write_text(content)

    with pytest.raises(BadTokenFile, match=told) as caught:
        read_permits(path)

    assert "secret" not in str(caught.value)


def test_no_client_has_the_token_of_the_nodes() -> None:
    with pytest.raises(BadTokenFile, match="that of 'ci' too"):
        with_peers(PERMITS, CI)
