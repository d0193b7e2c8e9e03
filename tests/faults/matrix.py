"""The fault matrix: what servers do wrong, and exactly what each of it comes to. The tests and docs/faults.md are made from it."""

from tests.faults.rows.messages import CODINGS, FRAMING, HEADS
from tests.faults.rows.network import CERTIFICATES, CONNECTIONS, FTP, NAMES
from tests.faults.rows.redirects import REDIRECTS
from tests.faults.rows.responses import BODIES, REFUSALS, STATUSES

MATRIX = [
    *BODIES, *STATUSES, *REDIRECTS, *REFUSALS, *FRAMING, *CODINGS, *HEADS, *CONNECTIONS, *NAMES, *CERTIFICATES, *FTP
]  # fmt: skip
