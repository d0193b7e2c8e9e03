"""Builds gates and frontiers, and chooses what they are made of (as `polite fetch` and `integrations/session.py` do for a part).

`gate.py` builds a gate, `frontier.py` a frontier in memory, in a file, or on a shared store. `shared.py` has a gate join a crawl of
many processes: then its turns are granted only at homes that this process holds. `checked.py` checks what users give.
"""
