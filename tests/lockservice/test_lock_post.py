"""How messages get to another node, and what is made of answers that are none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from scriptedservice import Script, scripted

from slotkeeper.locktable.node import Unreachable
from slotkeeper.locktable.node.messages import Done, ListNode
from slotkeeper.locktable.service.post import HttpPost

TOKEN = "peer-token-0123456789"


@pytest.fixture
def script() -> Iterator[Script]:
    with scripted() as script:
        yield script


async def test_a_message_is_posted_with_the_nodes_token(script: Script) -> None:
    script.then(200, {"says": "done"}).then(200, {"says": "done"})
    post = HttpPost(token=TOKEN)

    answers = await asyncio.gather(*(post(script.url, ListNode(), 10) for _ in range(2)))
    await post.close()

    assert answers == [Done(), Done()]
    for asked in script.asked:
        assert (asked.method, asked.path, asked.json) == ("POST", "/api/peer", {"says": "list_node"})
        assert asked.headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    ("prepared", "told"),
    [
        (lambda script: script.then_problem(401, "token"), "it answered 401"),
        (lambda script: script.then(200, {"says": "nothing"}), "another version"),
        (lambda script: script.then(200, b"<html>"), "no lock node"),
        (lambda script: script.then_hang_up(), "did not answer"),
        (lambda script: script.then_wait(), "did not answer"),
    ],
    ids=["refused", "unknown", "no lock node", "hung up", "silent"],
)
async def test_a_node_without_an_answer_is_unreachable(script: Script, prepared: object, told: str) -> None:
    assert callable(prepared)
    prepared(script)
    post = HttpPost()

    with pytest.raises(Unreachable, match=told) as caught:
        await post(script.url, ListNode(), 0.5)
    await post.close()

    assert caught.value.address == script.url


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "nowhere", ""])
async def test_a_node_that_is_not_there_is_unreachable_each_time(address: str) -> None:
    post = HttpPost()
    for _ in range(2):
        with pytest.raises(Unreachable):
            await post(address, ListNode(), 5)
    await post.close()


async def test_a_wrong_file_of_certificates_makes_nodes_unreachable() -> None:
    post = HttpPost(tls_ca_file="/nowhere")
    for _ in range(2):
        with pytest.raises(Unreachable, match="nowhere"):
            await post("https://127.0.0.1:9", ListNode(), 5)
    await post.close()
