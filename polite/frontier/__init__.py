"""The frontier: a queue of tasks, each given to a worker when its origin may be fetched.

A task from `put` to its end:

1. `frontier.py` checks the options. `capacity_limiter.py` makes `put` wait while `max_waiting` tasks wait.
2. A store (`task_store.py` in memory, `durable/` otherwise) drops URLs that were seen, and gives the task to `dispatcher.py`.
3. The dispatcher keeps one `origin_queue.py` per origin. It fetches robots.txt within `fetch_slots.py`, and refuses what the rules
   disallow (`task_rules.py`). `turn_seeker.py` requests a turn of the gate, at most one per origin.
   `queue_states.py` has the table of what may happen to a queue.
4. When an origin has its turn, `turn_matcher.py` lets the scheduler (`checked_scheduler.py`) choose among ready origins, and
   assigns the task to an idle worker (`workers.py`). The worker receives a `permit.py`; `in_flight.py` tracks the task.
5. The permit's block ends: `in_flight.py` finishes, requeues or drops the task, and tells the store. `progress.py` has the counts,
   and ends the frontier when it is closed and nothing is left.

`parts.py` puts these together. An origin that gets no turn for long gives up its slot or memory (`postponed_queues.py`,
`long_waits.py`, `sweep.py`). `given_up_queues.py` ends an origin whose rules cannot be had, or that another process has taken.
"""
