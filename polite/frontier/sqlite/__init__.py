"""The backend of a durable frontier in an SQLite file.

`queue_file.py` has the backend, and the `QueueFile` that it runs in a thread of its own. Each batch is one transaction in
write-ahead mode, and the file is locked while it is open (`file_lock.py`). `schema.py` has the tables, the totals, the scheduler
orders in SQL and the notes, `seen.py` the URLs that were seen. Statements use indexes only, so a batch takes as long in a queue
of millions as in a short one.
"""
