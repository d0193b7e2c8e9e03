"""HTTP clients that wait at a gate, and drop-in replacements for other robots.txt parsers.

`aiohttp` has a client middleware, and `session` opens a session with it on one connection pool with robots.txt.

`protego` has the interface of the package Protego, `robotparser` the one of `urllib.robotparser`. Both parse and decide with
polite's rules; docs/how-to/replace-protego.md lists the differences. Callers of these interfaces pass any value as user agent and
URL, and expect no exception. `lenient` handles that: an agent without a valid name gets the rules for `*`, and what is not a
URL is disallowed. Neither of these two paces requests: use a gate for that.
"""
