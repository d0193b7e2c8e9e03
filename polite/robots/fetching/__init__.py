"""The fetch of a robots.txt as a state machine, and its result over time (RFC 9309, 2.3).

Theory of operation. An `Exchange` is one fetch: `Exchange.begin` gives the first `Ask`, and `next(response)`
returns either the next state (a redirect to follow, a request to repeat) or the end, a `FetchResult`: `Found`,
`Unavailable` (no restriction) or `Unreachable` (everything disallowed). If a policy says so, a `MissingProbe`
follows a 5xx: two more requests show whether the site responds 5xx for every page that does not exist.

`renewed` turns results into a `Snapshot`: the latest result, the last good copy, and when to fetch again.
`Snapshot.effective` says what decides now. `merged` joins the snapshots of several gates that share a store. Time is
an argument; no function here reads a clock or opens a socket.
"""
