"""Files are written completely or not at all; system errors name the file."""

import errno
import os
import stat
from pathlib import Path

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import (
    check_output,
    is_document,
    read_file,
    readable,
    write_file,
    write_text,
)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyError("x")])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "notes.txt"
    path.write_text("old")

    def fail(file):
        file.write(b"half")
        raise error

    expected = InputError if isinstance(error, OSError) else KeyError
    with pytest.raises(expected):
        write_file(path, fail)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (FileNotFoundError(), "there is no such file. Check the path"),
        (PermissionError(), "reading it is not permitted. Ask for permission"),
        (IsADirectoryError(errno.EISDIR, "Is a directory"), r"cannot be read \(Is a directory\)"),
        (EOFError("ended\nearly"), r"cannot be read \(ended early\)"),
    ],
)
def test_errors_while_reading_name_the_file_and_the_remedy(error, says, tmp_path):
    with pytest.raises(InputError, match=says) as caught, readable(tmp_path / "lab.csv"):
        raise error
    assert "lab.csv" in str(caught.value)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o022, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_the_umask_decides_who_may_read_a_new_file(tmp_path, umask):
    assert mode(write_text(tmp_path / "a", "text")) == 0o666 & ~umask


def test_a_private_file_is_its_owners_whatever_the_umask(tmp_path, umask):
    path = tmp_path / "key"
    path.write_text("old")
    path.chmod(0o644)
    assert mode(write_text(path, "new", private=True)) == 0o600


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    path = write_text(tmp_path / "a", "old")
    path.chmod(0o640)
    assert mode(write_text(path, "zweite Zeile: äß漢")) == 0o640
    assert path.read_text(encoding="utf-8") == "zweite Zeile: äß漢"
    assert os.listdir(tmp_path) == ["a"]


def test_what_a_link_points_to_is_written_and_the_link_stays(tmp_path):
    (tmp_path / "there").write_text("old")
    (tmp_path / "link").symlink_to("there")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_text() == "new"


def test_file_and_folder_are_synchronised_with_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_mode))
    write_text(tmp_path / "a", "text")
    assert [stat.S_ISDIR(m) for m in synced] == [False, True]


def test_a_new_file_never_replaces_one(tmp_path):
    path = tmp_path / "key"
    write_file(path, lambda file: file.write(b"first"), new=True)
    with pytest.raises(InputError, match="exists already"):
        write_file(path, lambda file: file.write(b"second"), new=True)
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["key"]


@pytest.mark.parametrize("name", ["zero", "stdin"])
def test_a_device_is_not_read(name):
    with pytest.raises(InputError, match=r"this is a (device|pipe|socket)|no such"):
        read_file(Path("/dev") / name, 10)


MINE = is_document("fragment")


def test_an_input_is_never_replaced_under_any_name(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"format":"jigsaw-crl/fragment"}')
    os.link(path, tmp_path / "hard")
    (tmp_path / "soft").symlink_to("a.json")
    for name in ("a.json", "hard", "soft"):
        with pytest.raises(InputError, match="input of this command"):
            check_output(tmp_path / name, MINE, inputs=[None, path], force=True)


def test_a_file_inside_an_input_folder_is_replaced_only_if_it_is_ours(tmp_path):
    (tmp_path / "part.parquet").write_bytes(b"PAR1")
    (tmp_path / "a.json").write_text('{"format":"jigsaw-crl/fragment"}')
    check_output(tmp_path / "a.json", MINE, inputs=[tmp_path])
    with pytest.raises(InputError, match="input of this command"):
        check_output(tmp_path / "part.parquet", MINE, inputs=[tmp_path], force=True)
