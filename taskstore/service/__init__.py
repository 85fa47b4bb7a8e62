"""The task store over HTTP: the documented contract of its reference, and ours beside it."""
