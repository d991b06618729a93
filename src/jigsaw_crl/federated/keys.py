"""Ed25519 keys: a site's own, and lists of the public keys of a study."""

from __future__ import annotations

import base64
import hashlib
import json
import tomllib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from jigsaw_crl.base.documents import Document
from jigsaw_crl.base.errors import InputError, import_optional
from jigsaw_crl.base.files import read_file, write_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = [
    "KeyList",
    "SignedDocument",
    "SiteKeys",
    "generate_key",
    "key_identifier",
    "public_text",
    "read_key_list",
    "read_private_key",
    "sign_bytes",
    "verifies",
]

PREFIX = "ed25519:"
LARGEST_KEY, LARGEST_LIST = 1 << 16, 1 << 24
SiteKeys = Mapping[str, tuple[str, ...]]


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
    return f"{json.dumps(site, ensure_ascii=False)} = {json.dumps(public_text(key))}"


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
        'Write study = "NAME", then [sites] and below it, for each site, the line '
        '"lab-1" = "ed25519:…" that `jigsaw federate keygen` printed there.'
    )

    model_config = ConfigDict(extra="ignore")  # the file may hold other tables

    study: Annotated[str, Field(min_length=1)]
    coordinator: Annotated[str, AfterValidator(_public_key)] | None = None
    sites: Annotated[dict[str, _Keys], Field(min_length=1)]


def read_key_list(path: str | Path) -> KeyList:
    """Read a list of a study's sites and their public keys, from TOML or JSON.

    The table `sites` maps a site's name to its public key, or to a list of keys while a site
    changes from one to another. `coordinator` is needed to verify signed results only::

        study = "reactor"
        coordinator = "ed25519:Qx3mFF0yZDW/F/DGkNzorKYl++pP86mrS1MJYHGgZM4="

        [sites]
        "lab-1" = "ed25519:l0ZfWzO6XK2sY8PzUoMdqNVfn8TyJ3pPuEwhGv7Kx0o="
    """
    file = Path(path)
    if file.suffix == ".json":
        return KeyList.from_file(file)
    text = read_file(file, LARGEST_LIST, "list of keys")
    try:
        document = tomllib.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the list of keys is not valid TOML ({error})", KeyList.remedy, path=file
        ) from None
    return KeyList.from_document(document, path=file)


class SignedDocument(Document):
    """A document with the fields `key`, the identifier of a public key, and `signature`."""

    def signed_bytes(self) -> bytes:
        """What the signature covers: all other fields, in one spelling."""
        covered = self.model_dump(mode="json", exclude={"signature"})
        return json.dumps(covered, sort_keys=True, separators=(",", ":")).encode("ascii")

    def signed_with(self, key: Ed25519PrivateKey) -> Self:
        """The document with the signature of a key."""
        return self.model_copy(update={"signature": sign_bytes(self.signed_bytes(), key)})

    def is_signed_with(self, public: str) -> bool:
        """Did the owner of this public key sign the document?"""
        given = self.model_dump(include={"key", "signature"})
        return given["key"] == key_identifier(public) and verifies(
            given["signature"], self.signed_bytes(), public
        )


def sign_bytes(data: bytes, key: Ed25519PrivateKey) -> str:
    """The signature of bytes, in base 64."""
    return base64.b64encode(key.sign(data)).decode()


def verifies(signature: str, data: bytes, public: str) -> bool:
    """Is this a signature of the bytes, by the owner of the public key?"""
    ed25519, _ = _cryptography()
    from cryptography.exceptions import InvalidSignature  # an optional dependency

    key = ed25519.Ed25519PublicKey.from_public_bytes(_raw(public))
    try:
        key.verify(base64.b64decode(signature, validate=True), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def public_text(key: Ed25519PrivateKey) -> str:
    """The public key, as lists of keys hold it."""
    return PREFIX + base64.b64encode(key.public_key().public_bytes_raw()).decode()


def key_identifier(public: str) -> str:
    """Short name of a public key: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(_raw(public)).hexdigest()[:16]


def _raw(public: str) -> bytes:
    return base64.b64decode(public.removeprefix(PREFIX), validate=True)


def _cryptography() -> tuple[Any, Any]:
    """The modules `ed25519` and `serialization` of cryptography, an optional dependency."""
    primitives = "cryptography.hazmat.primitives"
    ed25519 = import_optional(f"{primitives}.asymmetric.ed25519", "cryptography", "sign")
    return ed25519, import_module(f"{primitives}.serialization")
