"""A scripted CQL server: native protocol version 4 on loopback, for tests with the real driver in front of it.

A test declares tables, lists the answers to the next lightweight transactions (or computes them), and looks at what the
driver really sent. What a real cluster does once in a million requests, a script does at once:

    table = Table.from_cql("CREATE TABLE locks.slots (name text, id int, holder text, PRIMARY KEY (name, id))")
    with ScriptedServer([table]) as server:
        server.script(write_timeout("CAS"), CutAfter(), Refused([{"id": 1, "holder": "somebody"}]))
        cluster = Cluster([server.host], port=server.port, protocol_version=4)
        ...
        assert [request.consistency for request in server.lwts] == ["LOCAL_QUORUM"] * 3
        assert not server.repeated_lwts

It keeps no data and checks no condition: who wants that sets `server.on_lwt` to a function from `Request` to an answer,
with a store of the test's own behind it. `Request.statements` says what each statement's key, values and conditions are.
"""

from .answers import (
    Answer,
    Applied,
    CutAfter,
    CutBefore,
    Done,
    ErrorFrame,
    Late,
    Refused,
    Rows,
    Scripted,
    Silence,
    bad_credentials,
    bootstrapping,
    cas_write_unknown,
    config_error,
    invalid,
    overloaded,
    protocol_error,
    read_failure,
    read_timeout,
    server_error,
    syntax_error,
    truncate_error,
    unauthorized,
    unavailable,
    unprepared,
    write_failure,
    write_timeout,
)
from .frames import UNSET
from .requests import Condition, Request, Statement
from .server import ScriptedServer
from .system import Host
from .tables import Table

__all__ = [
    "UNSET",
    "Answer",
    "Applied",
    "Condition",
    "CutAfter",
    "CutBefore",
    "Done",
    "ErrorFrame",
    "Host",
    "Late",
    "Refused",
    "Request",
    "Rows",
    "Scripted",
    "ScriptedServer",
    "Silence",
    "Statement",
    "Table",
    "bad_credentials",
    "bootstrapping",
    "cas_write_unknown",
    "config_error",
    "invalid",
    "overloaded",
    "protocol_error",
    "read_failure",
    "read_timeout",
    "server_error",
    "syntax_error",
    "truncate_error",
    "unauthorized",
    "unavailable",
    "unprepared",
    "write_failure",
    "write_timeout",
]
