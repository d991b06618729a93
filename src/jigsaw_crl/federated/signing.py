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
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pydantic import AwareDatetime

from jigsaw_crl.base.documents import WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.keys import KeyList, SignedDocument, key_identifier, public_text
from jigsaw_crl.fragment.file import FragmentDocument
from jigsaw_crl.fragment.fragment import Fragment

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# Two clocks may differ by this much.
CLOCK_SKEW = timedelta(minutes=5)
# Before the first version of this program nothing was signed.
EARLIEST = datetime(2025, 1, 1, tzinfo=UTC)
_SECOND = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Envelope(SignedDocument):
    """The file of a signed fragment; the serial is the time in nanoseconds since 1970."""

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

    @classmethod
    def of(cls, fragment: Fragment, about: dict[str, object]) -> Envelope:
        """The envelope of a fragment, with what is said about it in the other fields."""
        head = {"format": "jigsaw-crl/signed-fragment", "version": 2}
        own = {"site": fragment.client, "fragment": fragment.to_json()}
        return cls.from_document({**head, **about, **own})

    def about(self) -> dict[str, str | int]:
        """What a result keeps of the signature: with the fragment, enough to verify it again."""
        kept = {"key", "study", "round", "issued_at", "serial", "signature"}
        return self.model_dump(mode="json", include=kept)


@dataclass(frozen=True, eq=False)
class Received:
    """A fragment that was checked, its serial number and, if it is signed, its envelope."""

    fragment: Fragment
    serial: int
    envelope: Envelope | None = None

    @property
    def site(self) -> str:
        return self.fragment.client

    @cached_property
    def digest(self) -> str:
        return fragment_digest(self.fragment)


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
    """The text of a signed fragment's file, which is accepted for this round of this study only.

    Its client's name becomes the name of the site; it is issued now unless a time is given.
    """
    serial = time.time_ns() if issued_at is None else _nanoseconds(issued_at)
    about: dict[str, object] = {
        "key": key_identifier(public_text(key)),
        "study": study,
        "round": round_name,
        "issued_at": datetime.fromtimestamp(serial // _SECOND, UTC),
        "serial": serial,
        "signature": "",
    }
    return Envelope.of(fragment, about).signed_with(key).model_dump_json()


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
    keys: KeyList,
    round_name: str,
    *,
    most_labels: int | None = None,
    path: object | None = None,
) -> Received:
    """Verify a signed fragment and read it.

    Raises an `InputError` that names the site and `path` if the site is not on the list, the key is
    not its own, the fragment was altered, was signed for another study or round, or at a time that
    cannot be, or has more than `most_labels` labels.
    """
    envelope = Envelope.from_text(text, path=path)
    site = envelope.site

    def refuse(what: str, remedy: str) -> InputError:
        return InputError(what, remedy, client=site[:80], path=path)

    if site not in keys.sites:
        raise refuse("the site is not on the list of keys", "Add its public key, if it takes part.")
    known = {key_identifier(public): public for public in keys.sites[site]}
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
        ("study", keys.study, envelope.study),
        ("round", round_name, envelope.round),
    ):
        if given != wanted:
            raise refuse(
                f"it was signed for the {what} {given[:80]!r}, not for {wanted!r}",
                f"Ask the site to sign one for this {what}.",
            )
    # The signature is valid, so this is the site's own clock or mistake.
    wrong = check_time(envelope.serial)
    if not wrong and envelope.serial // _SECOND != envelope.issued_at.timestamp():
        wrong = "at two different times"
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
    return Received(fragment, envelope.serial, envelope)


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
