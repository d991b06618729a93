"""Signed fragment files, as a coordinator receives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from jigsaw_crl.base.spool import Spool
from jigsaw_crl.federated.seen import Seen
from jigsaw_crl.federated.settings import check_name
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.keys import read_key_list
from jigsaw_crl.fragment.reading import FragmentFile, agreeing, fragments_by_client, read_bytes
from jigsaw_crl.fragment.signing import Signed, open_signed

__all__ = [
    "Received",
    "as_files",
    "by_client",
    "in_a_spool",
    "receive_signed",
    "signature_document",
]

T = TypeVar("T")
Verified = tuple[FragmentFile, Fragment]


@dataclass(frozen=True, eq=False)
class Received(Generic[T]):
    """Fragments whose signatures were verified.

    Parameters
    ----------
    fragments
        As they are kept: by default a dict by client.
    provenance : dict
        Study, round, digests, signatures and the head of the log, for a result.
    seen : Seen
        To be saved after the result.
    """

    fragments: T
    provenance: dict[str, Any]
    seen: Seen


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


def by_client(verified: Iterable[Verified]) -> dict[str, Fragment]:
    """All fragments in memory, by client."""
    return fragments_by_client((file.path, fragment) for file, fragment in verified)


def in_a_spool(verified: Iterable[Verified]) -> Spool[Fragment]:
    """The fragments in a temporary file, one of them in memory at a time."""
    return Spool(agreeing((file.path, fragment) for file, fragment in verified))


def as_files(verified: Iterable[Verified]) -> list[FragmentFile]:
    """The files alone; who reads one again refuses it if it has changed."""
    return [file for file, _ in verified]


@contextmanager
def receive_signed(
    paths: Iterable[str | Path],
    keys: str | Path,
    round_name: str,
    keep: Callable[[Iterable[Verified]], T],
    *,
    again: bool = False,
) -> Iterator[Received[T]]:
    """Read signed fragments; one that is unknown, altered or replayed is refused by name.

    They are read and verified one at a time. No other run can use the record of used fragments
    until the block ends.

    Parameters
    ----------
    paths : iterable of path
    keys : path
        The coordinator's list of site keys.
    round_name : str
    keep : {by_client, in_a_spool, as_files}
        How the fragments are kept.
    again : bool
        Accept the fragments that were the last ones used, to make their result once more.
    """
    check_name(round_name, "round")
    listed = read_key_list(keys)
    with Seen.held(Seen.beside(Path(keys))) as seen:
        seen.ledger.check(seen.log)
        used: list[_Used] = []

        def verified() -> Iterator[Verified]:
            for path in paths:
                data = read_bytes(path)
                signed = open_signed(
                    data, listed.sites, study=listed.study, round_name=round_name, path=path
                )
                seen.check(signed, again=again, path=path)
                document = signature_document(signed)
                used.append(_Used(signed.site, signed.serial, signed.digest, document))
                yield FragmentFile.of(Path(path).absolute(), data), signed.fragment

        fragments = keep(verified())
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
        yield Received(fragments, provenance, seen.updated(used, round_name))
