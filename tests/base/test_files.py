"""Files are written completely or not at all; system errors name the file."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable, writable, write_file, write_text


def test_text_is_written_as_utf_8_and_replaces_what_was_there(tmp_path):
    path = tmp_path / "notes.txt"
    for text in ("first", "zweite Zeile: äß漢\n"):
        assert write_text(path, text) == path
        assert path.read_bytes() == text.encode("utf-8")
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


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


def test_errors_while_writing_name_the_file_and_the_reason(tmp_path):
    path = tmp_path / "missing" / "notes.txt"
    with pytest.raises(
        InputError, match=r"it cannot be written \(No such file.*permissions"
    ) as caught:
        write_text(path, "text")
    assert caught.value.path == path
    says = r"^file 'out': the folder cannot be written \(Read-only"
    with pytest.raises(InputError, match=says), writable(Path("out"), "the folder"):
        raise OSError(errno.EROFS, "Read-only file system")


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
    assert "\n" not in str(caught.value)
