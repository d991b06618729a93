"""The table at the head of each package of the learner lists its modules."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOMS = ("base", "moments", "client", "diagnostics", "evidence", "nullcone", "baseline", "fragment")


@pytest.mark.parametrize("room", ROOMS)
def test_the_table_of_a_package_lists_every_module_once(room):
    package = import_module(f"jigsaw_crl.{room}")
    files = {file.stem for file in Path(package.__file__).parent.glob("*.py")} - {"__init__"}
    listed = re.findall(r"^`(\w+)` ", package.__doc__, re.MULTILINE)
    assert sorted(listed) == sorted(files)
