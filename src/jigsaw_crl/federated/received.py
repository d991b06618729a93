"""Signed fragment files, as a coordinator receives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jigsaw_crl.federated.keys import read_key_list
from jigsaw_crl.federated.seen import Seen
from jigsaw_crl.federated.settings import check_name
from jigsaw_crl.federated.signing import Signed, open_signed
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.reading import fragments_by_client, read_bytes

__all__ = [
    "Received",
    "receive_signed",
    "signature_document",
]


@dataclass(frozen=True, eq=False)
class Received:
    """Fragments whose signatures were verified.

    Parameters
    ----------
    fragments : dict of str to Fragment
        By client.
    provenance : dict
        Study, round, digests, signatures and the head of the log, for a result.
    used : callable
        To be called after the result was written.
    """

    fragments: dict[str, Fragment]
    provenance: dict[str, Any]
    used: Callable[[], None]


@dataclass(frozen=True)
class _Used:
    """What is kept of a fragment that was verified."""

    site: str
    serial: int
    digest: str
    signature: dict[str, str | int]


def signature_document(signed: Signed) -> dict[str, str | int]:
    """What a result keeps of a signature: with the fragment, enough to verify it again."""
    return {
        "key": signed.key,
        "study": signed.study,
        "round": signed.round,
        "issued_at": signed.issued_at.isoformat(),
        "serial": signed.serial,
        "signature": signed.signature,
    }


@contextmanager
def receive_signed(
    paths: Iterable[str | Path],
    keys: str | Path,
    round_name: str,
    *,
    again: bool = False,
) -> Iterator[Received]:
    """Read signed fragments; one that is unknown, altered or replayed is refused by name.

    No other run can use the record of used fragments until the block ends.

    Parameters
    ----------
    paths : iterable of path
    keys : path
        The coordinator's list of site keys.
    round_name : str
    again : bool
        Accept the fragments that were the last ones used, to make their result once more.
    """
    check_name(round_name, "round")
    listed = read_key_list(keys)
    with Seen.held(Seen.beside(Path(keys))) as seen:
        used: list[_Used] = []

        def verified() -> Iterator[tuple[str | Path, Fragment]]:
            for path in paths:
                data = read_bytes(path)
                signed = open_signed(
                    data, listed.sites, study=listed.study, round_name=round_name, path=path
                )
                seen.check(signed, again=again, path=path)
                document = signature_document(signed)
                used.append(_Used(signed.site, signed.serial, signed.digest, document))
                yield path, signed.fragment

        fragments = fragments_by_client(verified())
        seen.check_round(round_name, again=again)
        for one in used:
            seen.ledger.append(
                study=listed.study,
                round_name=round_name,
                site=one.site,
                serial=one.serial,
                digest=one.digest,
            )
        digests = {one.site: one.digest for one in used}
        provenance = {
            "study": listed.study,
            "round": round_name,
            "digests": digests,
            "signatures": {one.site: one.signature for one in used},
            "log": seen.ledger.head_of(round_name, digests).to_document(),
        }
        yield Received(fragments, provenance, partial(seen.save, round_name))
