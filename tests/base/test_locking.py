"""One run writes to a folder or record at a time, and its end frees the lock."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import locked

# Holds the lock, starts a process that lives as long as its input, and ends or is killed by it.
OWNER = """
import os, signal, sys
from pathlib import Path
from jigsaw_crl.base.files import locked
with locked(Path(sys.argv[1])):
    owner = os.getpid()
    if not os.fork():
        if sys.argv[2] == "killed":
            os.kill(owner, signal.SIGKILL)
        sys.stdin.read()
        os._exit(0)
    if sys.argv[2] == "killed":
        signal.pause()
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_second_run_is_refused_with_a_clear_line(tmp_path, kind):
    path = tmp_path if kind == "folder" else tmp_path / "log.jsonl"

    def second():
        with locked(path, "the record", patience=0.1):
            pass

    with ThreadPoolExecutor(1) as other:
        with locked(path, "the record"):
            error = other.submit(second).exception()
        assert isinstance(error, InputError)
        assert "the record is in use by another run" in str(error)
        other.submit(second).result()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("end", ["ordinary", "killed"])
def test_a_process_that_was_started_meanwhile_does_not_keep_the_lock(tmp_path, end):
    command = [sys.executable, "-c", OWNER, str(tmp_path), end]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as owner:
        assert owner.wait() == (0 if end == "ordinary" else -9)
        with locked(tmp_path):
            pass
