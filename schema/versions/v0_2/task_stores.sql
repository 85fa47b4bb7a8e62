-- The table of task_stores.cql. `marker_until` and `expiry` stand in for Cassandra's TTLs.
CREATE TABLE IF NOT EXISTS task_stores (
    store TEXT NOT NULL,
    kind INTEGER NOT NULL,
    epoch INTEGER,
    writer TEXT,
    version INTEGER,
    first_segment INTEGER,
    kept_segment INTEGER,
    snapshot_epoch INTEGER,
    snapshot_segment INTEGER,
    writing_epoch INTEGER,
    writing_segment INTEGER,
    marker_until INTEGER,
    expiry TEXT,
    PRIMARY KEY (store, kind)
) STRICT, WITHOUT ROWID;
