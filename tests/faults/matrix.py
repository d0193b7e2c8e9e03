"""The fault matrix: what servers do wrong, and exactly what each of it comes to. The tests and docs/faults.md are made from it."""

from tests.faults.rows.bodies import BODIES
from tests.faults.rows.certificates import CERTIFICATES
from tests.faults.rows.codings import CODINGS
from tests.faults.rows.connections import CONNECTIONS
from tests.faults.rows.framing import FRAMING
from tests.faults.rows.ftp import FTP
from tests.faults.rows.heads import HEADS
from tests.faults.rows.names import NAMES
from tests.faults.rows.redirects import REDIRECTS
from tests.faults.rows.refusals import REFUSALS
from tests.faults.rows.statuses import STATUSES

MATRIX = [
    *BODIES,
    *STATUSES,
    *REDIRECTS,
    *REFUSALS,
    *FRAMING,
    *CODINGS,
    *HEADS,
    *CONNECTIONS,
    *NAMES,
    *CERTIFICATES,
    *FTP,
]
