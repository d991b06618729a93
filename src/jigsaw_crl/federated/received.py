"""Signed fragment files, as a coordinator receives them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.seen import Seen
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.reading import read_bytes, read_fragments
from jigsaw_crl.fragment.signing import open_signed, read_site_keys

__all__ = ["Received", "receive_signed"]


@dataclass(frozen=True, eq=False)
class Received:
    """Fragments that were verified.

    Parameters
    ----------
    fragments : dict of str to Fragment
        By client.
    signatures : dict of str to dict
        Key, time, serial number and digest, by client: what a result's provenance keeps.
    seen : Seen
        To be saved once a result has been made.
    """

    fragments: dict[str, Fragment]
    signatures: dict[str, dict[str, str | int]]
    seen: Seen


def receive_signed(
    paths: Iterable[str | Path], keys: str | Path, *, again: bool = False
) -> Received:
    """Read signed fragments; one that is unknown, altered or replayed is refused by name.

    Parameters
    ----------
    paths : iterable of path
    keys : path
        The coordinator's list of site keys.
    again : bool
        Accept the fragments that were the last ones used, to make their result once more.
    """
    known = read_site_keys(keys)
    before = Seen.beside(Path(keys))
    after = [before]
    signatures: dict[str, dict[str, str | int]] = {}

    def read(path: str | Path) -> Fragment:
        signed = open_signed(read_bytes(path), known, path=path)
        if signed.site in signatures:
            raise InputError(
                "another file holds a fragment of the same client",
                "Keep the newest of them.",
                client=signed.site,
                path=path,
            )
        before.check(signed, again=again, path=path)
        after[0] = after[0].noting(signed)
        signatures[signed.site] = {
            "key": signed.key,
            "issued_at": signed.issued_at.isoformat(),
            "serial": signed.serial,
            "digest": signed.digest,
        }
        return signed.fragment

    fragments = read_fragments(paths, read)
    return Received(fragments, signatures, after[0])
