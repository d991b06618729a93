"""The log of used fragments, and signed files that a coordinator receives.

Each line of a log holds the hash of the line before, so a line that is changed, removed or added
later does not fit the lines after it. Every result names the number of lines and the hash of the
last one, so that a log that was cut off or written anew is noticed too. A coordinator's log has the
fragments of every result: which rounds have one, and which fragment of a site was the last, follows
from it. A site logs in the same form what it sends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from jigsaw_crl.base.documents import Document, WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import locked, read_file, write_file
from jigsaw_crl.federated.keys import KeyList
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
    at: str
    study: str | None
    round: str
    site: str
    serial: WholeNumber
    digest: str
    previous: str


@dataclass(frozen=True)
class Ledger:
    """A log: its file, its text, its lines, and their hashes, behind one for no line."""

    path: Path
    text: bytes = b""
    lines: tuple[LogLine, ...] = ()
    hashes: tuple[str, ...] = (_START,)

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """The log in a file, empty if there is none; a broken chain is refused."""
        if not path.exists():
            return cls(path)
        text = read_file(path, LogLine.largest_file, LogLine.kind)
        lines, hashes = list[LogLine](), [_START]
        for part in text.removesuffix(b"\n").split(b"\n"):
            lines.append(LogLine.from_text(part, path=path))
            if lines[-1].previous != hashes[-1]:
                raise InputError(
                    f"line {len(lines)} does not follow from the line before it: "
                    "the log was altered",
                    LogLine.remedy,
                    path=path,
                )
            hashes.append(hashlib.sha256(part).hexdigest())
        return cls(path, text, tuple(lines), tuple(hashes))

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
    def last(self) -> dict[str, int]:
        """The serial of the newest fragment of each site."""
        return {line.site: line.serial for line in sorted(self.lines, key=lambda x: x.serial)}

    def check(self, entries: Any, last: Any) -> None:
        """Refuse a log that does not begin with as many lines, of which this was the last hash."""
        if (entries, last) not in enumerate(self.hashes):
            raise InputError(
                f"the log does not hold the {entries} lines that are known: it was cut off "
                "or written anew",
                LogLine.remedy,
                path=self.path,
            )

    def check_round(self, round_name: str, *, closed: bool = False, again: bool = False) -> None:
        """Refuse a round that has a result, unless it is to be replaced."""
        if (closed or round_name in self.rounds) and not again:
            raise InputError(
                f"the round {round_name!r} has a result",
                "Choose a new name, or pass --again to replace that result.",
            )

    def check_new(self, used: Received, *, path: object = None) -> None:
        """Refuse a fragment that is older than one of its site that was used.

        A signed one is used once, because it is for one round and a round has one result.
        """
        if used.serial < self.last.get(used.site, used.serial):
            raise InputError(
                "its fragment is stale: a newer one has been used",
                "Ask the site to make its fragment again.",
                client=used.site,
                path=path,
            )

    def having(self, used: Iterable[Received], round_name: str, study: str | None = None) -> Ledger:
        """The log with a line for each fragment that it does not have yet; `save` writes it."""
        known = {(x.study, x.round, x.site, x.serial, x.digest) for x in self.lines}
        text, lines, hashes = self.text, list(self.lines), list(self.hashes)
        for one in used:
            if (study, round_name, one.site, one.serial, one.digest) in known:
                continue
            line = LogLine(
                format="jigsaw-crl/log",
                version=1,
                at=now(),
                study=study,
                round=round_name,
                site=one.site,
                serial=one.serial,
                digest=one.digest,
                previous=hashes[-1],
            )
            part = line.model_dump_json().encode()
            text += part + b"\n"
            lines.append(line)
            hashes.append(hashlib.sha256(part).hexdigest())
        return Ledger(self.path, text, tuple(lines), tuple(hashes))

    def save(self) -> None:
        """Write the log as a whole; it is on disk when this returns."""
        write_file(self.path, lambda file: file.write(self.text))

    def provenance(
        self, used: Sequence[Received], round_name: str, study: str | None
    ) -> dict[str, Any]:
        """What a result says of its fragments, and how far the log goes that has them."""
        log = {"entries": len(self.lines), "hash": self.hashes[-1]}
        found: dict[str, Any] = {"round": round_name, "log": log}
        if study is not None:
            signed = {one.site: one.envelope.about() for one in used if one.envelope is not None}
            found |= {"study": study, "signatures": signed}
        return found


@contextmanager
def receive_signed(
    paths: Iterable[str | Path], keys: str | Path, round_name: str, *, again: bool = False
) -> Iterator[tuple[dict[str, Fragment], dict[str, Any]]]:
    """Read signed fragments; one that is unknown, altered or stale is refused by name.

    Gives the fragments by client, and their provenance for a result. They are logged at the end of
    the block, which writes it; one that fails can be repeated. Until then no other run can use the
    log. It is beside `keys`, the coordinator's list of site keys. With `again`, the result of the
    round is made once more.
    """
    check_name(round_name, "round")
    listed = KeyList.from_toml(Path(keys))
    used: list[Received] = []
    with Ledger.held(Path(keys).with_suffix(".log.jsonl")) as log:

        def verified() -> Iterator[tuple[str | Path, Fragment]]:
            for path in paths:
                used.append(open_signed(read_bytes(path), listed, round_name, path=path))
                log.check_new(used[-1], path=path)
                yield path, used[-1].fragment

        log.check_round(round_name, again=again)
        fragments = fragments_by_client(verified(), signed=True)
        grown = log.having(used, round_name, listed.study)
        yield fragments, grown.provenance(used, round_name, listed.study)
        grown.save()
