"""Stores keep robots.txt results and long back-offs: in memory, or in an SQLite file between runs.

Theory of operation. A store implements `ports.RobotsStore`; one that also keeps back-offs implements
`ports.BackOffStore`. `memory` is an LRU cache. `sqlite` never blocks the event loop: it gives reads to one
`batch_worker` and writes to another, each with one thread. Jobs that arrive during a batch form the next one, so a
transaction serves many saves (group commit). `robots_database` reads and writes the file, `rows` converts rows,
`codec` makes octets of a snapshot for a user's store, `checksum` detects damaged rows, `schema` upgrades older files,
and `eviction` keeps the file within its limits.

`database` owns a connection: it reports SQLite's errors as StoreFailed and renames a corrupt file, never deletes
it. If the file fails, `fallback` keeps writes in memory until it works again. `inspector` serves the command line.
The frontier's file uses `database`, `checksum` and `lock` too.
"""
