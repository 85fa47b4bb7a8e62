"""A store that is closed, or that a fork has carried into another process, refuses every use and hangs in none."""

from __future__ import annotations

import pytest
from contract import children
from contract.children import said, uses
from contract.worlds import World

from slotkeeper.database import ClosedError, open_store


def test_forked_child_is_refused_and_nobody_hangs(world: World) -> None:
    assert said(children.fork, world.url) == "child ended with 0"


def test_closed_store_refuses_every_use_and_may_be_closed_again(world: World) -> None:
    store = open_store(world.url)
    store.close()
    store.close()

    for use in uses(store):
        with pytest.raises(ClosedError):
            use()
    assert repr(store).endswith(" closed>")
