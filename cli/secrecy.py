"""Keeping passwords out of what is printed, whoever wrote the message."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from urllib.parse import unquote

from .options import Choices

PASSWORDS = ("SLOTKEEPER_PASSWORD", "CASSANDRA_PASSWORD", "SLOTKEEPER_TASKS_TOKEN")
IN_URL = re.compile(r"//[^/@]*?:(?P<login>.+)@|[?&]password=(?P<option>[^&]+)", re.DOTALL)
SHORTEST = 3  # a shorter one would be found in half of all words, and hides nothing


def redacted(text: str, choices: Choices) -> str:
    """Return the text with stars for each password that the options or the environment hold."""
    for secret in sorted(set(_secrets(choices)), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _secrets(choices: Choices) -> Iterator[str]:
    typed, variables = ("database", "journal"), ("SLOTKEEPER_DATABASE", "SLOTKEEPER_TASKS_JOURNAL")
    for url in (*map(choices.given.get, typed), *map(os.environ.get, variables)):
        for found in IN_URL.finditer(url or ""):
            secret = found["login"] or found["option"]
            yield from (spelled for spelled in (secret, unquote(secret)) if len(spelled) >= SHORTEST)
    yield from (value for name in PASSWORDS if len(value := os.environ.get(name, "")) >= SHORTEST)
