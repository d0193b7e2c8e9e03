"""Ends the `polite` command without a traceback if ^C comes while Python still imports it. No other program is touched."""

import os
import signal
import sys
from itertools import pairwise

_INTERRUPTED = 130


def _exit(number: int, frame: object) -> None:
    if "polite.cli" not in sys.modules and hasattr(sys.modules["polite"], "__version__"):
        # All is imported, and this is another program of that name.
        raise KeyboardInterrupt
    # Nothing is open yet, so nothing needs to be closed.
    os._exit(_INTERRUPTED)


def _is_command() -> bool:
    """Whether this process is `polite` or `python -m polite`."""
    script = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119 - pathlib takes as long as all of this
    return script in ("polite", "polite.exe") or (
        script == "-m" and ("-m", "polite") in pairwise(sys.orig_argv)
    )


def restore() -> None:
    """Let ^C raise KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _exit)
