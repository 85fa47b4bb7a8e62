"""A TCP proxy in front of a service, which loses what it is told to lose: requests, or answers to what was carried out."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

SIZE = 1 << 16


class LossyProxy:
    """Passes bytes on. `lose_requests` and `lose_answers` count what is lost next, each with its connection.

    Of `lose_each` answers one is lost. `watch` is called with what clients send, and `upon_loss` before they are hung up on.
    """

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.lose_requests = self.lose_answers = 0
        self.lose_each = self.lost = self._passed = 0
        self.watch: Callable[[bytes], object] = lambda sent: None
        self.upon_loss: Callable[[], object] = lambda: None
        self._counting = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        """Where clients find the service."""
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        """End it, and all that passes through it."""
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._threads[0].join()
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()
        for each in self._sockets:
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self._sockets.append(client)
                self._begin(client)

    def _begin(self, client: socket.socket) -> None:
        try:
            service = socket.create_connection(("127.0.0.1", self._upstream))
        except OSError:  # it does not run: then the client is hung up on
            client.shutdown(socket.SHUT_RDWR)
            return
        self._sockets.append(service)
        for source, target, kind in ((client, service, "lose_requests"), (service, client, "lose_answers")):
            self._threads.append(threading.Thread(target=self._pass_on, args=(source, target, kind)))
            self._threads[-1].start()

    def _pass_on(self, source: socket.socket, target: socket.socket, kind: str) -> None:
        with suppress(OSError):
            while data := source.recv(SIZE):
                if kind == "lose_requests":
                    self.watch(data)
                if self._loses(kind):
                    self.upon_loss()
                    break
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _loses(self, kind: str) -> bool:
        with self._counting:
            self._passed += kind == "lose_answers"
            one_of_many = kind == "lose_answers" and self.lose_each and self._passed % self.lose_each == 0
            wanted = getattr(self, kind)
            setattr(self, kind, max(0, wanted - 1))
            self.lost += bool(wanted or one_of_many)
            return bool(wanted or one_of_many)


@contextmanager
def lossy(upstream: int) -> Iterator[LossyProxy]:
    """Run a proxy in front of a port of this host."""
    proxy = LossyProxy(upstream)
    try:
        yield proxy
    finally:
        proxy.close()
