"""The backend of a durable frontier in an SQLite file.

`backend.py` runs a `QueueFile` (`database.py`) in a thread of its own. Each batch is one transaction in write-ahead mode, and the
file is locked while it is open. Origins wait in the table `origins` (`waiting_origins.py`) until `activation.py` makes them active.
`schema.py` has the tables and the scheduler orders in SQL, and `totals.py` the counts. Each row has a checksum (`rows.py`): a
damaged task is set aside, and other damage raises StoreFailed. Statements use indexes only, so a batch takes as long in a queue of
millions as in a short one.
"""
