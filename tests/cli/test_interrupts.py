"""An interrupt, or a request to terminate, ends a command quietly and with all its processes."""

import signal
import subprocess
import sys
import time

import psutil
import pytest

from ..processes import MAIN, PATIENCE, python

# Python raises the interrupt when the module that it is about to load is looked for.
INTERRUPTED_IMPORT = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == "jigsaw_crl.cli.app":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from jigsaw_crl.cli import main
main()
"""


def test_an_interrupt_while_the_program_loads_is_quiet():
    done = python("-c", INTERRUPTED_IMPORT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_worker_processes_end_with_the_command(end, tmp_path):
    words = ["reproduce", "tables", "--only", "p40-K15-q0.6", "--workers", "2"]
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *words, "--out", str(tmp_path)], stderr=subprocess.PIPE
    )
    try:
        family = []
        until = time.monotonic() + PATIENCE
        while len(family) < 2 and time.monotonic() < until:
            time.sleep(0.1)
            family = psutil.Process(process.pid).children(recursive=True)
        assert len(family) >= 2
        time.sleep(1)  # the workers have tasks by then
        process.send_signal(end)
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert b"Traceback" not in said
        assert said.splitlines()[-1] == b"interrupted"
        _, alive = psutil.wait_procs(family, timeout=PATIENCE)
        assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]
    finally:
        process.kill()
