"""One thing that a service answers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response

from .answers import JSON

REST = "rest"  # in a path: `{name:rest}` is all that follows
Handle = Callable[[Request], Awaitable[Response]]


class _Rest(Convertor[str]):
    """What the framework's own `path` leaves out is a line's end."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor(REST, _Rest())


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Something that a service answers. `takes` and `answers` are the types of its JSON, for its description."""

    method: str
    path: str
    handle: Handle
    summary: str
    takes: Any = None
    answers: Mapping[int, Any] = field(default_factory=dict)
    query: Sequence[str] = ()
    media_type: str = JSON

    @property
    def template(self) -> str:
        """The path, as descriptions and metrics have it."""
        return re.sub(r":\w+}", "}", self.path)
