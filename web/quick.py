"""HTTP as httptools reads it, with a bound on what a client may send before its request is whole."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .reading import LONGEST_HEAD


class QuickProtocol(HttpToolsProtocol):
    """A connection. The parser itself keeps as much of a head as it is sent."""

    _in_head = False
    _head_bytes = 0  # of the head that is not whole yet, beside what came with its beginning

    def on_message_begin(self) -> None:
        """See HttpToolsProtocol."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0

    def on_url(self, url: bytes) -> None:
        """Take a piece of the path. Raises ValueError for a long one: the client is answered 400 then."""
        super().on_url(url)
        if len(self.url) >= LONGEST_HEAD:
            raise ValueError("the path is too long")

    def on_headers_complete(self) -> None:
        """See HttpToolsProtocol."""
        self._in_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        goes_on = self._in_head
        super().data_received(data)
        if goes_on and self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > LONGEST_HEAD and not self.transport.is_closing():
                self.send_400_response("The head of the request is too long.")
