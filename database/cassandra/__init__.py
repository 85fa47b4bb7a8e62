"""Cassandra as a store: the only place that knows the driver."""

from __future__ import annotations

from .store import CassandraStore

__all__ = ["CassandraStore"]
