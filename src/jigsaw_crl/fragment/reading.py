"""Read fragment files, as a coordinator receives them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import read_file
from jigsaw_crl.base.labels import label_key
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.signing import is_signed

__all__ = ["fragments_by_client", "read_bytes", "read_fragment_file", "read_fragment_files"]

# A fragment of 5,000 labels, with evidence at two scales in four decimals, takes less than this
# gigabyte. A larger file is refused before it is loaded into memory.
MOST_BYTES = 1 << 30


def read_fragment_files(paths: Iterable[str | Path]) -> dict[str, Fragment]:
    """Read unsigned fragments, by client; see `fragments_by_client` for what is refused."""
    return fragments_by_client((path, read_fragment_file(path)) for path in paths)


def read_fragment_file(path: str | Path) -> Fragment:
    """Read one unsigned fragment."""
    text = read_bytes(path)
    if is_signed(text):
        raise InputError(
            "the fragment is signed", "Pass the list of the sites' keys: --keys FILE.", path=path
        )
    return Fragment.from_json(text, path=path)


def read_bytes(path: str | Path) -> bytes:
    """The content of a fragment file; a folder or a file above `MOST_BYTES` is refused."""
    return read_file(Path(path), MOST_BYTES, "fragment")


def fragments_by_client(
    fragments: Iterable[tuple[str | Path | None, Fragment]],
) -> dict[str, Fragment]:
    """Fragments by client, from pairs of a file's path (None without one) and the fragment in it.

    Two fragments of one client are refused, and labels that differ only by case or spaces.
    """
    by_client: dict[str, Fragment] = {}
    spellings: dict[str, str] = {}
    for path, fragment in fragments:
        if fragment.client in by_client:
            raise InputError(
                "another file holds a fragment of the same client",
                "Keep one fragment per client, the newest.",
                client=fragment.client,
                path=path,
            )
        for label in fragment.labels:
            first = spellings.setdefault(label_key(label), label)
            if first != label:
                raise InputError(
                    f"the label {label!r} differs from another client's {first!r} only by case "
                    "or spaces, or as 1 and 1.0 do",
                    "Labels are shared between clients: use one spelling.",
                    client=fragment.client,
                    path=path,
                )
        by_client[fragment.client] = fragment
    return by_client
