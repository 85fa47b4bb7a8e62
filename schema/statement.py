"""Statements of a version's files: each bears repetition, so that whoever comes after a dead process can go on.

Two forms do: CREATE TABLE IF NOT EXISTS, and ALTER TABLE ... ADD of one column, which is left out where the column is there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import NAMESPACE_URL, UUID, uuid5

from ..database import Layout

COMMENT = re.compile(r"--[^\n]*")
CREATE = re.compile(r"CREATE TABLE IF NOT EXISTS (?P<table>\w+)\s*\(", re.IGNORECASE)
ADD = re.compile(r"ALTER TABLE (?P<table>\w+) ADD (COLUMN )?(?P<column>\w+) [\w<>, ]+", re.IGNORECASE)
CONTROL_SEED = uuid5(NAMESPACE_URL, "slotkeeper:schema")  # never changed: racing programs of two releases must agree


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: it creates `table`, or adds the column `adds` to it."""

    text: str
    table: str
    adds: str | None = None

    def done_in(self, layout: Layout | None) -> bool:
        """Tell whether a table, as the database has it, shows that there is nothing left to do."""
        return layout is not None and (self.adds is None or self.adds in layout.columns)

    def filled(self, keyspace: str, seed: UUID) -> str:
        """Return the statement with its table's id in its place."""
        return self.text.replace("{id}", str(table_id(keyspace, self.table, seed)))


def table_id(keyspace: str, table: str, seed: UUID) -> UUID:
    """Return the id that a table of ours gets. A cluster takes an id once, so the keyspace is part of it.

    All tables but the control table have a seed that the first setup of the keyspace drew: a node that was down while a
    keyspace was dropped and made anew would take a table with the old id for the old table, and keep its rows.
    """
    return uuid5(seed, f"{keyspace}.{table}")


def split(text: str) -> tuple[Statement, ...]:
    """Return the statements of a file. Raises ValueError for one that does not bear repetition."""
    parts = (re.sub(r"[ \t]+\n", "\n", part).strip() for part in COMMENT.sub("", text).split(";"))
    return tuple(_statement(part) for part in parts if part)


def _statement(text: str) -> Statement:
    if created := CREATE.match(text):
        return Statement(text, created["table"])
    if added := ADD.fullmatch(text):
        return Statement(text, added["table"], added["column"])
    raise ValueError(f"a schema statement creates a table IF NOT EXISTS or adds one column, not: {text}")
