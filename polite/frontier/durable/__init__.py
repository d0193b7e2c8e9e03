"""A frontier that outlives its process: tasks wait in a backend, and a few of each active origin wait in memory.

`store.py` is the task store. It adds changes to a `Batch`. `writer.py` gives it to the `Backend` (both in `backend.py`): to a file
one batch at a time, while changes collect in the next (group commit), to a shared server several. A put returns once it is
written. From a file, a worker gets its task when its start is written; from a shared server at once, unless `knows_first`.
`active_origins.py` decides which origins have tasks in memory, requests more of them with each batch, and deactivates origins while
others wait, so that memory has a bound. A task that was in flight when the process ended is tried again.
Times in the store follow `StoreClock` (`writer.py`).

A batch's result tells what a file has besides. A shared server tells by itself what other processes did (`News`).

Nothing here knows a backend: `polite.frontier.sqlite` and `polite.frontier.redis` implement the port, and `polite.compose` chooses.
"""
