"""Benchmarks, as ratios against peers in the same run.

`python -m benchmarks NAME ...` runs each in a process of its own. Machines differ and are never idle, so a figure counts only
beside another one of the same run: `stopwatch` times alternatives in interleaved rounds and compares medians. `corpus` gives
files and URLs, `peers` the other engines, `hosts` a server with many loopback hosts that logs each request.
"""
