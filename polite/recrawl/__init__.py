"""When a page is worth fetching again, and how to ask whether it changed (RFC 9110, 13; RFC 9111, 4.2): no I/O, no clock.

`validators` reads ETag and Last-Modified of a response, and makes a conditional request of them. `freshness` reads for how long
it is fresh. `policy` has the user's limits. What a gate remembers between two fetches is in `polite.gate.recrawl`.
"""
