-- The table of lock_nodes.cql. `marker_until` and `expiry` stand in for Cassandra's TTLs.
CREATE TABLE IF NOT EXISTS lock_nodes (
    cluster TEXT NOT NULL,
    instance TEXT NOT NULL,
    node TEXT,
    address TEXT,
    since INTEGER,
    marker_until INTEGER,
    expiry TEXT,
    PRIMARY KEY (cluster, instance)
) STRICT, WITHOUT ROWID;
