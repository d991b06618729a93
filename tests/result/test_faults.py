"""A full disk or a kill at any step of a write leaves the old files or the new ones, whole."""

import errno
import os
import resource
import signal
import sys
import traceback
import warnings

import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork"),
    pytest.mark.usefixtures("quick_page"),
]

DONE, SURVIVED, REFUSED, BROKEN, KILLED = 0, 4, 3, 1, 9
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def run_child(work, prepare):
    """Run in a child process, prepared for faults; its exit code.

    SURVIVED: there was a fault, and the work was done all the same.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forking a process with threads
        child = os.fork()
    if child == 0:
        code = BROKEN
        try:
            faults = prepare()
            work()
            code = SURVIVED if faults else DONE
        except InputError as error:
            code = REFUSED if "cannot be written" in str(error) else BROKEN
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def fault_at(step, place, *, kill):
    """Fail at the given step that changes something below a folder."""
    count = 0
    faults: list[int] = []
    sync = os.fsync

    def at_step():
        nonlocal count
        count += 1
        if count - 1 != step:
            return
        faults.append(step)
        if kill:
            os._exit(KILLED)
        raise OSError(errno.ENOSPC, "No space left on device")

    def watch(event, about):
        if not about or not str(about[0]).startswith(str(place)):
            return
        removing = event in ("os.remove", "os.rmdir", "shutil.rmtree")
        writing = event == "open" and isinstance(about[2], int) and about[2] & _WRITES
        # A full disk can be cleared.
        if event in ("os.rename", "os.mkdir", "os.link") or writing or (removing and kill):
            at_step()

    def counted(handle):
        at_step()
        sync(handle)

    def prepare():
        os.fsync = counted
        sys.addaudithook(watch)
        return faults

    return prepare


def full_after(size):
    """Let the system refuse every file larger than this."""

    def prepare():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        return []

    return prepare


def hidden(root):
    return [p.name for p in root.rglob("*") if p.name.startswith(".")]


@pytest.fixture(scope="module")
def results():
    world = jc.simulate.setting("A", 0)
    exact = jc.recover(world.clients())
    evidence = jc.recover(world.clients(n_samples=500, seed=1))
    paper = jc.recover(world.clients(), method="paper")
    return {r.order.mode: r for r in (exact, evidence, paper)}


def _files(root):
    return {p.name: p.read_bytes() for p in sorted(root.iterdir()) if p.is_file()}


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_result_that_does_not_fit_on_the_disk_leaves_the_old_one(share, results, tmp_path):
    root = results["exact"].save(tmp_path / "out")
    before = _files(root)
    new = _files(results["evidence"].save(tmp_path / "new"))
    size = int(share * max(len(data) for data in new.values()))
    assert run_child(lambda: results["evidence"].save(root), full_after(size)) == REFUSED
    assert _files(root) == before
    assert hidden(root) == []
