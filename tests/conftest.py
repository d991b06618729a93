"""How tests are shared out between workers, and that a slow machine fails none of them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says something of the machine, nothing of the code.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Tests that share processes and depend on their order: one worker takes them all.
TOGETHER = ("tests/federated/test_live.py",)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Each test by itself, except files whose tests belong together, which start first.

    `--dist loadgroup` is for this, but xdist 3.8 writes the group's name to where pytest 9.2 no
    longer reads it.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.split("::", 1)[0]
            return file if file in TOGETHER else nodeid

    return Scheduling(config, log)
