"""The log of used fragments, and signed files that a coordinator receives.

Each line of a log holds the hash of the line before, so a line that is changed, removed or added
later does not fit the lines after it. Every result names the number of lines and the hash of the
last one, so that a log that was cut off or written anew is noticed too. A coordinator's log has the
fragments of every result: which rounds have one, and which fragment of a site was the last, follows
from it. A site logs in the same form what it sends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jigsaw_crl.base.documents import Document, WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import locked, read_file, write_file
from jigsaw_crl.federated.keys import read_key_list
from jigsaw_crl.federated.settings import check_name
from jigsaw_crl.federated.signing import Received, open_signed
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.reading import fragments_by_client, read_bytes

_START = hashlib.sha256(b"jigsaw-crl/log").hexdigest()


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class LogLine(Document):
    """A line of the log: one fragment of a result."""

    kind = "log of used fragments"
    remedy = "Restore it from a backup: without it a replayed fragment would go unnoticed."

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


class Head(NamedTuple):
    """How far a log goes: the number of its lines, and the SHA-256 of the last one."""

    entries: int = 0
    hash: str = _START


@dataclass(frozen=True)
class Ledger:
    """A log: its file, its text, its lines, and the head after each line, from none on."""

    path: Path
    text: bytes = b""
    lines: tuple[LogLine, ...] = ()
    heads: tuple[Head, ...] = (Head(),)

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """The log in a file, empty if there is none; a broken chain is refused."""
        if not path.exists():
            return cls(path)
        text = read_file(path, LogLine.largest_file, LogLine.kind)
        lines, heads = [], [Head()]
        for number, part in enumerate(text.removesuffix(b"\n").split(b"\n"), start=1):
            line = LogLine.from_text(part, path=path)
            if line.number != number or line.previous != heads[-1].hash:
                raise InputError(
                    f"line {number} does not follow from the line before it: the log was altered",
                    LogLine.remedy,
                    path=path,
                )
            lines.append(line)
            heads.append(Head(number, hashlib.sha256(part).hexdigest()))
        return cls(path, text, tuple(lines), tuple(heads))

    @classmethod
    @contextmanager
    def held(cls, path: Path, *, patience: float = 0.0) -> Iterator[Ledger]:
        """The log, which no other run can use until the block ends."""
        with locked(path, "the log of used fragments", patience=patience):
            yield cls.read(path)

    @cached_property
    def rounds(self) -> dict[str, str]:
        """When each round got its result, in UTC."""
        return {line.round: line.at for line in self.lines}

    @cached_property
    def last(self) -> dict[str, LogLine]:
        """The newest fragment of each site."""
        return {line.site: line for line in sorted(self.lines, key=lambda line: line.serial)}

    def check(self, known: Head) -> None:
        """Refuse a log that does not begin with the lines that were known before."""
        if known not in self.heads[known.entries : known.entries + 1]:
            raise InputError(
                f"the log does not hold the {known.entries} lines that are known: it was cut off "
                "or written anew",
                LogLine.remedy,
                path=self.path,
            )

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

    def check_new(self, signed: Received, *, again: bool = False, path: object = None) -> None:
        """Refuse a fragment that was used before, or is older than one that was.

        With `again` the last one used is accepted, to make its result once more.
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

    def having(self, used: Iterable[Received], round_name: str, study: str | None = None) -> Ledger:
        """The log with a line for each fragment that it does not have yet; `save` writes it."""
        known = {(x.study, x.round, x.site, x.serial, x.digest) for x in self.lines}
        text, lines, heads = self.text, list(self.lines), list(self.heads)
        for one in used:
            if (study, round_name, one.site, one.serial, one.digest) in known:
                continue
            line = LogLine(
                format="jigsaw-crl/log",
                version=1,
                number=len(lines) + 1,
                at=now(),
                study=study,
                round=round_name,
                site=one.site,
                serial=one.serial,
                digest=one.digest,
                previous=heads[-1].hash,
            )
            part = line.model_dump_json().encode()
            lines.append(line)
            heads.append(Head(len(lines), hashlib.sha256(part).hexdigest()))
            text += part + b"\n"
        return Ledger(self.path, text, tuple(lines), tuple(heads))

    def save(self) -> None:
        """Write the log as a whole; it is on disk when this returns."""
        write_file(self.path, lambda file: file.write(self.text))

    def provenance(
        self, used: Sequence[Received], round_name: str, study: str | None
    ) -> dict[str, Any]:
        """What a result says of its fragments, which this log has.

        The head is the one after the last of their lines: it stays when others are logged later.
        """
        digests = {one.site: one.digest for one in used}
        ours = [
            head
            for line, head in zip(self.lines, self.heads[1:], strict=True)
            if line.round == round_name and digests.get(line.site) == line.digest
        ]
        found: dict[str, Any] = {"round": round_name, "log": ours[-1]._asdict()}
        if study is not None:
            signed = {one.site: one.envelope.about() for one in used if one.envelope is not None}
            found |= {"study": study, "signatures": signed}
        return found


@contextmanager
def receive_signed(
    paths: Iterable[str | Path], keys: str | Path, round_name: str, *, again: bool = False
) -> Iterator[tuple[dict[str, Fragment], dict[str, Any], Callable[[], None]]]:
    """Read signed fragments; one that is unknown, altered or replayed is refused by name.

    Gives the fragments by client, their provenance for a result, and a function to be called after
    the result was written. No other run can use the log until the block ends.
    The log is beside `keys`, the coordinator's list of site keys. With `again`, the fragments that
    were the last ones used are accepted, to make their result once more.
    """
    check_name(round_name, "round")
    listed = read_key_list(keys)
    used: list[Received] = []
    with Ledger.held(Path(keys).with_suffix(".log.jsonl")) as log:

        def verified() -> Iterator[tuple[str | Path, Fragment]]:
            for path in paths:
                used.append(open_signed(read_bytes(path), listed, round_name, path=path))
                log.check_new(used[-1], again=again, path=path)
                yield path, used[-1].fragment

        fragments = fragments_by_client(verified(), signed=True)
        log.check_round(round_name, again=again)
        grown = log.having(used, round_name, listed.study)
        yield fragments, grown.provenance(used, round_name, listed.study), grown.save
