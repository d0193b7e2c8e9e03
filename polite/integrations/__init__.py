"""HTTP clients whose requests wait at a gate, exporters of metrics, and drop-in replacements for other robots.txt parsers.

Each client has a file with its name: at the seam where the client sends one request, a permit is entered, the URL that the gate
decided about is sent, the head is reported, and the permit is left when the body ends. So redirect hops, retries and logins wait
too. A permit is entered for the current task or thread, since one that has a response open would wait for itself. `session` opens
an aiohttp session on one connection pool with robots.txt.

`metrics` has what gates and frontiers count; `prometheus` and `opentelemetry` export it.

`protego` has the interface of the package Protego, `robotparser` the one of `urllib.robotparser`. Both parse and decide with
polite's rules; docs/how-to/replace-protego.md lists the differences. Callers of these interfaces pass any value as user agent and
URL, and expect no exception: an agent without a valid name gets the rules for `*`, and what is not a URL is disallowed. Neither of
these two paces requests: use a gate for that.
"""
