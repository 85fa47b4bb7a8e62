"""What can come of a request instead of an answer, and how a service can be named wrongly."""

from __future__ import annotations

from ..errors import SlotkeeperError


class CallError(SlotkeeperError):
    """The service gave no answer."""


class NotSent(CallError):
    """The request never left: no connection came about. Nothing was changed; see that the service runs there, and try again."""


class Unsendable(CallError):
    """The request cannot be sent at all: it is too long, or has signs that none may have. Nothing was changed."""


class AnswerLost(CallError):
    """The request left, and no answer came back: it may have been carried out, or not."""


class CallerClosed(CallError):
    """This caller is closed, and asks no more. Open a new one."""


class BadAddress(CallError, ValueError):
    """The address of a service is no URL. It is http://HOST:PORT or https://HOST:PORT, a path behind it at most."""


class BadToken(CallError, ValueError):
    """The token is empty, or has signs that no header may have. It is one line of printable ASCII without blanks."""


class BadTrust(CallError, ValueError):
    """The file of certificates to trust cannot be read. Name a file of PEM certificates."""
