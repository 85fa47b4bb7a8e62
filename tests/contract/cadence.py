"""Cadence's Go reference as another client of the same tables: its statements, by the plain driver, and its rows by hand.

Written after spec/cadence-semaphore.md, sections 1 and 2: token rows have type 1 and hold the FREE sentinel once released,
owner rows have type 2 and token_id -1, a token that was never granted has no row, and no statement names a version.
"""

from __future__ import annotations

import calendar
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from cassandra.cluster import Session

NONE = "0::30000000-0000-f000-f000-000000000000:-1"
FREE = "0::30000000-0000-f000-f000-000000000000:-2"
TOKEN, OWNER = 1, 2

Row = Mapping[str, Any]

GRANT = """
    BEGIN BATCH
    UPDATE {tokens} SET holder = %(owner)s, updated_time = %(now)s WHERE {bucket}
        AND type = 1 AND token_id = %(token)s AND owner_id = %(none)s IF holder IN (%(free)s, null);
    INSERT INTO {tokens} (domain_id, semaphore_name, bucket, type, token_id, owner_id, held_token, updated_time)
        VALUES (%(domain)s, %(name)s, %(bucket)s, 2, -1, %(owner)s, %(token)s, %(now)s) IF NOT EXISTS;
    APPLY BATCH"""

RELEASE = """
    BEGIN BATCH
    UPDATE {tokens} SET holder = %(free)s, updated_time = %(now)s WHERE {bucket}
        AND type = 1 AND token_id = %(token)s AND owner_id = %(none)s IF holder = %(owner)s;
    DELETE FROM {tokens} WHERE {bucket} AND type = 2 AND token_id = -1 AND owner_id = %(owner)s;
    APPLY BATCH"""

CREATE = """
    INSERT INTO {metadata} (domain_id, semaphore_name, size, bucket_size, created_time)
        VALUES (%(domain)s, %(name)s, %(size)s, %(bucket_size)s, %(now)s) IF NOT EXISTS"""

PUT = """
    INSERT INTO {tokens} (domain_id, semaphore_name, bucket, type, token_id, owner_id, holder, held_token, updated_time)
        VALUES (%(domain)s, %(name)s, %(bucket)s, %(type)s, %(token_id)s, %(owner_id)s, %(holder)s, %(held_token)s,
        %(updated_time)s) IF NOT EXISTS"""

BUCKET = "domain_id = %(domain)s AND semaphore_name = %(name)s AND bucket = %(bucket)s"


@dataclass(frozen=True, slots=True)
class Cadence:
    """One domain, as Cadence works on it."""

    session: Session
    keyspace: str
    domain: UUID

    def create(self, name: str, size: int, bucket_size: int = 100) -> bool:
        """Insert a semaphore's metadata; tell whether there was none of this name."""
        return self._applied(CREATE, name, size=size, bucket_size=bucket_size, now=now_ms())

    def grant(self, name: str, token: int, owner_id: str, *, bucket: int = 0, at_ms: int | None = None) -> bool:
        """Grant a token; tell whether the batch applied."""
        now = now_ms() if at_ms is None else at_ms
        return self._applied(GRANT, name, bucket=bucket, token=token, owner=owner_id, now=now)

    def release(self, name: str, token: int, owner_id: str, *, bucket: int = 0) -> bool:
        """Release a token; tell whether the batch applied."""
        return self._applied(RELEASE, name, bucket=bucket, token=token, owner=owner_id, now=now_ms())

    def put(self, name: str, *, bucket: int = 0, **columns: Any) -> None:
        """Insert one row as it is given; columns that are left out stay null."""
        row = {"holder": None, "held_token": None, "updated_time": None, **columns}
        assert self._applied(PUT, name, bucket=bucket, **row)

    def put_token(
        self, name: str, token: int, holder: str | None, *, bucket: int = 0, at_ms: int | None = None
    ) -> None:
        """Insert a token row."""
        self.put(name, bucket=bucket, type=TOKEN, token_id=token, owner_id=NONE, holder=holder, updated_time=at_ms)

    def put_owner(self, name: str, owner_id: str, held_token: int | None, *, bucket: int = 0, at_ms: int = 1) -> None:
        """Insert an owner row."""
        row = {"type": OWNER, "token_id": -1, "owner_id": owner_id, "held_token": held_token, "updated_time": at_ms}
        self.put(name, bucket=bucket, **row)

    def scan(self, name: str, *, bucket: int = 0, page: int = 501) -> list[dict[str, Any]]:
        """Read a bucket page by page: every row with its columns, times as milliseconds."""
        statement = self._statement(f"SELECT * FROM {{tokens}} WHERE {BUCKET}")
        fetched, self.session.default_fetch_size = self.session.default_fetch_size, page
        try:
            rows = list(self.session.execute(statement, self._values(name, bucket=bucket)))
        finally:
            self.session.default_fetch_size = fetched
        return [{column: _plain(value) for column, value in row._asdict().items()} for row in rows]

    def token_row(self, name: str, token: int, *, bucket: int = 0) -> Row | None:
        """Read by token: the row, or None for one that was never granted."""
        return self._only(name, bucket, type=TOKEN, token_id=token)

    def owner_row(self, name: str, owner_id: str, *, bucket: int = 0) -> Row | None:
        """Read by owner."""
        return self._only(name, bucket, type=OWNER, token_id=-1, owner_id=owner_id)

    def metadata(self, name: str) -> dict[str, Any]:
        """Read what was created."""
        statement = self._statement(
            "SELECT * FROM {metadata} WHERE domain_id = %(domain)s AND semaphore_name = %(name)s"
        )
        (row,) = self.session.execute(statement, self._values(name))
        return {column: _plain(value) for column, value in row._asdict().items()}

    def _only(self, name: str, bucket: int, **key: Any) -> Row | None:
        rows = [row for row in self.scan(name, bucket=bucket) if key.items() <= row.items()]
        assert len(rows) <= 1, rows
        return rows[0] if rows else None

    def _applied(self, text: str, name: str, **values: Any) -> bool:
        return bool(self.session.execute(self._statement(text), self._values(name, **values)).was_applied)

    def _statement(self, text: str) -> str:
        tables = {"tokens": f"{self.keyspace}.semaphore_tokens", "metadata": f"{self.keyspace}.semaphore_metadata"}
        return text.format(**tables, bucket=BUCKET)

    def _values(self, name: str, **values: Any) -> dict[str, Any]:
        return {"domain": self.domain, "name": name, "none": NONE, "free": FREE, **values}


def now_ms() -> int:
    """Return milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return calendar.timegm(value.utctimetuple()) * 1000 + value.microsecond // 1000
    return value
