"""The kits of a federation: what they allow and what they refuse."""

from __future__ import annotations

import json
import stat

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.kits import CONTROLLER, EXECUTOR, init_federation

from .conftest import LABS, read_local

pytestmark = pytest.mark.usefixtures("nvflare")


def test_a_site_accepts_our_class_and_no_code_no_shell_no_log_streaming(made):
    for kit in made.sites.values():
        resources = read_local(kit, "resources.json")
        assert resources["class_allow_list"] == [EXECUTOR]
        assert resources["class_list_enforcement_mode"] == "enforce"
        assert resources["allow_log_streaming"] is False
        assert not [c for c in resources["components"] if "log" in c["path"].lower()]
        roles = read_local(kit, "authorization.json")["permissions"]
        assert roles["project_admin"]["byoc"] == "none"
        assert roles["project_admin"]["shell_commands"] == "none"
        assert roles["project_admin"]["operate"] == "none"
        assert {roles[r] for r in ("org_admin", "lead", "member")} == {"none"}


def test_the_path_of_the_fragment_is_not_where_nvflare_would_announce_it(made):
    """Further entries of resources.json are sent to the server when a site registers."""
    kit = made.sites["lab-1"]
    assert "fragment" not in (kit / "local" / "resources.json").read_text().replace(EXECUTOR, "")
    assert read_local(kit, "jigsaw-site.json") == {"fragment": "fragment.json", "min_rows": 30}


def test_the_coordinator_accepts_our_class_and_keeps_its_jobs_in_its_kit(made):
    resources = read_local(made.coordinator, "resources.json")
    assert resources["class_allow_list"] == [CONTROLLER]
    assert "/tmp/nvflare" not in json.dumps(resources)
    roles = read_local(made.coordinator, "authorization.json")["permissions"]
    assert roles["project_admin"]["byoc"] == "none"
    assert read_local(made.coordinator, "jigsaw-coordinator.json")["sites"] == list(LABS)


def test_only_the_owner_can_read_private_keys(made):
    keys = list(made.project.parent.rglob("*.key"))
    assert len(keys) == len(LABS) + 2
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}
    assert stat.S_IMODE(made.project.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("sites", "says"),
    [
        ([], "not distinct"),
        (["a", "a"], "not distinct"),
        (["localhost"], "not distinct"),
        (["../up"], "site's name"),
        (["a b"], "site's name"),
    ],
)
def test_sites_without_distinct_plain_names_are_refused(sites, says, tmp_path):
    with pytest.raises(InputError, match=says):
        init_federation(tmp_path / "new", sites)
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_not_empty_is_refused(made):
    with pytest.raises(InputError, match="not empty"):
        init_federation(made.project.parent, LABS)
