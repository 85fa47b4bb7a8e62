"""A real Cassandra for the tests that ask for one: `cassandra_url`, `keyspace`, `cassandra_session` (see `cluster`)."""

import signal

pytest_plugins = ["cluster.plugin"]

# A shell that runs the tests in the background has them ignore Ctrl-C, and so would the processes that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
