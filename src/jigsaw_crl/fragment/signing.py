"""Signed fragments: who sent a fragment, when, and that nobody has changed it since.

A site signs with its Ed25519 key. The coordinator keeps a list of the sites' public keys and
accepts a fragment that one of its site's keys verifies. The signature covers the site's name, the
key, the time, a serial number that grows and the fragment's text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, ConfigDict, Field

from jigsaw_crl.base.documents import Document, WholeNumber
from jigsaw_crl.base.errors import InputError, import_optional
from jigsaw_crl.base.files import read_file, write_file
from jigsaw_crl.fragment.fragment import Fragment

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = [
    "Signed",
    "generate_key",
    "is_signed",
    "open_signed",
    "open_unverified",
    "read_private_key",
    "read_site_keys",
    "sign_fragment",
]

PREFIX = "ed25519:"
LARGEST_KEY, LARGEST_LIST = 1 << 16, 1 << 24
SiteKeys = Mapping[str, tuple[str, ...]]


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
    issued_at : datetime
        When the site signed, by its own clock; in UTC.
    serial : int
        Grows with every signature of a site.
    digest : str
        SHA-256 of the signed bytes, in hexadecimal.
    """

    fragment: Fragment
    site: str
    key: str
    issued_at: datetime
    serial: int
    digest: str


class Envelope(Document):
    """The file of a signed fragment."""

    kind = "signed fragment"
    remedy = "Ask the site to write it again with `jigsaw fragment --sign KEY`."

    format: Literal["jigsaw-crl/signed-fragment"]
    version: Literal[1]
    site: str
    key: str
    issued_at: AwareDatetime
    serial: WholeNumber
    fragment: str
    signature: str

    def signed_bytes(self) -> bytes:
        """What the signature covers: all other fields, in one spelling."""
        covered = self.model_dump(mode="json", exclude={"signature"})
        return json.dumps(covered, sort_keys=True, separators=(",", ":")).encode("ascii")


# -- keys -----------------------------------------------------------------------------------------


def generate_key(site: str, private: Path) -> str:
    """Make a site's key pair; writes the private key and returns the public one.

    Parameters
    ----------
    site : str
        Name of the site, which is also its client's name.
    private : Path
        New file, readable by its owner only. An existing file is never overwritten.

    Returns
    -------
    str
        The site's line in the coordinator's list of keys (TOML).
    """
    ed25519, serialization = _cryptography()
    if not site.strip():
        raise InputError("the site has no name", "Use the name of its client.")
    key = ed25519.Ed25519PrivateKey.generate()
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_file(private, lambda file: file.write(pem), private=True, new=True)
    return f"{json.dumps(site, ensure_ascii=False)} = {json.dumps(_public_text(key))}"


def read_private_key(path: str | Path) -> Ed25519PrivateKey:
    """Read a site's private key, as `generate_key` wrote it."""
    ed25519, serialization = _cryptography()
    file = Path(path)
    pem = read_file(file, LARGEST_KEY, "private key")
    try:
        key: Ed25519PrivateKey | None = serialization.load_pem_private_key(pem, password=None)
    except (TypeError, ValueError):
        key = None
    if key is None or not isinstance(key, ed25519.Ed25519PrivateKey):
        raise InputError(
            "this is not an Ed25519 private key",
            "Make one with `jigsaw federate keygen`.",
            path=file,
        )
    return key


def _public_key(text: str) -> str:
    if not text.startswith(PREFIX) or len(_raw(text)) != 32:
        raise ValueError("a public key is 'ed25519:' and 32 bytes in base 64")
    return text


_Keys = Annotated[
    tuple[Annotated[str, AfterValidator(_public_key)], ...],
    BeforeValidator(lambda value: value if isinstance(value, list) else [value]),
]


class KeyList(Document):
    """The coordinator's list of sites and their public keys."""

    kind = "list of keys"
    remedy = (
        'Write [sites] and below it, for each site, the line "lab-1" = "ed25519:…" that '
        "`jigsaw federate keygen` printed there."
    )

    model_config = ConfigDict(extra="ignore")  # the file may hold other tables

    sites: Annotated[dict[str, _Keys], Field(min_length=1)]


def read_site_keys(path: str | Path) -> dict[str, tuple[str, ...]]:
    """Read the coordinator's list of sites and their public keys, from TOML or JSON.

    The table `sites` maps a site's name to its public key, or to a list of keys while a site
    changes from one to another::

        [sites]
        "lab-1" = "ed25519:l0ZfWzO6XK2sY8PzUoMdqNVfn8TyJ3pPuEwhGv7Kx0o="
    """
    file = Path(path)
    if file.suffix == ".json":
        return KeyList.from_file(file).sites
    text = read_file(file, LARGEST_LIST, "list of keys")
    try:
        document = tomllib.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the list of keys is not valid TOML ({error})", KeyList.remedy, path=file
        ) from None
    return KeyList.from_document(document, path=file).sites


# -- signing and opening --------------------------------------------------------------------------


def sign_fragment(
    fragment: Fragment,
    key: Ed25519PrivateKey,
    *,
    issued_at: datetime | None = None,
    serial: int | None = None,
) -> str:
    """The text of a signed fragment's file.

    Parameters
    ----------
    fragment : Fragment
        Its client's name becomes the name of the site.
    key : Ed25519PrivateKey
    issued_at : datetime, optional
        Default: now.
    serial : int, optional
        Default: nanoseconds since 1970, which grow without a counter for the site to keep.
    """
    moment = datetime.now(UTC) if issued_at is None else issued_at.astimezone(UTC)
    envelope = Envelope(
        format="jigsaw-crl/signed-fragment",
        version=1,
        site=fragment.client,
        key=_identifier(_public_text(key)),
        issued_at=moment.replace(microsecond=0),
        serial=time.time_ns() if serial is None else serial,
        fragment=fragment.to_json(),
        signature="",
    )
    signature = base64.b64encode(key.sign(envelope.signed_bytes())).decode()
    return envelope.model_copy(update={"signature": signature}).model_dump_json()


def is_signed(text: str | bytes) -> bool:
    """Does the text begin as `sign_fragment` writes it?"""
    head = '{"format":"jigsaw-crl/signed-fragment"'
    return text.startswith(head) if isinstance(text, str) else text.startswith(head.encode())


def open_signed(text: str | bytes, keys: SiteKeys, *, path: object | None = None) -> Signed:
    """Verify a signed fragment and read it.

    Parameters
    ----------
    text : str or bytes
    keys : mapping of str to tuple of str
        Public keys by site, from `read_site_keys`.
    path : optional
        Named in errors.

    Raises
    ------
    InputError
        Names the site: it is not on the list, the key is not its own, or the fragment was altered.
    """
    envelope = Envelope.from_text(text, path=path)
    site = envelope.site

    def refuse(what: str, remedy: str) -> InputError:
        return InputError(what, remedy, client=site[:80], path=path)

    if site not in keys:
        raise refuse("the site is not on the list of keys", "Add its public key, if it takes part.")
    known = {_identifier(public): public for public in keys[site]}
    if envelope.key not in known:
        raise refuse(
            f"it is signed with the key {envelope.key[:16]!r}, which is not the site's",
            f"The list has {', '.join(known)}: ask the site which key is its own.",
        )
    data = envelope.signed_bytes()
    if not _is_signature(envelope.signature, data, known[envelope.key]):
        raise refuse(
            "it was altered after the site signed it, or another key signed it",
            "Ask the site to send it again.",
        )
    fragment = Fragment.from_json(envelope.fragment, path=path)
    if fragment.client != site:
        raise refuse(
            f"the site signed a fragment of another client, {fragment.client!r}",
            "Use one name for the site and its client.",
        )
    return Signed(
        fragment=fragment,
        site=site,
        key=envelope.key,
        issued_at=envelope.issued_at.astimezone(UTC),
        serial=envelope.serial,
        digest=hashlib.sha256(data).hexdigest(),
    )


def open_unverified(text: str | bytes) -> Fragment:
    """Read a fragment, signed or not, without verifying the signature."""
    return Fragment.from_json(Envelope.from_text(text).fragment if is_signed(text) else text)


def _is_signature(signature: str, data: bytes, public: str) -> bool:
    ed25519, _ = _cryptography()
    from cryptography.exceptions import InvalidSignature  # an optional dependency

    key = ed25519.Ed25519PublicKey.from_public_bytes(_raw(public))
    try:
        key.verify(base64.b64decode(signature, validate=True), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def _public_text(key: Ed25519PrivateKey) -> str:
    return PREFIX + base64.b64encode(key.public_key().public_bytes_raw()).decode()


def _identifier(public: str) -> str:
    return hashlib.sha256(_raw(public)).hexdigest()[:16]


def _raw(public: str) -> bytes:
    return base64.b64decode(public.removeprefix(PREFIX), validate=True)


def _cryptography() -> tuple[Any, Any]:
    """The modules `ed25519` and `serialization` of cryptography, an optional dependency."""
    primitives = "cryptography.hazmat.primitives"
    ed25519 = import_optional(f"{primitives}.asymmetric.ed25519", "cryptography", "sign")
    return ed25519, import_module(f"{primitives}.serialization")
