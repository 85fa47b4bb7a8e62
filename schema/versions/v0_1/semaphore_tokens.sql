-- The table of semaphore_tokens.cql. `marker_until` and `expiry` stand in for Cassandra's TTLs.
CREATE TABLE IF NOT EXISTS semaphore_tokens (
    domain_id TEXT NOT NULL,
    semaphore_name TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    type INTEGER NOT NULL,
    token_id INTEGER NOT NULL,
    owner_id TEXT NOT NULL,
    holder TEXT,
    held_token INTEGER,
    updated_time INTEGER,
    marker_until INTEGER,
    expiry TEXT,
    PRIMARY KEY (domain_id, semaphore_name, bucket, type, token_id, owner_id)
) STRICT, WITHOUT ROWID;
