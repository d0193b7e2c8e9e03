"""Builds gates and frontiers: the only package that chooses implementations.

`gate.py` builds a gate, `frontier.py` a frontier in memory, in a file, or on a shared store. `shared.py` has a gate join a crawl of
many processes: then its turns are granted only at homes that this process holds.
"""
