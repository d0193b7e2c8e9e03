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

What happens at a failover, in `Partition` unless another is named:

1. A call gets no reply (`Unreached`). `_repeat` sends the batch again, with all homes that are held (`claim`). Later changes wait
   in the `ChangeQueue`. If it lasts, `Session.unreached` tells it as StoreAway. Turns are granted as long as the lease is good.
2. A server replies. If it has no such crawl, `_refused` fails a frontier with StoreEmptied; a gate alone begins a new session. If
   it is another server than before, `_apply` goes on. `step.lua` is quiet for one lease there: it gives no process a home.
3. `_renewed`: if the lease has ended, all homes are lost (`Session.lose`). Otherwise it lasts until quiet is over at most, until
   the server has confirmed what is held.
4. `_restore` puts first what the `Journal` knows of the last two leases, puts and ends, since the server may have lost it. Until it
   is written, `StepReply.drop_rows` hides tasks that have ended. `BatchChanges.heard` of the frontier forgets which URLs it put.
5. The next batches say what is held (`mine`), in parts. The reply to the last part names the homes that are not ours any more
   (`gone`), and confirms the others: the lease is renewed as before.
"""
