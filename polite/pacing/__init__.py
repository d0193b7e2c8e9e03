"""Pacing: when the next request may go. No I/O, no clock: `now` is an argument, in monotonic seconds. Only the `pacer` waits.

A request names its scopes, narrowest first: its origin and perhaps a domain, an address, the whole crawl (`scopes`). The
`turnstile` grants it a turn when all of them are free, together or not at all. A waiting turn holds no scope (`turn`, which tells
what is known of turns and scopes), and a scope that waits for the end of its delay costs one entry of a calendar, so a decision
costs O(scopes x log n) however many origins there are. The `pacer` drives the turnstile by the clock, with one timer. Gates of one
process keep each other's delays (`process_delays`).

The crawler's report becomes an `outcome`, and the `throttle` makes the next delay of it: the longest that a part of it names. A
new law of pacing is a new part there; what it reads of a response is a field of the outcome, as `rate_limits` is. A `circuit`
adds a delay after failures in a row, and `budgets` end a site's visits. Settling a turn starts the delay, and a delay only ever
grows.
`policy` holds the user's options, `effective_policy` resolves them for one origin or scope.
"""
