"""Ratios against peers: the table of README, the history of releases, and the check that no ratio has fallen.

`./dev bench --table` prints all of them. `./dev bench --record` writes the tracked ones to benchmarks/history.json, and
`./dev bench --check` compares them with the last release. A ratio is the peer's figure divided by polite's, both measured in
alternating rounds of one process: the larger, the better. Tracked ratios are chosen for their small scatter on a busy machine.
"""
