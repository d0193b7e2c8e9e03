"""The frontier that many processes share: a backend on homes and partitions of `polite.stores.redis`.

Theory of operation. Tasks wait on the server, in a queue per origin. A process that holds an origin's home has its first tasks in
memory (`durable.active_origins`). `backend.py` has each batch split by partition (`batch_changes.py`, `partition_batch.py`), and
tells the durable store what the session learns: homes that come and go, tasks that other processes put, and whether any process
has a task left. `stored_task.py` has the form in which the server keeps a task. `held_homes.py` knows which origins and tasks in
flight keep a home, `home_demand.py` whether this process should have homes at all. `known_urls.py` knows which puts need no call,
`gone_tasks.py` which rows come too late. `crawl_totals.py` adds up what the partitions count, and decides when the crawl has ended.
"""
