"""The folder of the benchmarks is on the path, so that their modules can be imported."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
