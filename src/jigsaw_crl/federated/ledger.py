"""The coordinator's log of accepted fragments; each line holds the hash of the line before.

A line that is changed, removed or added later does not fit the lines after it. The record of used
fragments (`seen`) and every result name the number of lines and the hash of the last one, so that a
log that was cut off or written anew is noticed too.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jigsaw_crl.base.documents import Document, WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable, writable
from jigsaw_crl.base.locking import locked
from jigsaw_crl.federated.round import now

__all__ = ["Head", "Ledger", "LogLine"]

_START = hashlib.sha256(b"jigsaw-crl/log").hexdigest()
# Seconds to wait for another run that writes a line.
_PATIENCE = 30.0


class LogLine(Document):
    """A line of the log: one accepted fragment."""

    kind = "log of accepted fragments"
    remedy = "Restore it from a backup."

    format: Literal["jigsaw-crl/log"]
    version: Literal[1]
    number: WholeNumber
    at: str
    study: str | None
    round: str
    site: str
    serial: WholeNumber
    digest: str
    previous: str


@dataclass(frozen=True)
class Head:
    """How far a log goes.

    Parameters
    ----------
    entries : int
        Number of lines.
    hash : str
        SHA-256 of the last line, in hexadecimal.
    """

    entries: int = 0
    hash: str = _START

    def to_document(self) -> dict[str, Any]:
        """The head as plain JSON values."""
        return {"entries": self.entries, "hash": self.hash}


@dataclass(frozen=True)
class Ledger:
    """The log in a file.

    Parameters
    ----------
    path : Path
    """

    path: Path

    def lines(self) -> list[tuple[LogLine, Head]]:
        """Every line, and the head of the log after it; a broken chain is refused.

        A last line without its line break was cut off when the coordinator was killed, and does
        not count.
        """
        if not self.path.exists():
            return []
        with readable(self.path):
            parts = self.path.read_bytes().split(b"\n")[:-1]
        found: list[tuple[LogLine, Head]] = []
        head = Head()
        for number, text in enumerate(parts, start=1):
            line = LogLine.from_text(text, path=self.path)
            if line.number != number or line.previous != head.hash:
                raise InputError(
                    f"line {number} does not follow from the line before it: the log was altered",
                    LogLine.remedy,
                    path=self.path,
                )
            head = Head(number, hashlib.sha256(text).hexdigest())
            found.append((line, head))
        return found

    def head(self) -> Head:
        lines = self.lines()
        return lines[-1][1] if lines else Head()

    def head_of(self, round_name: str, digests: Mapping[str, str]) -> Head:
        """The head after the last line of these fragments, which are given by site.

        It stays the same when other fragments are logged later.
        """
        heads = [
            head
            for line, head in self.lines()
            if line.round == round_name and digests.get(line.site) == line.digest
        ]
        return heads[-1] if heads else Head()

    def check(self, known: Head) -> None:
        """Refuse a log that does not begin with the lines that were known before."""
        heads = [Head(), *(head for _, head in self.lines())]
        if known.entries >= len(heads) or heads[known.entries] != known:
            raise InputError(
                f"the log does not hold the {known.entries} lines that are known: it was cut off "
                "or written anew",
                LogLine.remedy,
                path=self.path,
            )

    def append(
        self, *, study: str | None, round_name: str, site: str, serial: int, digest: str
    ) -> None:
        """Add a line, unless the log has it already; it is on disk when this returns."""
        with locked(self.path, "the log", patience=_PATIENCE):
            lines = self.lines()
            head = lines[-1][1] if lines else Head()
            wanted = (study, round_name, site, serial, digest)
            if any(wanted == (x.study, x.round, x.site, x.serial, x.digest) for x, _ in lines):
                return
            line = LogLine(
                format="jigsaw-crl/log",
                version=1,
                number=head.entries + 1,
                at=now(),
                study=study,
                round=round_name,
                site=site,
                serial=serial,
                digest=digest,
                previous=head.hash,
            )
            text = json.dumps(line.model_dump(), ensure_ascii=True, separators=(",", ":")).encode()
            with writable(self.path), self.path.open("ab") as file:
                if file.tell():
                    _drop_half_line(self.path)
                file.write(text + b"\n")
                file.flush()
                os.fsync(file.fileno())


def _drop_half_line(path: Path) -> None:
    """Remove what a killed run left of its last line."""
    whole = path.read_bytes().rfind(b"\n") + 1
    if whole < path.stat().st_size:
        os.truncate(path, whole)
