"""Signed fragments: who sent a fragment, when, and that nobody has changed it since.

A site signs with its Ed25519 key. The coordinator keeps a list of the sites' public keys and
accepts a fragment that one of its site's keys verifies. The signature covers the site's name, the
study, the round, the key, the time and the fragment's text. Only what the program itself writes is
accepted: so nothing hides in the spaces of a file, and its signature can be verified from a result.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from jigsaw_crl.base.documents import WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import is_document
from jigsaw_crl.federated.keys import KeyList, SignedDocument, key_identifier, public_text
from jigsaw_crl.fragment.file import FragmentDocument
from jigsaw_crl.fragment.fragment import Fragment

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# Two clocks may differ by five minutes; nothing was signed before 2025. Both in nanoseconds.
CLOCK_SKEW, EARLIEST = 300 * 10**9, 1_735_689_600 * 10**9


class Envelope(SignedDocument):
    """The file of a signed fragment; the serial is the time in nanoseconds since 1970."""

    kind = "signed fragment"
    remedy = "Ask the site to write it again with `jigsaw fragment --sign KEY`."

    format: Literal["jigsaw-crl/signed-fragment"]
    version: Literal[1]
    site: str
    key: str
    study: str
    round: str
    serial: WholeNumber
    fragment: str
    signature: str

    @classmethod
    def of(cls, fragment: Fragment, about: dict[str, object]) -> Envelope:
        """The envelope of a fragment, with what is said about it in the other fields."""
        head = {"format": "jigsaw-crl/signed-fragment", "version": 1}
        own = {"site": fragment.client, "fragment": fragment.to_json()}
        return cls.from_document({**head, **about, **own})

    def about(self) -> dict[str, str | int]:
        """What a result keeps of the signature: with the fragment, enough to verify it again."""
        return self.model_dump(include={"key", "study", "round", "serial", "signature"})

    def check(self, keys: KeyList, round_name: object, *, path: object | None = None) -> None:
        """Refuse a fragment that its site did not sign, or not for this study and round."""
        known = {key_identifier(public): public for public in keys.sites.get(self.site, ())}
        if not known:
            what, remedy = "the site is not on the list of keys", "Add its key, if it takes part."
        elif self.key not in known:
            what = f"it is signed with the key {self.key[:16]!r}, which is not the site's"
            remedy = f"The list has {', '.join(known)}: ask the site which key is its own."
        elif not self.is_signed_with(known[self.key]):
            what = "it was altered after the site signed it, or another key signed it"
            remedy = "Ask the site to send it again."
        elif self.study != keys.study:
            what = f"it was signed for the study {self.study[:80]!r}, not for {keys.study!r}"
            remedy = "Ask the site to sign one for this study."
        elif self.round != round_name:
            what = f"it was signed for the round {self.round[:80]!r}, not for {round_name!r}"
            remedy = "Ask the site to sign one for this round."
        else:
            return
        raise InputError(what, remedy, client=self.site[:80], path=path)


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
    serial: int | None = None,
) -> str:
    """The text of a signed fragment's file, which is accepted for this round of this study only.

    Its client's name becomes the name of the site; the serial is the time now unless one is given.
    """
    about: dict[str, object] = {
        "key": key_identifier(public_text(key)),
        "study": study,
        "round": round_name,
        "serial": time.time_ns() if serial is None else serial,
        "signature": "",
    }
    return Envelope.of(fragment, about).signed_with(key).model_dump_json()


def check_time(nanoseconds: int, site: str, *, path: object | None = None) -> None:
    """Refuse a time at which no fragment can have been made.

    One in the future would make every later fragment of its site look old.
    """
    if not EARLIEST <= nanoseconds <= time.time_ns() + CLOCK_SKEW:
        when = "before 2025" if nanoseconds < EARLIEST else "in the future"
        raise InputError(
            f"it was made {when}, by the site's clock ({nanoseconds})",
            "Set the site's clock right, and make it again.",
            client=site,
            path=path,
        )


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
    envelope.check(keys, round_name, path=path)
    # The signature is valid, so this is the site's own clock or mistake.
    check_time(envelope.serial, envelope.site, path=path)
    fragment = _read(text, envelope, most_labels, path)
    if fragment.client != envelope.site:
        raise InputError(
            f"the site signed a fragment of another client, {fragment.client!r}",
            "Use one name for the site and its client.",
            client=envelope.site,
            path=path,
        )
    return Received(fragment, envelope.serial, envelope)


def open_unverified(
    text: str | bytes, *, most_labels: int | None = None, path: object | None = None
) -> Fragment:
    """Read a fragment, signed or not, without verifying the signature."""
    data = text.encode() if isinstance(text, str) else text
    signed = is_document("signed-fragment")(data)
    envelope = Envelope.from_text(data, path=path) if signed else None
    return _read(data, envelope, most_labels, path)


def _read(
    text: str | bytes, envelope: Envelope | None, most_labels: int | None, path: object | None
) -> Fragment:
    """The fragment, whose labels are counted before its orders are built from them."""
    inner = text if envelope is None else envelope.fragment
    document = FragmentDocument.from_text(inner, path=path)
    client = document.client[:80]
    if most_labels is not None and len(document.labels) > most_labels:
        raise InputError(
            f"it has {len(document.labels)} labels, {most_labels} are allowed",
            "Raise 'most_labels' in local/jigsaw-coordinator.json, if that many are expected.",
            client=client,
            path=path,
        )
    fragment = document.fragment(path)
    written = fragment.to_json()
    if envelope is not None:
        written = envelope.model_copy(update={"fragment": written}).model_dump_json()
    if written != (text if isinstance(text, str) else text.decode()):
        raise InputError(
            "its text is not as this program writes it",
            "Ask the site to write it again.",
            client=client,
            path=path,
        )
    return fragment
