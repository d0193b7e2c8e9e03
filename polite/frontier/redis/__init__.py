"""The frontier that many processes share: a backend on homes and partitions of `polite.stores.redis`.

Theory of operation. Tasks wait on the server, in a queue per origin. A process that holds an origin's home has its first tasks in
memory (`durable.active_origins`). `backend.py` splits each batch by partition (`partition_batch.py`), and tells the durable store
what the session learns: homes that come and go, tasks that other processes put, and whether any process has a task left.
`held_homes.py` knows which origins and tasks in flight keep a home, `known_urls.py` which puts need no call. `crawl_totals.py`
adds up what the partitions count, and decides when the crawl has ended.
"""
