"""Finished tasks on disk."""

from __future__ import annotations

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.truth.experiments.store import Store


def test_a_record_is_found_under_the_key_of_its_task(tmp_path):
    store = Store(tmp_path / "new" / "folder")
    record = {"task": "a", "fingerprint": "plan-1", "rows": [1.5]}
    store.put(record)
    assert store.get("a", "plan-1") == record
    assert store.get("b", "plan-1") is None
    assert [path.name for path in store.folder.iterdir()] == ["a.json"]


def test_records_of_another_plan_are_ignored(tmp_path):
    Store(tmp_path).put({"task": "a", "fingerprint": "plan-1"})
    assert Store(tmp_path).get("a", "plan-2") is None


@pytest.mark.parametrize("text", ["", '{"task": "a', "[]", '{"fingerprint": "plan-1"}'])
def test_a_file_that_is_not_a_record_of_the_task_is_ignored(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    assert Store(tmp_path).get("a", "plan-1") is None


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        Store(tmp_path / "file" / "folder")
