"""One polite crawl of many processes on one Redis or Valkey server, Sentinel or cluster.

Theory of operation. A process owns a *home* (a host, or a registrable domain) while it has work there, and paces it in memory as
any gate does. The server knows the owners, and the queues of tasks. Each process has one *session* per partition of the crawl. A
session is a lease: every batch that the process sends renews it, and all homes are held as long as it lasts. An owner sends no
request after its own deadline, which lies before the server's. If an owner ends without a word, the next one first waits for a
full delay, counted from the end of the lease.

`step.lua` is the one operation: it applies a batch atomically. `changes.py` has what a batch brings, the queue that is cut into
batches, and what a failover may have lost; `step.py` has the reply. `partition.py` sends one batch after the other and keeps the
deadline. `session.py` is one process; the pacer and the frontier use its homes (`homes.py`), which decides which of them leave
when. `link.py` is the connection, `address.py` reads its URL, `opening.py` checks the server and has a process join a crawl,
`robots.py` keeps robots.txt results for all processes, and `inspect.py` shows it all to people.
"""
