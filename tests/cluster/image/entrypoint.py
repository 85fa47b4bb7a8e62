#!/usr/bin/python3
"""Start Cassandra in the stand-in image, told by the variables that the official image is told by.

It runs with the image's own Python and nothing but its standard library.
"""

from __future__ import annotations

import os
import shlex
import socket
import sys
from pathlib import Path
from string import Template

JARS = Path("/opt/cassandra/jars")
TEMPLATES = Path("/opt/cassandra/templates")
HOME = Path("/etc/cassandra")
DATA = Path("/var/lib/cassandra")
MAIN_CLASS = "org.apache.cassandra.service.CassandraDaemon"


def main() -> None:
    """Become Cassandra; or any other command, as `docker run cassandra:5.0 cqlsh` asks for."""
    if sys.argv[1:2] != ["cassandra"]:
        os.execvp(sys.argv[1], sys.argv[1:])
    configure()
    os.execvp("java", ["java", f"@{HOME}/jvm.options", *extra_options(), MAIN_CLASS])


def configure() -> None:
    """Fill in the templates that local nodes are made from."""
    HOME.mkdir(exist_ok=True)
    for template in TEMPLATES.iterdir():
        (HOME / template.name).write_text(Template(template.read_text()).substitute(values()))
    rack = f"dc={asked('CASSANDRA_DC', 'datacenter1')}\nrack={asked('CASSANDRA_RACK', 'rack1')}\n"
    (HOME / "cassandra-rackdc.properties").write_text(rack)


def values() -> dict[str, str]:
    """Give what the templates leave open; Cassandra's defaults, as in the official image, where nothing is asked."""
    address = socket.gethostbyname(socket.gethostname())
    (agent,) = JARS.glob("jamm-*.jar")
    return {
        "home": str(HOME),
        "data": str(DATA),
        "tmp": "/tmp",
        "jars": str(JARS),
        "jamm": agent.name,
        "heap": asked("MAX_HEAP_SIZE", "512M"),
        "cluster_name": asked("CASSANDRA_CLUSTER_NAME", "Test Cluster"),
        "snitch": asked("CASSANDRA_ENDPOINT_SNITCH", "SimpleSnitch"),
        "num_tokens": asked("CASSANDRA_NUM_TOKENS", "16"),
        "address": address,
        "rpc_address": "0.0.0.0",
        "port": "9042",
        "gossip_port": "7000",
        "seeds": asked("CASSANDRA_SEEDS", address),
        "paxos_variant": "v1",
    }


def extra_options() -> list[str]:
    """Give the Java options of the environment; they come last, so they win over ours."""
    young = [f"-Xmn{size}"] if (size := os.environ.get("HEAP_NEWSIZE")) else []
    return [*young, *shlex.split(asked("JVM_OPTS", "")), *shlex.split(asked("JVM_EXTRA_OPTS", ""))]


def asked(name: str, default: str) -> str:
    """Give a variable of the environment; an empty one counts as not given, as compose files have it."""
    return os.environ.get(name) or default


if __name__ == "__main__":
    main()
