"""The ports: what the gate and the frontier need from outside, each a Protocol of a few methods. Implement one to replace it.

`fetching` sends requests, `stores` keeps what outlives a run, `clock` tells the time. `scheduler` says in which order, and
`listener` has what watches. Import all of them from here.
"""

from polite.ports.clock import Clock, Timer
from polite.ports.fetching import AddressSource, Signer, StreamingTransport, Transport
from polite.ports.listener import Listener, Meter
from polite.ports.scheduler import Scheduler
from polite.ports.stores import BackOffStore, RobotsStore, SavedBackOff, ValidatorStore
from polite.recrawl import Validators
from polite.robots.exchange import Ask, Failed, Reply
from polite.robots.snapshot import Snapshot, merged

__all__ = [
    "AddressSource",
    "Ask",
    "BackOffStore",
    "Clock",
    "Failed",
    "Listener",
    "Meter",
    "Reply",
    "RobotsStore",
    "SavedBackOff",
    "Scheduler",
    "Signer",
    "Snapshot",
    "StreamingTransport",
    "Timer",
    "Transport",
    "ValidatorStore",
    "Validators",
    "merged",
]
