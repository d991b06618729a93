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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import AwareDatetime

from jigsaw_crl.assembly import conclude
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import read_file, write_text
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.labels import label_key, looks_like
from jigsaw_crl.federated.keys import KeyList, SignedDocument, key_identifier, public_text
from jigsaw_crl.federated.ledger import Head, Ledger, LogLine, now
from jigsaw_crl.federated.settings import ANSWERS, STATUS
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


class ResultSignature(SignedDocument):
    """The file `signature.json` of a result folder: the SHA-256 of every other file, signed."""

    kind = "result's signature"
    remedy = "Ask the coordinator to sign the result again."

    format: Literal["jigsaw-crl/result-signature"]
    version: Literal[2]
    study: str | None
    round: str | None
    files: dict[str, str]
    key: str
    signed_at: AwareDatetime
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
        version=2,
        study=about.get("study"),
        round=about.get("round"),
        files=_digests_of(folder),
        key=key_identifier(public_text(key)),
        signed_at=datetime.fromisoformat(now()),
        signature="",
    )
    return write_text(folder / SIGNATURE, unsigned.signed_with(key).model_dump_json(indent=1))


def verify_result(
    folder: Path,
    *,
    keys: KeyList | None = None,
    fragments: Sequence[Path] = (),
    log: Path | None = None,
    recompute: bool = True,
) -> Verification:
    """Check the signatures, log, verdicts and files of a result.

    `keys` has the public keys of the sites and of the coordinator, `fragments` are files that the
    result should rest on, usually a site's own, and `log` is the coordinator's log. The fragments
    are assembled again and compared; without it nothing is verified. A folder that cannot be read,
    or whose last write was not finished, raises an `InputError`.
    """
    digests = _digests_of(folder)
    result = load_result(folder)
    checks = [
        *(_check_own(result, path) for path in fragments),
        _check_sites(result, keys),
        _check_coordinator(folder, result, digests, keys),
        _check_log(result, log),
        _check_verdicts(result, recompute),
        _check_files(result, digests),
    ]
    digest = hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()
    return Verification(digest, tuple(checks))


def _digests_of(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a result folder, by its path in it."""
    check_finished(folder)
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if not p.is_dir()}
    return {
        name: hashlib.sha256(read_file(path, ResultDocument.largest_file, "result")).hexdigest()
        for name, path in sorted(found.items())
        if not (name in _NOT_SIGNED or _LEFT.fullmatch(name) or name.startswith(f"{ANSWERS}/"))
    }


def _judged(what: str, faults: Iterable[str], passed: str) -> Check:
    """Failed with the faults, or ok if there are none."""
    said = "; ".join(faults)
    return Check(what, "failed", said) if said else Check(what, "ok", passed)


def _check_own(result: Result, path: Path) -> Check:
    what = f"fragment {path.name}"
    piece = open_unverified(read_bytes(path))
    used = result.fragments.get(piece.client)
    if used is None:
        return Check(what, "failed", f"the result has no fragment of {piece.client!r}")
    if fragment_digest(used) != fragment_digest(piece):
        return Check(what, "failed", f"the result has another fragment of {piece.client!r}")
    return Check(what, "ok", f"it is the fragment of {piece.client!r} in the result")


def _check_sites(result: Result, keys: KeyList | None) -> Check:
    what = "signatures of the sites"
    signatures = result.provenance.get("signatures")
    if keys is None:
        return Check(what, "not checked", "no list of keys was given")
    if not isinstance(signatures, dict):
        return Check(what, "failed", "the result has no signatures of its fragments")
    faults, round_name = [], result.provenance.get("round")
    for piece in result.order.fragments:
        try:
            fault = _signature_fault(piece, signatures.get(piece.client), keys, round_name)
        except InputError as error:
            fault = error.what
        if fault:
            faults.append(f"{piece.client}: {fault}")
    count = len(result.fragments)
    return _judged(what, faults, f"{count} of {count} sites signed")


def _signature_fault(piece: Fragment, signed: Any, keys: KeyList, round_name: object) -> str:
    """What is wrong with a site's signature; the envelope is built again from the result."""
    if not isinstance(signed, dict):
        return "it is not signed"
    for what, wanted in (("study", keys.study), ("round", round_name)):
        if signed.get(what) != wanted:
            return f"it was signed for the {what} {str(signed.get(what))[:80]!r}"
    envelope = Envelope.of(piece, signed)
    public = {key_identifier(key): key for key in keys.sites.get(piece.client, ())}
    if envelope.key not in public:
        return "the key is not the site's"
    if not envelope.is_signed_with(public[envelope.key]):
        return "the signature does not fit the fragment, the study and the round"
    return ""


def _check_coordinator(
    folder: Path, result: Result, digests: dict[str, str], keys: KeyList | None
) -> Check:
    what = "signature of the coordinator"
    path, public = folder / SIGNATURE, None if keys is None else keys.coordinator
    if not path.exists():
        outcome: Any = "not checked" if public is None else "failed"
        return Check(what, outcome, "the result is not signed")
    signed = ResultSignature.from_file(path)
    other = {name for name, _ in signed.files.items() ^ digests.items()}
    if other:
        named = ", ".join(sorted(other))
        return Check(what, "failed", f"changed, added or removed after it was signed: {named}")
    if keys is None or public is None:
        return Check(what, "not checked", "the coordinator's public key was not given")
    about = result.provenance
    if not signed.study == about.get("study") == keys.study or signed.round != about.get("round"):
        return Check(what, "failed", "it was signed for another study or round")
    if not signed.is_signed_with(public):
        return Check(what, "failed", "another key signed it")
    return Check(what, "ok", f"{len(digests)} files, signed for the round {signed.round!r}")


def _check_log(result: Result, log: Path | None) -> Check:
    what = _LOG
    if log is None:
        return Check(what, "not checked", "no log was given")
    head = result.provenance.get("log")
    if not isinstance(head, dict):
        return Check(what, "failed", "the result names no log")
    try:
        known, ledger = Head(int(head["entries"]), str(head["hash"])), Ledger.read(log)
        ledger.check(known)
    except (InputError, KeyError, TypeError, ValueError) as error:
        return Check(what, "failed", error.what if isinstance(error, InputError) else str(error))
    logged = {(line.site, line.digest) for line in ledger.lines[: known.entries]}
    faults = [
        f"the fragment of {site!r} is not in the log"
        for site, piece in result.fragments.items()
        if (site, fragment_digest(piece)) not in logged
    ]
    return _judged(what, faults, f"unbroken, {known.entries} lines")


def _check_verdicts(result: Result, recompute: bool) -> Check:
    """Whether all that `result.json` says follows from its fragments."""
    what, order = "verdicts", result.order
    if not recompute:
        return Check(what, "not checked", "the fragments were not assembled again")
    if "round" in result.provenance and order.seed != SEED:
        return Check(what, "failed", f"the seed is {order.seed}, where every round has {SEED}")
    concluded = conclude(order.fragments, options=order.options)
    fragments = {piece.client: piece for piece in order.fragments}
    absences = [f for f in result.diagnostics if f.check in ABSENCES and f.client not in fragments]
    told = (result.provenance.get(name) for name in ("missing", "refused"))
    lacking = [site for given in told if isinstance(given, list | dict) for site in given]
    if sorted(str(f.client) for f in absences) != sorted(map(str, lacking)):
        return Check(what, "failed", "the sites that are said to be absent are not those named")
    again = replace(
        result,
        fragments=fragments,
        order=concluded.order,
        diagnostics=(*absences, *spellings(fragments), *concluded.findings),
    )
    if result.proposal is not None:
        again = again.with_proposal()
    given, made = (_said(one.to_document()) for one in (result, again))
    others = [name for name in made if not _same(given[name], made[name])]
    if others:
        named = ", ".join(others)
        return Check(what, "failed", f"the fragments, assembled again, give other {named}")
    asked = (
        f"witnesses: {order.witnesses or 1}{', with knowledge' if order.panel.knowledge else ''}"
    )
    detail = f"the fragments, assembled again, give the same in every field ({asked})"
    return Check(what, "ok", detail)


def spellings(fragments: Mapping[str, Fragment]) -> list[Finding]:
    """A warning for each label that differs from another site's only in spelling or by its looks.

    Files with such labels are refused. A round goes on, because one site must not end it. Labels
    that look alike are named if no site has both.
    """
    first: dict[str, tuple[str, str]] = {}
    found = []
    for site, fragment in fragments.items():
        for label in fragment.labels:
            owner, spelling = first.setdefault(looks_like(label), (site, label))
            if spelling == label:
                continue
            same = label_key(label) == label_key(spelling)
            if not same and any({label, spelling} <= set(f.labels) for f in fragments.values()):
                continue
            what = f"the label {label!r} differs from {owner}'s {spelling!r} only in spelling"
            if not same:
                what = f"the label {label!a} of {site} looks like {owner}'s {spelling!a}"
            remedy = "Labels are shared between sites: agree on one spelling."
            found.append(Finding("label-spelling", "warning", what, remedy, client=site))
    return found


def _said(document: dict[str, Any]) -> dict[str, Any]:
    """The fields of a result, with those of its order beside them, and sites in one sequence."""
    rest = {name: value for name, value in document.items() if name != "order"}
    rest["refined"] = sorted(rest["refined"], key=lambda groups: str(groups["client"]))
    found: dict[str, Any] = document["order"] | rest
    return found


def _same(one: Any, other: Any) -> bool:
    """Are two values of a document equal, numbers as far as rounding lets them be?"""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, abs_tol=_ROUNDING)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[x], other[x]) for x in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _check_files(result: Result, digests: dict[str, str]) -> Check:
    """Whether each file is the one that this program makes of `result.json`."""
    what = "files"
    wanted = {
        name: hashlib.sha256(text.encode()).hexdigest()
        for name, text in texts_of(result).items()
        if text
    }
    others = sorted({name for name, _ in wanted.items() ^ digests.items()})
    if others:
        detail = "not as this version writes them from result.json: " + ", ".join(others)
        return Check(what, "failed", detail)
    return Check(what, "ok", f"{len(wanted)} files are those of result.json")
