"""The record of the fragments that a coordinator has used, so that none is used twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from jigsaw_crl.base.documents import Closed, Document, WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import write_text
from jigsaw_crl.fragment.signing import Signed

if TYPE_CHECKING:
    from jigsaw_crl.federated.answer import Accepted

__all__ = ["LastUsed", "Seen"]


class LastUsed(Closed):
    """Serial number and digest of the last fragment used of a site."""

    serial: WholeNumber
    digest: str


class SeenDocument(Document):
    """The file of the record."""

    kind = "record of used fragments"
    remedy = "Restore it from a backup: without it a replayed fragment would go unnoticed."

    format: Literal["jigsaw-crl/seen"]
    version: Literal[1]
    sites: dict[str, LastUsed]


@dataclass(frozen=True)
class Seen:
    """The last fragment used of each site.

    Parameters
    ----------
    path : Path
        The record's file.
    last : dict of str to LastUsed
        By site.
    """

    path: Path
    last: dict[str, LastUsed]

    @classmethod
    def beside(cls, keys: Path) -> Seen:
        """The record of a list of keys: `site-keys.seen.json` beside `site-keys.toml`."""
        return cls.at(keys.with_suffix(".seen.json"))

    @classmethod
    def at(cls, path: Path) -> Seen:
        """The record in a file; empty if there is no such file."""
        return cls(path, SeenDocument.from_file(path).sites if path.exists() else {})

    def check(self, signed: Signed, *, again: bool = False, path: object | None = None) -> None:
        """Refuse a fragment that was used before, or is older than one that was.

        Parameters
        ----------
        signed : Signed
        again : bool
            Accept the fragment that was the last one used, to make its result once more.
        path : optional
            Named in errors.
        """
        last = self.last.get(signed.site)
        if last is None or signed.serial > last.serial:
            return
        if signed.serial == last.serial and signed.digest == last.digest:
            if again:
                return
            what = "a result was made with it already"
            remedy = "Ask the site for a new one, or pass --again to make the same result again."
        else:
            what = f"serial {signed.serial} is not above {last.serial}, the last one used"
            remedy = "Ask the site for a new one; if its clock was set back, correct it first."
        raise InputError(f"the fragment is replayed: {what}", remedy, client=signed.site, path=path)

    def updated(self, used: Iterable[Signed | Accepted]) -> Seen:
        """The record after these fragments were used."""
        new = {one.site: LastUsed(serial=one.serial, digest=one.digest) for one in used}
        return replace(self, last=self.last | new)

    def save(self) -> None:
        """Write the record's file."""
        sites = dict(sorted(self.last.items()))
        document = SeenDocument(format="jigsaw-crl/seen", version=1, sites=sites)
        write_text(self.path, document.model_dump_json(indent=1))
