"""Deterministic simulation of a crawl: a seed draws a world, which runs in virtual time, in one process, and is repeatable.

Theory of operation. A Plan is drawn from the seed: sites, policies, frontiers, and steps at their times. A Life is one run of
the crawler's process: it opens a Machine (a gate, its frontiers and its clock) over the simulated Sites, takes the steps, and
closes the machine or is killed. The next life opens the files of the last one. The loop has no threads: a job in a thread
takes a drawn time, so it overlaps with other work.

Three parts check the crawl, and none of them looks inside polite. The Judge checks what servers see. Progress checks that each
task and request goes in time. A Ledger per frontier checks each acknowledged task. `check_liveness` alone looks inside: a queue
with tasks has a wait or is ready. All of them find each other in the Scene. The first violation stops the world, and the Trace
shows its events.
"""
