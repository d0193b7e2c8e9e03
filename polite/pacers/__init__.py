"""A pacer for a crawl of many processes.

`homes.py` names homes, what one process owns and paces alone, and what the next owner must know.
`SharedPacer` is a LocalPacer whose turnstile paces the homes (hosts, mostly) that this process holds (homes.Homes).
`tenancies.py` keeps what the last owner of a home left, and what the next one must know. `DividedScopes` keeps to this process's
share of the scopes that have no home.
"""
