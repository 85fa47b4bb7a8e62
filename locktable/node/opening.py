"""A node for the running loop, over a real store."""

from __future__ import annotations

import random
import uuid

from ...database import Store
from ..limits import Limits
from .node import Node
from .ports import NodePort, Post
from .terms import Terms


def open_node(
    name: str,
    cluster: str,
    address: str,
    store: Store,
    post: Post,
    *,
    terms: Terms | None = None,
    limits: Limits | None = None,
) -> Node:
    """Return a node for the running asyncio loop, not started yet. Its store has the tables of schema version 0.3."""
    return Node(
        name,
        cluster,
        address,
        NodePort(store, post),
        new_id=lambda: str(uuid.uuid4()),
        dice=random.Random().random,
        terms=terms,
        limits=limits,
    )
