"""An HTTP service that does what a script says, request by request; what it was asked is kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROBLEM = {"content-type": "application/problem+json"}


@dataclass(frozen=True)
class Asked:
    """A request that came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


class Script:
    """What the service does next. With an empty script it hangs up."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.steps: list[Callable[[BaseHTTPRequestHandler], None]] = []
        self.gone = threading.Event()  # the end of the test: who is kept waiting is let go

    def then(self, status: int, body: Any = None, **headers: str) -> Script:
        """Answer the next request."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        self.steps.append(partial(_answer, status, {"content-type": "application/json", **named}, content))
        return self

    def then_problem(self, status: int, name: str, detail: str = "why", **headers: str) -> Script:
        """Answer the next request with a problem document."""
        document = {"type": f"urn:slotkeeper:problem:{name}", "title": name, "status": status, "detail": detail}
        return self.then(status, document, content_type="application/problem+json", **headers)

    def then_hang_up(self) -> Script:
        """Read the next request, and close the connection."""
        self.steps.append(_hang_up)
        return self

    def then_stop_short(self) -> Script:
        """Answer the next request with less than is announced."""
        self.steps.append(partial(_answer, 200, {"content-length": "100"}, b"[1,"))
        return self

    def then_wait(self) -> Script:
        """Keep the next request waiting."""
        self.steps.append(lambda handler: _wait(self.gone, handler))
        return self


@contextmanager
def scripted() -> Iterator[Script]:
    """Run a service that follows a script."""
    script = Script()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            script.asked.append(Asked(self.command, self.path, headers, body))
            (script.steps.pop(0) if script.steps else _hang_up)(self)

        do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - as above

        def log_message(self, format: str, *values: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        script.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield script
        finally:
            script.gone.set()
            server.shutdown()
            thread.join()


def _answer(status: int, headers: Mapping[str, str], body: bytes, handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(status)
    for name, value in {"content-length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)
    if int(headers.get("content-length", len(body))) != len(body):
        handler.close_connection = True


def _hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def _wait(gone: threading.Event, handler: BaseHTTPRequestHandler) -> None:
    gone.wait(60)
    handler.close_connection = True
