"""One polite crawl of many processes on one Redis or Valkey server, Sentinel or cluster.

Theory of operation. A process owns a *home* (a host, or a registrable domain) while it has work there, and paces it in memory as
any gate does. The server knows the owners, and the queues of tasks. Each process has one *session* per partition of the crawl. A
session is a lease: every batch that the process sends renews it, and all homes are held as long as it lasts. An owner sends no
request after its own deadline, which lies before the server's. If an owner ends without a word, the next one first waits for a
full delay, counted from the end of the lease.

`step.lua` is the one operation: it applies a batch atomically. `step.py` is its request, `changes.py` what that brings, and
`step_reply.py` the reply. `partition.py` sends one batch after the other (`change_queue.py`) and keeps the deadline.
It also has what a failover may have lost. The pacer and the frontier (`home_user.py`) call `session.py`; `held_homes.py`
decides which homes (`home.py`) leave when. `link.py` is the connection, `address.py` reads its URL, `server.py` checks the
server when it is opened, and `robots.py` keeps robots.txt results for all processes.
"""
