-- The table of task_snapshots.cql. `marker_until` and `expiry` stand in for Cassandra's TTLs.
CREATE TABLE IF NOT EXISTS task_snapshots (
    store TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    part INTEGER NOT NULL,
    parts INTEGER,
    checksum INTEGER,
    data BLOB,
    marker_until INTEGER,
    expiry TEXT,
    PRIMARY KEY (store, epoch, segment, part)
) STRICT, WITHOUT ROWID;
