"""Which signed fragments a coordinator has used: each counts once."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable, write_text

__all__ = ["Seen"]

FORMAT = "jigsaw-crl/seen"
VERSION = 1


class Stamped(Protocol):
    """A fragment with a serial number that grows, and a digest of what came."""

    @property
    def site(self) -> str: ...
    @property
    def serial(self) -> int: ...
    @property
    def digest(self) -> str: ...


@dataclass(frozen=True)
class Seen:
    """The last fragment used of each site.

    Parameters
    ----------
    path : Path
        Where it is kept: beside the list of keys, `site-keys.toml` and `site-keys.seen.json`.
    last : dict of str to (int, str)
        Serial number and digest, by site.
    """

    path: Path
    last: dict[str, tuple[int, str]]

    @classmethod
    def beside(cls, keys: Path) -> Seen:
        """The memory that belongs to a list of keys; empty when there is none yet."""
        return cls.at(keys.with_suffix(".seen.json"))

    @classmethod
    def at(cls, path: Path) -> Seen:
        """The memory in a file; empty when there is none yet."""
        if not path.exists():
            return cls(path, {})
        with readable(path):
            text = path.read_bytes()
        try:
            document: dict[str, Any] = json.loads(text)
            if (document["format"], document["version"]) != (FORMAT, VERSION):
                raise ValueError
            last = {
                str(site): (int(entry["serial"]), str(entry["digest"]))
                for site, entry in document["sites"].items()
            }
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            raise InputError(
                "the record of fragments already used cannot be understood",
                "Restore it from a copy: without it a replayed fragment would go unnoticed.",
                path=path,
            ) from None
        return cls(path, last)

    def check(self, signed: Stamped, *, again: bool = False, path: object | None = None) -> None:
        """Refuse a fragment that was used before, or is older than one that was.

        Parameters
        ----------
        signed : Signed or Accepted
        again : bool
            Accept the very fragment that was the last one used, to make a result once more.
        path : optional
            Named in errors.
        """
        if signed.site not in self.last:
            return
        serial, digest = self.last[signed.site]
        if signed.serial == serial and signed.digest == digest:
            if again:
                return
            raise InputError(
                "the fragment is replayed: a result was made with it already",
                "Ask the site for a new one; to make the same result once more, pass --again.",
                client=signed.site,
                path=path,
            )
        if signed.serial <= serial:
            raise InputError(
                f"the fragment is replayed: serial {signed.serial} is not above {serial}, "
                "the last one used",
                "Ask the site for a new one; if its clock went back, mend that and sign again.",
                client=signed.site,
                path=path,
            )

    def noting(self, used: Stamped) -> Seen:
        """The memory with one more fragment."""
        return replace(self, last={**self.last, used.site: (used.serial, used.digest)})

    def save(self) -> None:
        """Write it, whole or not at all."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "sites": {
                site: {"serial": serial, "digest": digest}
                for site, (serial, digest) in sorted(self.last.items())
            },
        }
        write_text(self.path, json.dumps(document, indent=1, ensure_ascii=False))
