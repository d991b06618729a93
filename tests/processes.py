"""Other processes of this package, and how long tests wait for them."""

import os
import subprocess
import sys
from pathlib import Path

import jigsaw_crl as jc

# Seconds after which a step is given up. Each takes far less, even on a busy machine.
PATIENCE = 800
MAIN = "from jigsaw_crl.cli import main; main()"


def environment():
    """That of a process that finds this package where the tests do."""
    own = str(Path(jc.__file__).parents[1])
    paths = os.pathsep.join([own, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}


def python(*arguments, **options):
    """How Python ended and what it said."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=environment(),
        **options,
    )
