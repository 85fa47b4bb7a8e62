"""The lock service: a node of a lock cluster behind HTTP, for clients and for the other nodes.

`application` has its paths, `grants` who may ask for which locks, `waits` the requests that wait on between two questions,
`post` how it asks the other nodes, `running` all of it together until it is told to stop.
"""
