"""Each promise is kept by both faces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from workshops import Shop


@pytest.fixture(params=["threads", "asyncio"])
def face(request: pytest.FixtureRequest) -> str:
    """A face."""
    return str(request.param)


@pytest.fixture
def open_shop(face: str) -> Iterator[Callable[..., Shop]]:
    """A way to open a store with options of its own."""
    with ExitStack() as stack:

        def opened(**options: Any) -> Shop:
            shop = Shop(face, **options)
            stack.callback(shop.end)
            return shop

        yield opened


@pytest.fixture
def shop(open_shop: Callable[..., Shop]) -> Shop:
    """A store in memory, and workers for it."""
    return open_shop()
