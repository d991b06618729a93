"""Fragment files, as a coordinator receives them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jigsaw_crl.errors import InputError
from jigsaw_crl.fragment import Fragment
from jigsaw_crl.study.files import readable

__all__ = ["read_fragment", "read_fragments"]

# 5,000 labels with evidence at two scales and four decimals take under a gigabyte; a file beyond
# that is not a fragment, and reading it first would be the harm.
MOST_BYTES = 1 << 30


def read_fragment(path: str | Path) -> Fragment:
    """One fragment file, checked."""
    file = Path(path)
    with readable(file):
        if file.is_dir():
            raise InputError("this is a folder", "Name the fragment files in it.", path=file)
        if file.stat().st_size > MOST_BYTES:
            raise InputError(
                "the file is larger than any fragment", "Check what was sent.", path=file
            )
        text = file.read_bytes()
    return Fragment.from_json(text, path=file)


def read_fragments(paths: Iterable[str | Path]) -> dict[str, Fragment]:
    """Fragments by client name; two of one client are refused, and so are labels that differ
    only by case or spaces."""
    pieces: dict[str, Fragment] = {}
    labels: dict[str, str] = {}
    for path in paths:
        piece = read_fragment(path)
        if piece.client in pieces:
            raise InputError(
                "another file holds a fragment of the same client",
                "Send one fragment per client.",
                client=piece.client,
                path=path,
            )
        for label in piece.labels:
            first = labels.setdefault(label.strip().casefold(), label)
            if first != label:
                raise InputError(
                    f"the label {label!r} differs from another client's {first!r} only by case "
                    "or spaces",
                    "Labels are shared between clients: spell each one way.",
                    client=piece.client,
                    path=path,
                )
        pieces[piece.client] = piece
    return pieces
