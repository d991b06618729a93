"""Simulated worlds, and scores of an answer against their truth.

The learner never imports this package.

==============  ====================================================================
`simulate`      worlds, their clients and the true answer
`metrics`       errors of a recovered order or fragment against the truth
`experiments`   the paper's figures and tables
`datasets`      small data sets with a known truth
`demo`          the embedded study of `jigsaw demo`
==============  ====================================================================
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, ["datasets", "demo", "metrics", "simulate"]
)
