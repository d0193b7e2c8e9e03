"""Ratios against peers: the table of README, the history of releases, and the check that no ratio has fallen.

`./dev bench --table` prints all of them. `./dev bench --record` writes the tracked ones to benchmarks/history.json, and
`./dev bench --check` compares them with the last release. A ratio is the peer's figure divided by polite's, both measured in
alternating rounds of one process: the larger, the better. Tracked ratios are those whose scatter on a busy
machine is small. With a load of ten on two cores, single processes measured each three to five times: draws from what they
gave (three for the record, up to nine for a check) let one of the tracked ratios fall in 1 to 2 % of checks of unchanged
code. A task of a frontier (39 % from least to most), `allows` with 1,000 rules, parsing with a decision, and a crawl in virtual
time scattered more, and are in the table only.
"""
