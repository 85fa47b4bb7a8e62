-- The table of task_journal.cql. `marker_until` and `expiry` stand in for Cassandra's TTLs.
CREATE TABLE IF NOT EXISTS task_journal (
    store TEXT NOT NULL,
    segment INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    part INTEGER NOT NULL,
    epoch INTEGER,
    version INTEGER,
    last INTEGER,
    since INTEGER,
    following INTEGER,
    parts INTEGER,
    data BLOB,
    marker_until INTEGER,
    expiry TEXT,
    PRIMARY KEY (store, segment, sequence, part)
) STRICT, WITHOUT ROWID;
