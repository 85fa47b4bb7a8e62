-- The table of semaphore_metadata.cql. `marker_until` and `expiry` stand in for Cassandra's TTLs.
CREATE TABLE IF NOT EXISTS semaphore_metadata (
    domain_id TEXT NOT NULL,
    semaphore_name TEXT NOT NULL,
    size INTEGER,
    bucket_size INTEGER,
    created_time INTEGER,
    marker_until INTEGER,
    expiry TEXT,
    PRIMARY KEY (domain_id, semaphore_name)
) STRICT, WITHOUT ROWID;
