"""Fragment files, as a coordinator receives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable
from jigsaw_crl.client.checks import label_key
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["read_bytes", "read_fragment", "read_fragments"]

# 5,000 labels with evidence at two scales and four decimals take under a gigabyte; a file beyond
# that is not a fragment, and reading it first would be the harm.
MOST_BYTES = 1 << 30


def read_fragment(path: str | Path) -> Fragment:
    """One fragment file, checked."""
    text = read_bytes(path)
    if text.startswith(b'{"format":"jigsaw-crl/signed-fragment"'):
        raise InputError(
            "the fragment is signed", "Pass the list of the sites' keys: --keys FILE.", path=path
        )
    return Fragment.from_json(text, path=path)


def read_bytes(path: str | Path) -> bytes:
    """What is in a fragment's file, which must not be larger than any fragment."""
    file = Path(path)
    with readable(file):
        if file.is_dir():
            raise InputError("this is a folder", "Name the fragment files in it.", path=file)
        if file.stat().st_size > MOST_BYTES:
            raise InputError(
                "the file is larger than any fragment", "Check what was sent.", path=file
            )
        return file.read_bytes()


def read_fragments(
    paths: Iterable[str | Path], read: Callable[[str | Path], Fragment] = read_fragment
) -> dict[str, Fragment]:
    """Fragments by client name; two of one client are refused, and so are labels that differ
    only by case or spaces."""
    pieces: dict[str, Fragment] = {}
    labels: dict[str, str] = {}
    for path in paths:
        piece = read(path)
        if piece.client in pieces:
            raise InputError(
                "another file holds a fragment of the same client",
                "Send one fragment per client.",
                client=piece.client,
                path=path,
            )
        for label in piece.labels:
            first = labels.setdefault(label_key(label), label)
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
