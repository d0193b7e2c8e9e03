"""The gate: may this URL be fetched, and when?

A `Gate` decides with the parts in `Services`, which compose makes once. The `OriginManager` keeps one robots.txt result for each
origin. If an origin has no valid rules, it gets them once for all that wait (single flight): from the store, or by a
`RobotsFetcher`, which drives an `Exchange` over the transports; each of its requests takes a turn. A `Permit` first requires that
the rules allow its URL, then waits for a turn (`Turns` calls the pacer), and looks at the rules again if they changed meanwhile.
While it waits it keeps only its `Grounds`, and holds no rules and no connection. `report` settles the turn: the origin's delay runs
from then, or from the end of the block with `Anchor.END`. Leaving the block releases the turn.

`Services` (`services.py`) holds the parts, and some small ones of its own: `Decider` decides at once or in a thread,
`WaitingPermits` counts those that wait, `HeldTurns` takes back a turn that is held for too long, `OpenPermits` finds a task that
would wait for its own turn, and `Shutdown` tells permits and frontiers that the gate closes.
"""
