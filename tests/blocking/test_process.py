"""A gate for threads in a process of its own: Ctrl-C, forks, and the exit of the interpreter."""

import sys

import pytest

from tests.blocking.support import run_script

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and forks of POSIX")


def test_ctrl_c_cancels_the_wait_and_loses_nothing():
    ran = run_script("""
import os, signal
gate = opened()
held = gate.acquire(PAGE)
def later():
    while not gate._thread._waiting:
        pass
    os.kill(os.getpid(), signal.SIGINT)
other = Thread(later)
try:
    with gate.permit(PAGE):
        print("never")
except KeyboardInterrupt:
    print("interrupted")
other.outcome()
print(gate.explain(PAGE).outlook.waiting)
held.leave()
with gate.permit(PAGE) as permit:
    print(permit.valid)
gate.close()
""")

    assert (ran.stdout.split(), ran.stderr) == (["interrupted", "0", "True"], "")


def test_a_fork_is_refused_and_the_parent_goes_on():
    ran = run_script("""
import os
gate = opened()
with gate.permit(PAGE) as permit:
    child = os.fork()
    if child == 0:
        for call in (lambda: gate.check(PAGE), lambda: gate.acquire(PAGE)):
            try:
                call()
            except polite.GateClosed as error:
                print("is a fork" in str(error), flush=True)
        print(permit.valid, flush=True)
    else:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        print(permit.valid)
        permit.report(status=200)
gate.close()
if child:
    print("parent")
""")

    assert ran.stdout.split() == ["True", "True", "False", "0", "True", "parent"]


def test_the_interpreter_exits_without_close():
    ran = run_script("""
import logging
logging.basicConfig()
gate = opened()
other = opened()
other.check(PAGE)
permit = gate.acquire(PAGE)
waits = Thread(lambda: gate.acquire(PAGE))
while not gate._thread._waiting:
    pass
""")

    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_gate_that_cannot_close_does_not_stop_the_exit():
    ran = run_script("""
import asyncio
import polite.blocking.loop_thread as module
module._EXIT_S = 0.1
class Hanging(ScriptedTransport):
    async def close(self):
        await asyncio.sleep(1000)
gate = opened(Hanging())
""")

    assert ran.returncode == 0
