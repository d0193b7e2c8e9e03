"""What tests of the gate share: one site with rules, and a visit to one of its pages."""

import asyncio
from contextlib import asynccontextmanager
from itertools import pairwise

from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.support import now, scripted_gate

AGENT = "TestBot/1.0 (+https://bot.test)"
SITE = "https://site.test"
ROBOTS, PAGE, PRIVATE = f"{SITE}/robots.txt", f"{SITE}/page", f"{SITE}/private"
RULES = b"User-agent: testbot\nDisallow: /private\nAllow: /private/open\n\nUser-agent: *\nDisallow: /\n"


@asynccontextmanager
async def opened(transport=None, **options):
    """Open a gate, by default with a site that serves RULES; yield it with its transport."""
    transport = transport or ScriptedTransport({ROBOTS: Reply(200, RULES)})
    async with scripted_gate(transport, agent=AGENT, **options) as gate:
        yield gate, transport


class Names:
    """A nameserver: by host the addresses, or for all hosts if they are a str. A look-up takes `took_s`."""

    def __init__(self, addresses: dict[str, str] | str = "192.0.2.1", *, took_s: float = 0.0) -> None:
        self.addresses_of, self.took_s, self.closed = addresses, took_s, 0

    async def addresses(self, host: str) -> tuple[list[str], float]:
        await asyncio.sleep(self.took_s)
        if isinstance(self.addresses_of, str):
            return [self.addresses_of], 60.0
        if host not in self.addresses_of:
            raise OSError(host)
        return [self.addresses_of[host]], 60.0

    async def close(self) -> None:
        self.closed += 1


def serving(robots: bytes) -> ScriptedTransport:
    return ScriptedTransport({ROBOTS: Reply(200, robots)})


async def visit(gate, url=PAGE, status=200, *, took=0.0, **headers):
    """Fetch one page; return when its turn came. Without a status nothing is reported."""
    async with gate.permit(url) as permit:
        granted = now()
        await asyncio.sleep(took)
        if status is not None:
            permit.report(status=status, headers={name.replace("_", "-"): v for name, v in headers.items()})
    return granted


def gaps(times: list[float]) -> list[float]:
    return [round(later - earlier, 6) for earlier, later in pairwise(times)]
