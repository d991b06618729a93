"""A Dask cluster of processes of this machine: a scheduler and two workers."""

import subprocess
import sys
import time
from contextlib import contextmanager

from .processes import PATIENCE, environment


def started(*arguments, folder):
    """A process of the cluster."""
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@contextmanager
def two_workers(folder):
    """Address of a scheduler with two workers, and the workers' processes."""
    import distributed

    known = folder / "scheduler.json"
    here = ("--host", "127.0.0.1", "--scheduler-file", str(known), "--no-dashboard")
    scheduler = started("distributed.cli.dask_scheduler", *here, "--port", "0", folder=folder)
    processes = [scheduler]
    try:
        options = ("--no-nanny", "--nthreads", "1", "--local-directory", str(folder))
        processes += [
            started("distributed.cli.dask_worker", *here, *options, folder=folder) for _ in range(2)
        ]
        end = time.monotonic() + PATIENCE
        while not known.exists():
            assert time.monotonic() < end, "the scheduler did not start"
            time.sleep(0.05)
        with distributed.Client(scheduler_file=str(known), timeout=PATIENCE) as client:
            client.wait_for_workers(2, timeout=PATIENCE)
            yield client.scheduler.address, processes[1:]
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait(timeout=PATIENCE)
