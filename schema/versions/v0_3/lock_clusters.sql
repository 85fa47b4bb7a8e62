-- The table of lock_clusters.cql. `marker_until` and `expiry` stand in for Cassandra's TTLs.
CREATE TABLE IF NOT EXISTS lock_clusters (
    cluster TEXT NOT NULL,
    kind INTEGER NOT NULL,
    instance TEXT NOT NULL,
    epoch INTEGER,
    version INTEGER,
    speaker TEXT,
    node TEXT,
    address TEXT,
    witness TEXT,
    marker_until INTEGER,
    expiry TEXT,
    PRIMARY KEY (cluster, kind, instance)
) STRICT, WITHOUT ROWID;
