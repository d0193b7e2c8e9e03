"""The scene of several machines: what all their processes share."""

from collections.abc import Callable

from tests.simulation.machines.conductor import Conductor
from tests.simulation.machines.own_server import own_server
from tests.simulation.machines.plan import MachinesPlan
from tests.simulation.machines.servers import Servers
from tests.simulation.machines.tasks import Disturbances, Tasks
from tests.simulation.machines.virtual_server import VirtualServer
from tests.simulation.machines.wire import ServerState
from tests.simulation.trace import Trace

_SERVER_EPOCH = 1_700_000_123.0


class MachinesScene:
    """The parts of a world. Each gets the scene, and finds the others in it.

    Attributes:
        trace: what happened, and the first violation.
        servers: the web servers.
        server: the store that the machines share; `state` says whether it answers.
    """

    def __init__(self, plan: MachinesPlan, tell: Callable[[str], None] | None) -> None:
        self.plan = plan
        self.conductor: Conductor = Conductor()
        self.now: Callable[[], float] = self.conductor.time
        self.trace: Trace = Trace(self.now, tell)
        self.trace.stop = self.conductor.stop
        self.disturbances: Disturbances = Disturbances(self)
        self.servers: Servers = Servers(self)
        self.tasks: Tasks = Tasks(self)
        self.server: VirtualServer = VirtualServer(own_server(), lambda: _SERVER_EPOCH + self.now())
        self.state: ServerState = ServerState()

    @property
    def events(self) -> int:
        """How much has happened: it grows while the crawl goes on."""
        return self.servers.events + self.tasks.events
