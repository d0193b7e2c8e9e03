"""The frontier that many processes share: a backend on homes and partitions of `polite.stores.redis`.

Theory of operation. Tasks wait on the server, in a queue per origin. A process that holds an origin's home has its first tasks in
memory (`durable.active_origins`). `backend.py` has each batch split by partition (`batch.py`, which knows the form in which the
server keeps a task, which homes are used, which puts need no call, and which rows come too late), and tells the durable store what
the session learns: homes that come and go, tasks that other processes put, and whether any process has a task left. It adds up
what the partitions count, and decides when the crawl has ended, and whether this process should have homes at all.
"""
