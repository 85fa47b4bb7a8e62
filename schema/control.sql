-- The table of control.cql for the embedded store, which adds two columns of its own to every table:
-- `marker_until` and `expiry` stand in for Cassandra's TTLs.
CREATE TABLE IF NOT EXISTS slotkeeper_schema (
    scope TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT,
    holder TEXT,
    description TEXT,
    updated_time INTEGER,
    marker_until INTEGER,
    expiry TEXT,
    PRIMARY KEY (scope, kind, name)
) STRICT, WITHOUT ROWID;
