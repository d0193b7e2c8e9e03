"""How a robots.txt is fetched: over http, https and ftp, from permitted addresses only.

Theory of operation. A transport implements `ports.Transport`: `get(ask)` makes one request and returns a `Reply` or
a `Failed`; it raises no exception but cancellation. `http` uses aiohttp, without its redirects, cookies, hidden
retries and decompression; `ftp` is a small client of its own. `inflate` decodes bodies within a limit and tells how
they ended. `resolver` turns names into addresses, puts those that a user names before those of nameservers, and turns errors
into a `Reason`.

`connection_pool` gives the connection of a robots.txt to the page that comes next. Its `StrictResponse` detects responses on which
aiohttp's two parsers differ; its `SharedResponse` keeps a connection only if the response ended for certain, and closes it when
octets come that no request asked for.

The address guard is a socket factory, so it sees the real address of each connection, after DNS and after
redirects: no literal and no DNS rebinding passes. `guarded_connector` puts it into an aiohttp connector for the
crawler's own sessions. `import polite` loads none of these modules but `address_guard`, so it loads no aiohttp.
"""
