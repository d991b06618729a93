"""A client's file is opened once, for its hash and for its rows."""

from __future__ import annotations

import hashlib

from jigsaw_crl.study import data_file
from jigsaw_crl.study.data_file import open_data


def test_the_hash_is_that_of_the_file_and_none_for_folders_and_large_files(tmp_path, monkeypatch):
    path = tmp_path / "data"
    path.write_bytes(b"rows")
    with open_data(path) as data, open_data(tmp_path) as folder:
        assert data.sha256() == hashlib.sha256(b"rows").hexdigest()
        assert folder.sha256() is None
        monkeypatch.setattr(data_file, "LARGEST_HASHED", 3)
        assert data.sha256() is None


def test_the_hash_is_of_the_bytes_that_are_read_even_if_the_file_is_replaced(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"old")
    with open_data(path) as data:
        (tmp_path / "other").write_bytes(b"new")
        (tmp_path / "other").replace(path)
        assert data.sha256() == hashlib.sha256(data.from_start().read()).hexdigest()
