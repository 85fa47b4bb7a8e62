"""Versions of the schema, which compare by number: 0.10 is above 0.9."""

from __future__ import annotations

import re
from dataclasses import dataclass

SPELLING = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)", re.ASCII)


@dataclass(frozen=True, order=True, slots=True)
class Version:
    """A version like 0.1."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read `0.1`. Raises ValueError for any other form."""
        found = SPELLING.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no schema version: it has the form 0.1")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"
