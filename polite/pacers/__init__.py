"""Pacers: they turn the decisions of `polite.pacing` into waits.

A pacer has the methods of `pacing.pacer.Pacer`. `LocalPacer` drives one `Turnstile` from one event loop. A request whose scopes are
free gets its turn without a wait. Any other request is a future, or a callback (`CallbackPacer`), in a dict keyed by its turn: it
has no task and no timer of its own. One timer is set for the earliest time at which the turnstile may grant a turn. When it fires,
all turns that are due are granted in order. A cancelled wait withdraws its turn, granted or not, so that no turn is lost. All clock
reads of pacing happen here.

`SharedPacer` is a LocalPacer for a crawl of many processes. Its turnstile paces the homes (hosts, mostly) that this process
holds (homes.Homes). `tenancies.py` keeps what the last owner of a home left, and what the next one must know.
`divided_scopes.py` keeps to this process's share of the scopes that have no home.
"""
