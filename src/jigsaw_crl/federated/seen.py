"""The record of the fragments that a coordinator has used, so that none is used twice.

Both routes, files and NVFlare, use one record and hold its lock while they make a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

from jigsaw_crl.base.documents import Closed, Document, WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import write_text
from jigsaw_crl.base.locking import locked
from jigsaw_crl.federated.ledger import Head, Ledger
from jigsaw_crl.federated.round import now
from jigsaw_crl.federated.signing import Signed

__all__ = ["LastUsed", "Seen"]


class _Used(Protocol):
    @property
    def site(self) -> str: ...
    @property
    def serial(self) -> int: ...
    @property
    def digest(self) -> str: ...


class LastUsed(Closed):
    """Serial number and digest of the last fragment used of a site."""

    serial: WholeNumber
    digest: str


class _HeadDocument(Closed):
    entries: WholeNumber
    hash: str


class SeenDocument(Document):
    """The file of the record."""

    kind = "record of used fragments"
    remedy = "Restore it from a backup: without it a replayed fragment would go unnoticed."

    format: Literal["jigsaw-crl/seen"]
    version: Literal[2]
    sites: dict[str, LastUsed]
    rounds: dict[str, str]
    log: _HeadDocument


@dataclass(frozen=True)
class Seen:
    """The last fragment used of each site, and the rounds that have a result.

    Parameters
    ----------
    path : Path
        The record's file.
    last : dict of str to LastUsed
        By site.
    rounds : dict of str to str
        When each round got its result, in UTC.
    log : Head
        How far the log of accepted fragments went.
    """

    path: Path
    last: dict[str, LastUsed]
    rounds: dict[str, str] = field(default_factory=dict)
    log: Head = field(default_factory=Head)

    @staticmethod
    def beside(keys: Path) -> Path:
        """The record's file of a list of keys: `site-keys.seen.json` beside `site-keys.toml`."""
        return keys.with_suffix(".seen.json")

    @classmethod
    def at(cls, path: Path) -> Seen:
        """The record in a file; empty if there is no such file."""
        if not path.exists():
            return cls(path, {})
        document = SeenDocument.from_file(path)
        head = Head(document.log.entries, document.log.hash)
        return cls(path, document.sites, document.rounds, head)

    @classmethod
    @contextmanager
    def held(cls, path: Path, *, patience: float = 0.0) -> Iterator[Seen]:
        """The record, which no other run can use until the block ends."""
        with locked(path, "the record of used fragments", patience=patience):
            yield cls.at(path)

    @property
    def ledger(self) -> Ledger:
        """The log of accepted fragments, beside the record."""
        return Ledger(self.path.with_name(self.path.name.removesuffix("seen.json") + "log.jsonl"))

    def check_round(self, round_name: str, *, again: bool = False) -> None:
        """Refuse a round that has a result, unless it is to be replaced."""
        if round_name in self.rounds and not again:
            raise InputError(
                f"the round {round_name!r} has ended on {self.rounds[round_name]} with a result",
                "Choose a new name, or pass --again to make its result again.",
            )

    def overtook(self, site: str, serial: int) -> bool:
        """Was a newer fragment of the site used?"""
        return site in self.last and serial < self.last[site].serial

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

    def updated(self, used: Iterable[_Used], round_name: str) -> Seen:
        """The record after these fragments were used in a round."""
        new = {one.site: LastUsed(serial=one.serial, digest=one.digest) for one in used}
        return replace(
            self,
            last=self.last | new,
            rounds=self.rounds | {round_name: now()},
            log=self.ledger.head(),
        )

    def save(self) -> None:
        """Write the record's file."""
        document = SeenDocument(
            format="jigsaw-crl/seen",
            version=2,
            sites=dict(sorted(self.last.items())),
            rounds=dict(sorted(self.rounds.items())),
            log=_HeadDocument(entries=self.log.entries, hash=self.log.hash),
        )
        write_text(self.path, document.model_dump_json(indent=1))
