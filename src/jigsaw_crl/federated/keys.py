"""Ed25519 keys: a site's own, and lists of the public keys of a study."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from jigsaw_crl.base.documents import Document
from jigsaw_crl.base.errors import InputError, import_optional
from jigsaw_crl.base.files import read_file, write_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PREFIX = "ed25519:"
LARGEST_KEY = 1 << 16


def generate_key(site: str, private: Path) -> str:
    """Make a site's key pair: write the private key, return the line of the public one (TOML).

    The new file can be read by its owner only. An existing file is never overwritten.
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
    """Read a private key, as `generate_key` wrote it."""
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
    """The coordinator's list of sites and their public keys, a file in TOML.

    A site has one key, or a list of keys while it changes from one to another. The coordinator's
    own is needed to verify signed results only.
    """

    kind = "list of keys"
    largest_file = 1 << 24
    remedy = (
        'Write study = "NAME", then [sites] and below it, for each site, the line '
        '"lab-1" = "ed25519:…" that `jigsaw federate keygen` printed there.'
    )

    model_config = ConfigDict(extra="ignore")  # the file may hold other tables

    study: Annotated[str, Field(min_length=1)]
    coordinator: Annotated[str, AfterValidator(_public_key)] | None = None
    sites: Annotated[dict[str, _Keys], Field(min_length=1)]


class SignedDocument(Document):
    """A document with the fields `key`, the identifier of a public key, and `signature`."""

    def _signed_bytes(self) -> bytes:
        """What the signature covers: all other fields, in one spelling."""
        covered = self.model_dump(mode="json", exclude={"signature"})
        return json.dumps(covered, sort_keys=True, separators=(",", ":")).encode("ascii")

    def signed_with(self, key: Ed25519PrivateKey) -> Self:
        """The document with the signature of a key."""
        signature = base64.b64encode(key.sign(self._signed_bytes())).decode()
        return self.model_copy(update={"signature": signature})

    def is_signed_with(self, public: str) -> bool:
        """Did the owner of this public key sign the document?"""
        ed25519, _ = _cryptography()
        from cryptography.exceptions import InvalidSignature  # an optional dependency

        given = self.model_dump(include={"key", "signature"})
        key = ed25519.Ed25519PublicKey.from_public_bytes(_raw(public))
        try:
            key.verify(base64.b64decode(given["signature"], validate=True), self._signed_bytes())
        except (InvalidSignature, ValueError):
            return False
        return bool(given["key"] == key_identifier(public))


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
