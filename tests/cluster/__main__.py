"""Run one local node until Ctrl-C: `python -m cluster`, from the folder `tests`."""

from __future__ import annotations

import argparse
import signal
import sys

from . import LocalNode, NotReady
from .jars import NoJars
from .java import NoJava


def main() -> None:
    """Start the node, print its URL, wait."""
    parser = argparse.ArgumentParser(prog="python -m cluster", description="Run one Cassandra node until Ctrl-C.")
    parser.add_argument("--address", default="127.0.0.1", help="loopback address, or `free` (default: %(default)s)")
    parser.add_argument("--port", type=int, help="CQL port (default: 9042, or a free one where that is taken)")
    parser.add_argument("--heap-mb", type=int, default=512, help="Java heap in MB (default: %(default)s)")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    address = None if asked.address == "free" else asked.address
    try:
        with LocalNode(address, asked.port, heap_mb=asked.heap_mb) as node:
            print(f"{node.server.url('slotkeeper')}  (log: {node.log}; Ctrl-C stops it)", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        print("stopped; its data are gone")
    except (NoJava, NoJars, NotReady) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
