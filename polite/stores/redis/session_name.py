"""session_name: what a session is called on the server."""

import os
import re
import secrets
import socket

# Of a host's name. That of a pod has at most 63 characters.
_MOST_CHARACTERS = 63


def session_name() -> str:
    """Return a new name that no other session has. It begins with the machine's name and the process id, for operators.

    It has no colon and no line break: the server stores it beside other fields.
    """
    machine = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()[:_MOST_CHARACTERS])
    return f"{machine}-{os.getpid()}-{secrets.token_hex(8)}"
