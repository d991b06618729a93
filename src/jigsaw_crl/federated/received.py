"""Signed fragment files, as a coordinator receives them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jigsaw_crl.federated.seen import Seen
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.reading import fragments_by_client, read_bytes
from jigsaw_crl.fragment.signing import Signed, open_signed, read_site_keys

__all__ = ["Received", "receive_signed"]


@dataclass(frozen=True, eq=False)
class Received:
    """Fragments whose signatures were verified.

    Parameters
    ----------
    fragments : dict of str to Fragment
        By client.
    signatures : dict of str to dict
        Key, time, serial number and digest by client, for the provenance of a result.
    seen : Seen
        To be saved after the result.
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
    known, seen = read_site_keys(keys), Seen.beside(Path(keys))
    received: list[tuple[str | Path, Signed]] = []
    for path in paths:
        signed = open_signed(read_bytes(path), known, path=path)
        seen.check(signed, again=again, path=path)
        received.append((path, signed))
    fragments = fragments_by_client((path, signed.fragment) for path, signed in received)
    signatures: dict[str, dict[str, str | int]] = {
        signed.site: {
            "key": signed.key,
            "issued_at": signed.issued_at.isoformat(),
            "serial": signed.serial,
            "digest": signed.digest,
        }
        for _, signed in received
    }
    return Received(fragments, signatures, seen.updated(signed for _, signed in received))
