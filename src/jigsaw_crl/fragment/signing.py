"""Signed fragments: who sent it, when, and that not a byte has changed since.

A site signs with its Ed25519 key; the coordinator keeps a list of the sites' public keys and
accepts what one of them verifies. The signature covers the site's name, the key, the time, a serial
number that only grows, and the fragment's own text, so none can be exchanged for another's.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.fragment.fragment import Fragment

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = [
    "FORMAT",
    "Signed",
    "generate_key",
    "open_signed",
    "peek_signed",
    "read_private_key",
    "read_site_keys",
    "sign_fragment",
]

FORMAT = "jigsaw-crl/signed-fragment"
VERSION = 1
PREFIX = "ed25519:"
_FIELDS: dict[str, type] = {
    "format": str,
    "version": int,
    "site": str,
    "key": str,
    "issued_at": str,
    "serial": int,
    "fragment": str,
    "signature": str,
}
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


def generate_key(site: str, private: Path) -> str:
    """Make a site's key pair: the private key into a new file, the public key as text.

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
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    try:
        handle = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(
            "there is a file already", "A key is never overwritten: name another.", path=private
        ) from None
    except OSError as error:
        raise InputError(
            f"it cannot be written ({error.strerror})", "Choose another place.", path=private
        ) from None
    with os.fdopen(handle, "wb") as file:
        file.write(pem)
    return f"{json.dumps(site, ensure_ascii=False)} = {json.dumps(_public_text(key))}"


def read_private_key(path: str | Path) -> Ed25519PrivateKey:
    """A site's private key, as `generate_key` wrote it."""
    from jigsaw_crl.base.files import readable

    ed25519, serialization = _cryptography()
    file = Path(path)
    with readable(file):
        pem = file.read_bytes()
    try:
        key: Ed25519PrivateKey | None = serialization.load_pem_private_key(pem, password=None)
    except (TypeError, ValueError):
        key = None
    if key is None or not isinstance(key, ed25519.Ed25519PrivateKey):
        raise InputError(
            "this is no Ed25519 private key", "Make one with `jigsaw federate keygen`.", path=file
        )
    return key


def sign_fragment(
    fragment: Fragment,
    key: Ed25519PrivateKey,
    *,
    issued_at: datetime | None = None,
    serial: int | None = None,
) -> str:
    """A fragment in a signed envelope, as JSON.

    Parameters
    ----------
    fragment : Fragment
        Its client's name becomes the name of the site.
    key : Ed25519PrivateKey
    issued_at : datetime, optional
        Now, unless given.
    serial : int, optional
        Nanoseconds since 1970, unless given: it grows with every signature without a counter that
        a site would have to keep.
    """
    moment = datetime.now(UTC) if issued_at is None else issued_at.astimezone(UTC)
    envelope: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "site": fragment.client,
        "key": _identifier(_public_text(key)),
        "issued_at": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "serial": time.time_ns() if serial is None else serial,
        "fragment": fragment.to_json(),
    }
    signature = key.sign(_signed_bytes(envelope))
    envelope["signature"] = base64.b64encode(signature).decode()
    return json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))


def open_signed(text: str | bytes, keys: SiteKeys, *, path: object | None = None) -> Signed:
    """The fragment in a signed envelope, once its signature is verified.

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
    from cryptography.exceptions import InvalidSignature

    ed25519, _ = _cryptography()
    envelope = _envelope(text, path)
    site = envelope["site"]

    def refuse(what: str, remedy: str) -> InputError:
        return InputError(what, remedy, client=site[:80], path=path)

    if site not in keys:
        raise refuse("the site is not on the list of keys", "Add its public key, if it takes part.")
    known = {_identifier(public): public for public in keys[site]}
    if envelope["key"] not in known:
        raise refuse(
            f"it is signed with the key {envelope['key'][:16]!r}, which is not the site's",
            f"The list has {', '.join(known)}: ask the site which key is its own.",
        )
    data = _signed_bytes(envelope)
    try:
        signature = base64.b64decode(envelope["signature"], validate=True)
        raw = base64.b64decode(known[envelope["key"]].removeprefix(PREFIX))
        ed25519.Ed25519PublicKey.from_public_bytes(raw).verify(signature, data)
        issued_at = datetime.strptime(envelope["issued_at"], "%Y-%m-%dT%H:%M:%SZ")
    except (InvalidSignature, binascii.Error, ValueError):
        raise refuse(
            "it was altered after the site signed it, or another key signed it",
            "Ask the site to send it again.",
        ) from None
    fragment = Fragment.from_json(envelope["fragment"], path=path)
    if fragment.client != site:
        raise refuse(
            f"the site signed a fragment of another client, {fragment.client!r}",
            "A site speaks for itself: use one name for the site and its client.",
        )
    return Signed(
        fragment=fragment,
        site=site,
        key=envelope["key"],
        issued_at=issued_at.replace(tzinfo=UTC),
        serial=envelope["serial"],
        digest=hashlib.sha256(data).hexdigest(),
    )


def peek_signed(text: str | bytes) -> Fragment:
    """The fragment in a signed envelope, its signature not verified."""
    return Fragment.from_json(_envelope(text, None)["fragment"])


def read_site_keys(path: str | Path) -> dict[str, tuple[str, ...]]:
    """The coordinator's list of sites and their public keys, from TOML or JSON.

    The table `sites` maps a site's name to its public key, or to a list of keys while a site
    changes from one to another::

        [sites]
        "lab-1" = "ed25519:l0ZfWzO6XK2sY8PzUoMdqNVfn8TyJ3pPuEwhGv7Kx0o="
    """
    from jigsaw_crl.base.files import readable

    file = Path(path)
    with readable(file):
        raw = file.read_bytes()
    try:
        text = raw.decode("utf-8")
        document = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "JSON" if file.suffix == ".json" else "TOML"
        raise InputError(f"this is not valid {kind} ({error})", "Mend it.", path=file) from None
    sites = document.get("sites") if isinstance(document, dict) else None
    if not isinstance(sites, dict) or not sites:
        raise InputError(
            "the list of keys has no table 'sites'",
            'Write [sites] and below it a line "lab-1" = "ed25519:…" for each site.',
            path=file,
        )
    return {name: _checked_keys(name, value, file) for name, value in sites.items()}


def _checked_keys(site: str, value: object, file: Path) -> tuple[str, ...]:
    keys = tuple(value) if isinstance(value, list) else (value,)
    for key in keys:
        try:
            if not isinstance(key, str) or not key.startswith(PREFIX):
                raise ValueError
            if len(base64.b64decode(key.removeprefix(PREFIX), validate=True)) != 32:
                raise ValueError
        except ValueError:
            raise InputError(
                "its public key is not valid",
                "Copy the line that `jigsaw federate keygen` printed at the site.",
                client=site,
                path=file,
            ) from None
    return tuple(str(key) for key in keys)


def _envelope(text: str | bytes, path: object | None) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        client = document.get("client") if isinstance(document, dict) else None
        raise InputError(
            "this is not a signed fragment",
            "Ask the site to write it with `jigsaw fragment --sign KEY`.",
            client=client[:80] if isinstance(client, str) else None,
            path=path,
        )
    shared = set(document) & set(_FIELDS)
    mistyped = {name for name in shared if type(document[name]) is not _FIELDS[name]}
    odd = sorted({str(name)[:40] for name in set(document) ^ set(_FIELDS)} | mistyped)
    if odd or document["version"] != VERSION:
        fault = f"its fields {', '.join(odd)[:200]} are not those" if odd else "it is not"
        raise InputError(
            f"{fault} of version {VERSION} of signed fragments",
            "Sign it again with this version of jigsaw-crl.",
            path=path,
        )
    return document


def _signed_bytes(envelope: Mapping[str, Any]) -> bytes:
    """What a signature covers: every field but itself, in one spelling, format name included."""
    covered = {name: envelope[name] for name in sorted(_FIELDS) if name != "signature"}
    return json.dumps(covered, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _public_text(key: Ed25519PrivateKey) -> str:
    return PREFIX + base64.b64encode(key.public_key().public_bytes_raw()).decode()


def _identifier(public: str) -> str:
    return hashlib.sha256(base64.b64decode(public.removeprefix(PREFIX))).hexdigest()[:16]


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise InputError(
            "signing needs the package cryptography", "Run pip install 'jigsaw-crl[sign]'."
        ) from None
    return ed25519, serialization
