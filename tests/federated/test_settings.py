"""The settings of a site and of the coordinator."""

import json

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.settings import (
    COORDINATOR_FILE,
    SITE_FILE,
    coordinator_settings,
    site_settings,
)

from ..fragment.examples import assert_one_line

FILES = {SITE_FILE: site_settings, COORDINATOR_FILE: coordinator_settings}


def test_paths_are_relative_to_the_kit(tmp_path):
    (local := tmp_path / "local").mkdir()
    (local / SITE_FILE).write_text('{"fragment": "out/lab.json", "min_rows": 9}')
    own = site_settings(local)
    assert own.fragment == local.parent / "out" / "lab.json"
    assert own.min_rows == 9
    (local / COORDINATOR_FILE).write_text('{"sites": ["a", "b"], "results": "r", "keys": "/k"}')
    hub = coordinator_settings(local)
    assert hub.sites == ("a", "b")
    assert hub.results == local.parent / "r"
    assert str(hub.keys) == "/k"


@pytest.mark.parametrize(
    ("name", "document", "says"),
    [
        (SITE_FILE, {"fragment": "f", "table": "rows.csv"}, "unknown field 'table'"),
        (SITE_FILE, {}, "no field 'fragment'"),
        (SITE_FILE, {"fragment": "f", "min_rows": 0}, "'min_rows'"),
        (SITE_FILE, {"fragment": "f", "min_rows": "9"}, "'min_rows'"),
        (COORDINATOR_FILE, {"sites": ["a", "a"], "results": "r"}, "listed twice"),
        (COORDINATOR_FILE, {"sites": [], "results": "r"}, "'sites'"),
        (COORDINATOR_FILE, {"sites": "a", "results": "r"}, "'sites'"),
        (COORDINATOR_FILE, {"sites": ["a", "../b"], "results": "r"}, "site's name is '../b'"),
        (COORDINATOR_FILE, {"sites": ["a"], "results": 3}, "'results'"),
    ],
)
def test_invalid_settings_are_refused_with_the_name_of_the_file(name, document, says, tmp_path):
    (tmp_path / name).write_text(json.dumps(document))
    with pytest.raises(InputError, match=says) as caught:
        FILES[name](tmp_path)
    assert name in str(caught.value)
    assert_one_line(caught.value)
