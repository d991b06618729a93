"""The record of the fragments that a coordinator has used, so that none is used twice.

The log says which fragments were accepted. The record says which rounds have a result and how far
the log went; what was used of each site follows from both. Both routes, files and NVFlare, use one
record and hold its lock while they make a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from jigsaw_crl.base.documents import Closed, Document, WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import write_text
from jigsaw_crl.base.locking import locked
from jigsaw_crl.federated.ledger import Head, Ledger, LogLine
from jigsaw_crl.federated.round import now
from jigsaw_crl.federated.signing import Signed

__all__ = ["Seen"]


class _HeadDocument(Closed):
    entries: WholeNumber
    hash: str


class SeenDocument(Document):
    """The file of the record."""

    kind = "record of used fragments"
    remedy = "Restore it from a backup: without it a replayed fragment would go unnoticed."

    format: Literal["jigsaw-crl/seen"]
    version: Literal[3]
    rounds: dict[str, str]
    log: _HeadDocument


@dataclass(frozen=True)
class Seen:
    """The last fragment used of each site, and the rounds that have a result.

    Parameters
    ----------
    path : Path
        The record's file.
    rounds : dict of str to str
        When each round got its result, in UTC.
    log : Head
        How far the log of accepted fragments went.
    last : dict of str to LogLine
        The newest fragment of each site in the log of these rounds.
    """

    path: Path
    rounds: dict[str, str] = field(default_factory=dict)
    log: Head = field(default_factory=Head)
    last: dict[str, LogLine] = field(default_factory=dict)

    @staticmethod
    def beside(keys: Path) -> Path:
        """The record's file of a list of keys: `site-keys.seen.json` beside `site-keys.toml`."""
        return keys.with_suffix(".seen.json")

    @classmethod
    def at(cls, path: Path) -> Seen:
        """The record in a file; empty if there is no such file.

        A log that was cut off or written anew is refused.
        """
        if not path.exists():
            return cls(path)
        document = SeenDocument.from_file(path)
        found = cls(path, document.rounds, Head(document.log.entries, document.log.hash))
        found.ledger.check(found.log)
        known = [line for line, _ in found.ledger.lines()[: found.log.entries]]
        used = sorted((x for x in known if x.round in found.rounds), key=lambda x: x.serial)
        return replace(found, last={line.site: line for line in used})

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

    def save(self, round_name: str) -> None:
        """Note that a round has a result, which rests on what the log has of this round."""
        log = self.ledger.head()
        document = SeenDocument(
            format="jigsaw-crl/seen",
            version=3,
            rounds=dict(sorted({**self.rounds, round_name: now()}.items())),
            log=_HeadDocument(entries=log.entries, hash=log.hash),
        )
        write_text(self.path, document.model_dump_json(indent=1))
