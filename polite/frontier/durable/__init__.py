"""A frontier that outlives its process: tasks wait in a backend, and a few of each active origin wait in memory.

`store.py` is the task store. It adds changes to a `Batch`. `writer.py` gives one batch at a time to the `Backend` (both in
`backend.py`): while one is applied, changes collect in the next (group commit). A put returns, and a worker receives its task,
once that is written. `active_origins.py` decides which origins have tasks in memory, requests more of them with each batch, and
deactivates origins while others wait, so that memory has a bound. A task that was in flight when the process ended is tried again.
Times in the store follow `StoreClock` (`writer.py`).

Nothing here knows a backend: `polite.frontier.sqlite` implements the port, and `polite.compose` chooses it.
"""
