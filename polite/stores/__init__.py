"""Stores keep robots.txt results, long back-offs and validators: in memory, in an SQLite file, or on a shared server.

Theory of operation. A store implements `ports.RobotsStore`; one that also keeps back-offs implements `ports.BackOffStore`. `memory`
is an LRU cache. `sqlite` never blocks the event loop: one thread runs all jobs in batches. Jobs that arrive during a batch form the
next one, so a transaction serves many saves (group commit). While the file fails, writes wait in memory. `robots_database` reads
and writes the file, upgrades older ones, and keeps it within one limit in octets; its `StoreInspector` serves the command line.
`codec` converts snapshots to rows, and to octets with a checksum for other stores. `redis` keeps them on a server, with all else
that processes of one crawl share.

`database` owns a connection: it reports SQLite's errors as StoreFailed and renames a corrupt file, never deletes it. The
frontier's file uses it too.
"""
