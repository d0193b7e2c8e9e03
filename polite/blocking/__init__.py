"""The gate for threads: `polite.blocking.open_gate` has the options of `polite.open_gate`, and its calls block.

    with polite.blocking.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate:
        with gate.permit("https://example.com/about") as permit:
            ...  # fetch permit.url, and call permit.report()

Theory of operation. A gate has one thread, which runs an event loop and the ordinary gate on it (`loop_thread`). Each thread
that calls the gate is represented by one task of that loop, so the gate knows which permits a thread holds, as it
does for tasks. A call hands a coroutine to that task, and waits for its result; an error is raised in the caller unchanged. If
the wait is interrupted, such as by Ctrl-C, the coroutine is cancelled, and a permit that came too late is given back.

No thread of a program that ends, and no forked process, waits for the loop's thread: it is a daemon, a fork is noticed by its
process id, and at the exit of the interpreter the gate is closed, for at most a few seconds.
"""

from polite.blocking.gate import Gate, Permit, open_gate

__all__ = ["Gate", "Permit", "open_gate"]
