"""What the HTTP services and their clients share. Of a client: `Address`, the `Caller` port and its two kinds, and `insist`.

A request that brought no answer is one of two things: *not sent* (`NotSent`: nothing happened) or *lost* (`AnswerLost`: it may
have happened). A client that puts an `Idempotency-Key` on it may ask again until it knows, and `insist` does so.
"""
