"""A command line that has ended, as tests look at it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PATIENCE_S = 60.0  # how long a process may take: far longer than it does


@dataclass(frozen=True)
class Ran:
    """A command line that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The one error on stderr."""
        return json.loads(self.err)["error"]


Run = Callable[..., Ran]
