"""Lets other threads run while a long computation goes on in a thread."""


def let_threads_switch() -> None:
    """Let another thread run, if one has waited for its turn (`sys.getswitchinterval`, 5 ms).

    The interpreter switches threads when a Python function is called, among other moments. Compiled code never does by itself: a
    thread that computes would hold the event loop until it ends. So this function is empty, this file is never compiled, and
    loops that may take more than a few milliseconds call it.
    """
