"""Sign a result, and check one that somebody else made.

A result holds the fragments it rests on. So a reader can check that each site signed its fragment
for this study and round, that the coordinator signed every file of the folder and logged the
fragments, that all that `result.json` says follows from the fragments, and that the other files say
the same.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jigsaw_crl.assembly.conclusion import conclude
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import read_file, write_text
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.labels import looks_like
from jigsaw_crl.federated.keys import KeyList, SignedDocument, key_identifier, public_text
from jigsaw_crl.federated.ledger import Ledger, LogLine
from jigsaw_crl.federated.settings import STATUS, RoundRecord
from jigsaw_crl.federated.signing import Envelope, fragment_digest, open_unverified
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.reading import read_bytes
from jigsaw_crl.result.document import ResultDocument
from jigsaw_crl.result.folder import check_finished, load_result, texts_of
from jigsaw_crl.result.result import Result

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# The seed of every round, so that nobody can try several and choose.
SEED = 0
# Findings about sites of which there is no fragment.
ABSENCES = ("missing-site", "refused-site")
SIGNATURE = "signature.json"
# The signature itself, and what changes after it: a lock, and how the round stands.
_NOT_SIGNED = {SIGNATURE, STATUS, ".lock"}
# What a process leaves that is killed while it writes one of these.
_LEFT = re.compile(rf"\.(?:{re.escape(SIGNATURE)}|{re.escape(STATUS)})-[0-9a-f]{{12}}")
# Numbers of one result that two machines computed may differ so much.
_ROUNDING = 1e-9
_LOG = LogLine.kind
# What is wrong with a result; `verify` says once what to do about it.
_fault = partial(InputError, remedy="Ask the coordinator for the original.")


class ResultSignature(SignedDocument):
    """The file `signature.json` of a result folder: the SHA-256 of every other file, signed."""

    kind = "result's signature"
    remedy = "Ask the coordinator to sign the result again."

    format: Literal["jigsaw-crl/result-signature"]
    version: Literal[1]
    study: str | None
    round: str | None
    files: dict[str, str]
    key: str
    signature: str


@dataclass(frozen=True)
class Check:
    """One question about a result, and the answer."""

    what: str
    outcome: Literal["ok", "failed", "not checked"]
    detail: str


@dataclass(frozen=True)
class Verification:
    """What was found out about a result.

    The digest is the SHA-256 of the names and digests of all files: two sites that see the same one
    have the same result.
    """

    digest: str
    checks: tuple[Check, ...] = ()

    @property
    def state(self) -> Literal["verified", "not verified", "failed"]:
        """Whether a check failed, or could not be made; only the log need not be given."""
        if any(check.outcome == "failed" for check in self.checks):
            return "failed"
        outcomes = {check.outcome for check in self.checks if check.what != _LOG}
        return "not verified" if "not checked" in outcomes else "verified"


def sign_result(folder: Path, key: Ed25519PrivateKey) -> Path:
    """Sign every file of a result folder, for its study and round; writes `signature.json`."""
    about = load_result(folder).provenance
    unsigned = ResultSignature(
        format="jigsaw-crl/result-signature",
        version=1,
        study=about.get("study"),
        round=about.get("round"),
        files=_digests_of(folder),
        key=key_identifier(public_text(key)),
        signature="",
    )
    return write_text(folder / SIGNATURE, unsigned.signed_with(key).model_dump_json(indent=1))


def verify_result(
    folder: Path,
    *,
    keys: KeyList | None = None,
    fragments: Sequence[Path] = (),
    log: Path | None = None,
) -> Verification:
    """Check the signatures, log, verdicts and files of a result.

    `keys` has the public keys of the sites and of the coordinator, `fragments` are files that the
    result should rest on, usually a site's own, and `log` is the coordinator's log. The fragments
    are assembled again and compared. A folder that cannot be read, or whose last write was not
    finished, raises an `InputError`.
    """
    digests = _digests_of(folder)
    result = load_result(folder)
    checks = {
        **{f"fragment {path.name}": partial(_own, result, path) for path in fragments},
        "signatures of the sites": partial(_signed_by_sites, result, keys),
        "signature of the coordinator": partial(_signed, result, folder, digests, keys),
        _LOG: partial(_logged, result, log),
        "verdicts": partial(_concluded, result),
        "files": partial(_written, result, digests),
    }
    if (folder / STATUS).exists():
        checks[STATUS] = partial(_stands, result, folder)
    digest = hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()
    return Verification(digest, tuple(_judged(what, check) for what, check in checks.items()))


def _digests_of(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a result folder, by its path in it."""
    check_finished(folder)
    every = list(folder.rglob("*"))
    found = {p.relative_to(folder).as_posix(): p for p in every if not p.is_dir()}
    for link in (p for p in every if p.is_symlink()):
        raise InputError("it is a link to something else", "Copy the file itself.", path=link)
    return {
        name: hashlib.sha256(read_file(path, ResultDocument.largest_file, "result")).hexdigest()
        for name, path in sorted(found.items())
        if not (name in _NOT_SIGNED or _LEFT.fullmatch(name))
    }


class _NotCheckedError(Exception):
    """What a check lacks."""


def _judged(what: str, check: Callable[[], str]) -> Check:
    """The outcome of a check: it says what is right, or raises an error."""
    try:
        return Check(what, "ok", check())
    except InputError as error:
        whose = f"{error.client}: " if error.client else ""
        return Check(what, "failed", whose + error.what)
    except _NotCheckedError as lacking:
        return Check(what, "not checked", str(lacking))


def _own(result: Result, path: Path) -> str:
    piece = open_unverified(read_bytes(path))
    used = result.fragments.get(piece.client)
    if used is None or fragment_digest(used) != fragment_digest(piece):
        kind = "no" if used is None else "another"
        raise _fault(f"the result has {kind} fragment of {piece.client!r}")
    return f"it is the fragment of {piece.client!r} in the result"


def _signed_by_sites(result: Result, keys: KeyList | None) -> str:
    if keys is None:
        raise _NotCheckedError("no list of keys was given")
    signatures = _table(result, "signatures")
    for piece in result.order.fragments:
        about = signatures.get(piece.client)
        if not isinstance(about, dict):
            raise _fault("it is not signed", client=piece.client)
        Envelope.of(piece, about).check(keys, result.provenance.get("round"))
    count = len(result.fragments)
    return f"{count} of {count} sites signed"


def _table(result: Result, name: str) -> dict[str, Any]:
    """An entry of the provenance; what is in it may be anything: the coordinator wrote it."""
    found: dict[str, Any] | None = result.provenance.get(name)
    if found is None:
        raise _fault(f"the result names no {name}")
    return found


def _signed(result: Result, folder: Path, digests: dict[str, str], keys: KeyList | None) -> str:
    if keys is None or keys.coordinator is None:
        raise _NotCheckedError("the coordinator's public key was not given")
    if not (folder / SIGNATURE).exists():
        raise _fault("the result is not signed")
    signed, about = ResultSignature.from_file(folder / SIGNATURE), result.provenance
    other = {name for name, _ in signed.files.items() ^ digests.items()}
    if other:
        named = ", ".join(sorted(other))
        raise _fault(f"changed, added or removed after it was signed: {named}")
    if not signed.study == about.get("study") == keys.study or signed.round != about.get("round"):
        raise _fault("it was signed for another study or round")
    if not signed.is_signed_with(keys.coordinator):
        raise _fault("another key signed it")
    return f"{len(digests)} files, signed for the round {signed.round!r}"


def _logged(result: Result, path: Path | None) -> str:
    if path is None:
        raise _NotCheckedError("no log was given")
    head, log = _table(result, "log"), Ledger.read(path)
    entries = head.get("entries")
    log.check(entries, head.get("hash"))
    logged = {(line.site, line.digest) for line in log.lines[:entries]}
    for site, piece in result.fragments.items():
        if (site, fragment_digest(piece)) not in logged:
            raise _fault(f"the fragment of {site!r} is not in the log")
    return f"unbroken, {entries} lines"


def _concluded(result: Result) -> str:
    """Whether all that `result.json` says follows from its fragments."""
    order = result.order
    if "round" in result.provenance and order.options.seed != SEED:
        raise _fault(f"the seed is {order.options.seed}, where every round has {SEED}")
    concluded = conclude(order.fragments, options=order.options)
    fragments = {piece.client: piece for piece in order.fragments}
    absent = [f for f in result.diagnostics if f.check in ABSENCES and f.client not in fragments]
    again = replace(
        result,
        fragments=fragments,
        order=concluded.order,
        diagnostics=(*absent, *spellings(fragments), *concluded.findings),
    )
    if result.proposal is not None:
        again = again.with_proposal()
    given, made = result.to_document(), again.to_document()
    for document in (given, made):  # the sites in one sequence
        document["refined"].sort(key=lambda groups: str(groups["client"]))
    others = [name for name in made if not _same(given[name], made[name])]
    if others:
        raise _fault(f"the fragments, assembled again, give other {', '.join(others)}")
    chosen = order.options
    said = [f"witnesses: {chosen.witnesses or 1}"]
    said += ["with knowledge"] if order.panel.knowledge else []
    said += [f"smallest effect: {chosen.smallest_effect}"] if chosen.smallest_effect else []
    said += [f"method: {chosen.method}"] if chosen.method != "null-cone" else []
    return f"the fragments, assembled again, give the same in every field ({', '.join(said)})"


def absences(record: RoundRecord) -> list[Finding]:
    """A warning for each site that is missing or refused."""
    found = []
    for site, standing in record.sites.items():
        if standing.state != "received":
            what = f"the site is {standing.state}: {standing.why or 'it did not answer in time'}"
            remedy = "Run the round again with it."
            check = f"{standing.state}-site"
            found.append(Finding(check, "warning", what, remedy, client=site))
    return found


def spellings(fragments: Mapping[str, Fragment]) -> list[Finding]:
    """A warning for each label that looks like another site's, or differs from it only in spelling.

    Files with labels that differ only in spelling are refused. A round goes on, because one site
    must not end it. A site that has both labels tells them apart.
    """
    first: dict[str, tuple[str, str]] = {}
    found = []
    for site, fragment in fragments.items():
        for label in fragment.labels:
            owner, other = first.setdefault(looks_like(label), (site, label))
            if label == other or any({label, other} <= set(f.labels) for f in fragments.values()):
                continue
            what = f"the label {label!a} of {site} looks like {owner}'s {other!a}"
            remedy = "Labels are shared between sites: agree on one spelling."
            found.append(Finding("label-spelling", "warning", what, remedy, client=site))
    return found


def _stands(result: Result, folder: Path) -> str:
    """Whether `round.json`, which is written after the signature, says what the result says."""
    record, log = RoundRecord.read(folder), _table(result, "log")
    if record is None:
        raise _fault("it cannot be read")
    used = {site for site, standing in record.sites.items() if standing.state == "received"}
    told = [f for f in result.diagnostics if f.check in ABSENCES and f.client not in used]
    if used != set(result.fragments) or told != absences(record):
        raise _fault("it says something else of the sites")
    # Without the log, if the coordinator was killed when it wrote the record.
    known = record.log in (None, (log.get("entries"), log.get("hash")))
    if not (known and record.closed and record.round == result.provenance.get("round")):
        raise _fault("it is of another round, or of one that has not ended")
    return "it says what the result says"


def _same(one: Any, other: Any) -> bool:
    """Are two values of a document equal, numbers as far as rounding lets them be?"""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, abs_tol=_ROUNDING)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[x], other[x]) for x in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _written(result: Result, digests: dict[str, str]) -> str:
    """Whether each file is the one that this program makes of `result.json`."""
    texts = {name: text for name, text in texts_of(result).items() if text}
    wanted = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    others = sorted({name for name, _ in wanted.items() ^ digests.items()})
    if others:
        named = ", ".join(others)
        raise _fault(f"not as this version writes them from result.json: {named}")
    return f"{len(wanted)} files are those of result.json"
