"""The frontier: a queue of tasks, each given to a worker when its origin may be fetched.

A task from `put` to its end:

1. `put` (`frontier.py`) checks the options, and waits while `max_waiting` tasks wait (`progress.py`).
2. A store (`task_store.py` in memory, `durable/` otherwise) drops URLs that were seen, and gives the task to `dispatcher.py`: at
   once in memory, otherwise when its origin is active.
3. The dispatcher keeps one queue per origin (`origin_queue.py`), and has each wait for one thing at a time: a robots.txt fetch
   slot, its rules, its turn of the gate. It refuses what the rules disallow.
4. When an origin has its turn, the dispatcher lets the scheduler (`checked_scheduler.py`) choose among ready origins, and gives
   the task to an idle worker. The worker receives a permit; `in_flight.py` tracks the task.
5. The permit's block ends: `in_flight.py` finishes, requeues or drops the task, and tells the store. `progress.py` has the counts,
   and ends the frontier when it is closed and nothing is left.

The dispatcher's constructor puts these together, but for the scheduler.
"""
