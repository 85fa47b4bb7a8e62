"""A real Cassandra for the tests that ask for one: `cassandra_url`, `keyspace`, `cassandra_session` (see `cluster`)."""

pytest_plugins = ["cluster.plugin"]
