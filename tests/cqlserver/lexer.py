"""CQL text cut into tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|//[^\n]*|/\*.*?\*/)
      | (?P<string>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<uuid>[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})
      | (?P<blob>0[xX][0-9a-fA-F]+)
      | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<marker>\?|:[A-Za-z_]\w*)
      | (?P<sign><=|>=|!=|[=<>(),.;*+\-\[\]{}:])""",
    re.X | re.S,
)


class CqlSyntaxError(ValueError):
    """The text is no CQL that this server understands."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of CQL: its kind (a group of the pattern above) and its text as written."""

    kind: str
    text: str

    @property
    def word(self) -> str:
        """The text for comparing: keywords and unquoted names do not care for case."""
        return self.text.lower() if self.kind == "word" else self.text

    @property
    def name(self) -> str:
        return self.text[1:-1].replace('""', '"') if self.kind == "quoted" else self.text.lower()

    @property
    def constant(self) -> object:
        """The value that a literal stands for."""
        match self.kind:
            case "string":
                return self.text[1:-1].replace("''", "'")
            case "uuid":
                return UUID(self.text)
            case "blob":
                return bytes.fromhex(self.text[2:])
            case "number":
                return int(self.text) if self.text.lstrip("-").isdigit() else float(self.text)
            case "word" if self.word in _WORDS:
                return _WORDS[self.word]
        raise CqlSyntaxError(f"no viable alternative at input '{self.text}'")


_WORDS: Final[dict[str, object]] = {"null": None, "true": True, "false": False}
END: Final = Token("end", "<EOF>")


def tokenize(cql: str) -> list[Token]:
    """Cut `cql` into its tokens, without white space and comments."""
    tokens: list[Token] = []
    at = 0
    while at < len(cql):
        found = _TOKEN.match(cql, at)
        if found is None or found.lastgroup is None:
            raise CqlSyntaxError(f"line 1:{at} no viable alternative at character '{cql[at]}'")
        at = found.end()
        if found.lastgroup != "skip":
            tokens.append(Token(found.lastgroup, found.group()))
    return tokens
