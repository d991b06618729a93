"""Signed fragments: who sent a fragment, when, and that nobody has changed it since.

A site signs with its Ed25519 key. The coordinator keeps a list of the sites' public keys and
accepts a fragment that one of its site's keys verifies. The signature covers the site's name, the
study, the round, the key, the time, a serial number that grows and the fragment's text. Only what
the program itself writes is accepted, so that the signature covers the bytes of the file.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from pydantic import AwareDatetime

from jigsaw_crl.base.documents import WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.keys import SignedDocument, SiteKeys, key_identifier, public_text
from jigsaw_crl.fragment.file import FragmentDocument
from jigsaw_crl.fragment.fragment import Fragment

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = [
    "Envelope",
    "Signed",
    "check_time",
    "fragment_digest",
    "is_signed",
    "open_signed",
    "open_unverified",
    "sign_fragment",
]

# Two clocks may differ by this much.
CLOCK_SKEW = timedelta(minutes=5)
# Before the first version of this program nothing was signed.
EARLIEST = datetime(2025, 1, 1, tzinfo=UTC)
_SECOND = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class Signed:
    """A fragment whose signature was verified.

    Parameters
    ----------
    fragment : Fragment
    site : str
        Equals `fragment.client`.
    key : str
        Identifier of the key: the first 16 hexadecimal digits of its SHA-256.
    study, round : str
        What the fragment was signed for.
    issued_at : datetime
        When the site signed, by its own clock; in UTC, to the second.
    serial : int
        The same time in nanoseconds since 1970, so that it grows with every signature of a site.
    digest : str
        Of the fragment: see `fragment_digest`.
    signature : str
        In base 64.
    """

    fragment: Fragment
    site: str
    key: str
    study: str
    round: str
    issued_at: datetime
    serial: int
    digest: str
    signature: str


class Envelope(SignedDocument):
    """The file of a signed fragment."""

    kind = "signed fragment"
    remedy = "Ask the site to write it again with `jigsaw fragment --sign KEY`."

    format: Literal["jigsaw-crl/signed-fragment"]
    version: Literal[2]
    site: str
    key: str
    study: str
    round: str
    issued_at: AwareDatetime
    serial: WholeNumber
    fragment: str
    signature: str


# -- signing and opening --------------------------------------------------------------------------


def fragment_digest(fragment: Fragment) -> str:
    """SHA-256 of the fragment as `to_json` writes it, in hexadecimal.

    A result holds its fragments, so everybody who has the result can compute their digests.
    """
    return hashlib.sha256(fragment.to_json().encode()).hexdigest()


def sign_fragment(
    fragment: Fragment,
    key: Ed25519PrivateKey,
    *,
    study: str,
    round_name: str,
    issued_at: datetime | None = None,
) -> str:
    """The text of a signed fragment's file.

    Parameters
    ----------
    fragment : Fragment
        Its client's name becomes the name of the site.
    key : Ed25519PrivateKey
    study, round_name : str
        The fragment is accepted for this round of this study only.
    issued_at : datetime, optional
        Default: now.
    """
    serial = time.time_ns() if issued_at is None else _nanoseconds(issued_at)
    envelope = Envelope(
        format="jigsaw-crl/signed-fragment",
        version=2,
        site=fragment.client,
        key=key_identifier(public_text(key)),
        study=study,
        round=round_name,
        issued_at=datetime.fromtimestamp(serial // _SECOND, UTC),
        serial=serial,
        fragment=fragment.to_json(),
        signature="",
    )
    return envelope.signed_with(key).model_dump_json()


def check_time(nanoseconds: int) -> str:
    """What is wrong with the time at which a fragment was made; the empty string if nothing is.

    A time in the future would make every later fragment of its site look old.
    """
    if nanoseconds > time.time_ns() + _nanoseconds(_EPOCH + CLOCK_SKEW):
        return "in the future"
    if nanoseconds < _nanoseconds(EARLIEST):
        return f"before {EARLIEST.year}, when there was no such program"
    return ""


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def is_signed(text: str | bytes) -> bool:
    """Does the text begin as `sign_fragment` writes it?"""
    head = '{"format":"jigsaw-crl/signed-fragment"'
    return text.startswith(head) if isinstance(text, str) else text.startswith(head.encode())


def open_signed(
    text: str | bytes,
    keys: SiteKeys,
    *,
    study: str,
    round_name: str,
    most_labels: int | None = None,
    path: object | None = None,
) -> Signed:
    """Verify a signed fragment and read it.

    Parameters
    ----------
    text : str or bytes
    keys : mapping of str to tuple of str
        Public keys by site, from `read_key_list`.
    study, round_name : str
        What the fragment must have been signed for.
    most_labels : int, optional
        A fragment with more labels is refused.
    path : optional
        Named in errors.

    Raises
    ------
    InputError
        Names the site: it is not on the list, the key is not its own, the fragment was altered, or
        it was signed for another study or round, or at a time that cannot be.
    """
    envelope = Envelope.from_text(text, path=path)
    site = envelope.site

    def refuse(what: str, remedy: str) -> InputError:
        return InputError(what, remedy, client=site[:80], path=path)

    if site not in keys:
        raise refuse("the site is not on the list of keys", "Add its public key, if it takes part.")
    known = {key_identifier(public): public for public in keys[site]}
    if envelope.key not in known:
        raise refuse(
            f"it is signed with the key {envelope.key[:16]!r}, which is not the site's",
            f"The list has {', '.join(known)}: ask the site which key is its own.",
        )
    if not envelope.is_signed_with(known[envelope.key]):
        raise refuse(
            "it was altered after the site signed it, or another key signed it",
            "Ask the site to send it again.",
        )
    for what, wanted, given in (
        ("study", study, envelope.study),
        ("round", round_name, envelope.round),
    ):
        if given != wanted:
            raise refuse(
                f"it was signed for the {what} {given[:80]!r}, not for {wanted!r}",
                f"Ask the site to sign one for this {what}.",
            )
    # The signature is valid, so this is the site's own clock or mistake.
    wrong = check_time(envelope.serial) or (
        "at two different times"
        if envelope.serial // _SECOND != envelope.issued_at.timestamp()
        else ""
    )
    if wrong:
        raise refuse(
            f"it was signed {wrong} ({envelope.issued_at.isoformat()}, serial {envelope.serial})",
            "Set the site's clock right, and sign it again.",
        )
    fragment = _read(envelope.fragment, most_labels, path)
    if fragment.client != site:
        raise refuse(
            f"the site signed a fragment of another client, {fragment.client!r}",
            "Use one name for the site and its client.",
        )
    # The digest and the signature are checked again from a result, so there is one spelling.
    written = text if isinstance(text, str) else text.decode()
    if (envelope.model_dump_json(), fragment.to_json()) != (written, envelope.fragment):
        raise refuse(
            "its text is not as this program writes it", "Ask the site to sign and send it again."
        )
    return Signed(
        fragment=fragment,
        site=site,
        key=envelope.key,
        study=envelope.study,
        round=envelope.round,
        issued_at=envelope.issued_at.astimezone(UTC),
        serial=envelope.serial,
        digest=fragment_digest(fragment),
        signature=envelope.signature,
    )


def open_unverified(text: str | bytes, *, most_labels: int | None = None) -> Fragment:
    """Read a fragment, signed or not, without verifying the signature."""
    return _read(Envelope.from_text(text).fragment if is_signed(text) else text, most_labels, None)


def _read(text: str | bytes, most_labels: int | None, path: object | None) -> Fragment:
    """The fragment, whose labels are counted before its orders are built from them."""
    document = FragmentDocument.from_text(text, path=path)
    if most_labels is not None and len(document.labels) > most_labels:
        raise InputError(
            f"it has {len(document.labels)} labels, {most_labels} are allowed",
            "Raise 'most_labels' in local/jigsaw-coordinator.json, if that many are expected.",
            client=document.client[:80],
            path=path,
        )
    return document.fragment(path)
