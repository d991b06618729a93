"""How much a client's file may make this program hold in memory, checked before it is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import pluralise

__all__ = ["MOST_COLUMNS", "check_columns", "files_below", "fits", "parquet_parts"]

# The directions of this many columns take a gigabyte with 1,000 latents.
MOST_COLUMNS = 100_000
# What is held in memory as a whole may take this many bytes, or this many times the file's size.
# Texts and counts of real files are compressed up to about thirty times.
_SMALL, _EXPANSION = 1 << 26, 100
# Entries of a folder that are looked at, and levels below it.
_MOST_ENTRIES, _MOST_LEVELS = 20_000, 8


def fits(size: int, file_size: int) -> bool:
    """May `size` bytes be held in memory for a file of `file_size` bytes?"""
    return size <= max(_SMALL, _EXPANSION * file_size)


def check_columns(count: int, fail: Callable[[str, str], InputError]) -> None:
    """Refuse a table with more than `MOST_COLUMNS` columns."""
    if count > MOST_COLUMNS:
        raise fail(
            f"it has {pluralise(count, 'column')}, more than {MOST_COLUMNS}",
            "Keep the columns that matter, or summarise them first.",
        )


def files_below(folder: Path, ending: str) -> Iterator[Path]:
    """Files with this ending in a folder and its sub-folders, at most eight levels down.

    Links to folders are not followed, and hidden entries and those that begin with an underscore
    are left out. After 20,000 entries an `InputError` is raised.
    """
    left = _MOST_ENTRIES
    level = [folder]
    for _ in range(_MOST_LEVELS):
        deeper: list[Path] = []
        for place in level:
            with os.scandir(place) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        raise InputError(
                            f"the folder holds more than {_MOST_ENTRIES} entries",
                            "Name the client's own folder.",
                            path=folder,
                        )
                    if entry.name.startswith((".", "_")):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        deeper.append(place / entry.name)
                    elif entry.name.endswith(ending) and entry.is_file():
                        yield place / entry.name
        level = sorted(deeper)


def parquet_parts(folder: Path) -> list[tuple[Path, dict[str, str]]]:
    """Files of a folder with the `key=value` pairs of their paths, in a fixed order."""
    parts = []
    for file in sorted(files_below(folder, ".parquet")):
        inner = file.relative_to(folder).parts
        keys = dict(p.split("=", 1) for p in inner[:-1] if "=" in p)
        parts.append((file, {k: unquote(v) for k, v in keys.items()}))
    return parts
