"""Sign a result, and check one that somebody else made.

A result names the digests of the fragments it rests on, and holds these fragments. So a reader can
check that the digests are right, that each site signed its fragment, that the coordinator signed
the result and logged the fragments, and that the verdicts follow from the fragments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import AwareDatetime

from jigsaw_crl.assembly import conclude
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable, write_text
from jigsaw_crl.federated.keys import KeyList, SignedDocument, key_identifier, public_text
from jigsaw_crl.federated.ledger import Head, Ledger
from jigsaw_crl.federated.round import now
from jigsaw_crl.federated.signing import Envelope, fragment_digest, open_unverified
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.reading import read_bytes
from jigsaw_crl.result.folder import COMPLETE, RESULT, load_result
from jigsaw_crl.result.result import Result

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["SIGNATURE", "Check", "Verification", "sign_result", "verify_result"]

SIGNATURE = "signature.json"


class ResultSignature(SignedDocument):
    """The file `signature.json` of a result folder."""

    kind = "result's signature"
    remedy = "Ask the coordinator to sign the result again."

    format: Literal["jigsaw-crl/result-signature"]
    version: Literal[1]
    result: str
    key: str
    signed_at: AwareDatetime
    signature: str


@dataclass(frozen=True)
class Check:
    """One question about a result, and the answer.

    Parameters
    ----------
    what : str
    outcome : {"ok", "failed", "not checked"}
    detail : str
    """

    what: str
    outcome: Literal["ok", "failed", "not checked"]
    detail: str


@dataclass(frozen=True)
class Verification:
    """What was found out about a result.

    Parameters
    ----------
    digest : str
        SHA-256 of `result.json`. Two sites that see the same one have the same result.
    checks : tuple of Check
    """

    digest: str
    checks: tuple[Check, ...] = field(default_factory=tuple)

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return all(check.outcome != "failed" for check in self.checks)


def sign_result(folder: Path, key: Ed25519PrivateKey) -> Path:
    """Sign the result in a folder; writes `signature.json` there."""
    unsigned = ResultSignature(
        format="jigsaw-crl/result-signature",
        version=1,
        result=_result_digest(folder),
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
    recompute: bool = False,
) -> Verification:
    """Check the digests, signatures, log and verdicts of a result.

    Parameters
    ----------
    folder : Path
    keys : KeyList, optional
        Public keys of the sites and of the coordinator.
    fragments : sequence of path
        Fragments, signed or not, that the result should rest on: usually a site's own.
    log : Path, optional
        The coordinator's log of accepted fragments.
    recompute : bool
        Assemble the fragments again, and compare the verdicts.
    """
    result = load_result(folder)
    checks = [
        _check_digests(result),
        *(_check_own(result, path) for path in fragments),
        _check_sites(result, keys),
        _check_coordinator(folder, keys),
        _check_log(result, log),
        _check_verdicts(result, recompute),
    ]
    return Verification(_result_digest(folder), tuple(checks))


def _result_digest(folder: Path) -> str:
    # As `load_result`: a result that was just written may still be in its stage.
    path = next(p for p in (folder / COMPLETE / RESULT, folder / RESULT) if p.exists())
    with readable(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()


def _failed(what: str, faults: Iterable[str]) -> Check | None:
    found = list(faults)
    return Check(what, "failed", "; ".join(found)) if found else None


def _check_digests(result: Result) -> Check:
    what = "digests of the fragments"
    named = result.provenance.get("digests")
    if not isinstance(named, dict):
        return Check(what, "not checked", "the result names none")
    faults = [f"no fragment of {site!r}" for site in sorted(set(named) - set(result.fragments))]
    faults += [
        f"the fragment of {site!r} is not the one named"
        for site, piece in result.fragments.items()
        if named.get(site) != fragment_digest(piece)
    ]
    return _failed(what, faults) or Check(what, "ok", f"{len(named)} of {len(named)} agree")


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
    faults = []
    for site, piece in result.fragments.items():
        try:
            fault = _signature_fault(piece, signatures.get(site), keys)
        except InputError as error:
            fault = error.what
        if fault:
            faults.append(f"{site}: {fault}")
    count = len(result.fragments)
    return _failed(what, faults) or Check(what, "ok", f"{count} of {count} sites signed")


def _signature_fault(piece: Fragment, signed: Any, keys: KeyList) -> str:
    """What is wrong with a site's signature; the envelope is built again from the result."""
    if not isinstance(signed, dict):
        return "it is not signed"
    if signed.get("study") != keys.study:
        return f"it was signed for the study {str(signed.get('study'))[:80]!r}"
    envelope = Envelope.from_document(
        {
            **signed,
            "format": "jigsaw-crl/signed-fragment",
            "version": 2,
            "site": piece.client,
            "fragment": piece.to_json(),
        }
    )
    public = {key_identifier(key): key for key in keys.sites.get(piece.client, ())}
    if envelope.key not in public:
        return "the key is not the site's"
    if not envelope.is_signed_with(public[envelope.key]):
        return "the signature does not fit the fragment, the study and the round"
    return ""


def _check_coordinator(folder: Path, keys: KeyList | None) -> Check:
    what = "signature of the coordinator"
    path = folder / SIGNATURE
    if not path.exists():
        wanted = keys is not None and keys.coordinator is not None
        return Check(what, "failed" if wanted else "not checked", "the result is not signed")
    signed = ResultSignature.from_file(path)
    if signed.result != _result_digest(folder):
        return Check(what, "failed", "the result was changed after it was signed")
    if keys is None or keys.coordinator is None:
        return Check(what, "not checked", "the coordinator's public key was not given")
    if not signed.is_signed_with(keys.coordinator):
        return Check(what, "failed", "another key signed it")
    return Check(what, "ok", f"signed at {signed.signed_at.isoformat()}")


def _check_log(result: Result, log: Path | None) -> Check:
    what = "log of accepted fragments"
    if log is None:
        return Check(what, "not checked", "no log was given")
    head, named = result.provenance.get("log"), result.provenance.get("digests")
    if not isinstance(head, dict) or not isinstance(named, dict):
        return Check(what, "failed", "the result names no log")
    ledger = Ledger(log)
    try:
        ledger.check(Head(int(head["entries"]), str(head["hash"])))
        lines = [line for line, _ in ledger.lines()[: int(head["entries"])]]
    except (InputError, KeyError, TypeError, ValueError) as error:
        return Check(what, "failed", error.what if isinstance(error, InputError) else str(error))
    logged = {(line.site, line.digest) for line in lines}
    faults = [
        f"the fragment of {site!r} is not in the log"
        for site, digest in named.items()
        if (site, digest) not in logged
    ]
    return _failed(what, faults) or Check(what, "ok", f"unbroken, {len(lines)} lines")


def _check_verdicts(result: Result, recompute: bool) -> Check:
    what = "verdicts"
    if not recompute:
        return Check(what, "not checked", "--recompute was not given")
    given = result.order
    again = conclude(given.fragments, options=given.options).order
    same = {
        "verdicts": np.array_equal(again.verdicts, given.verdicts),
        "probabilities": np.allclose(again.probabilities, given.probabilities, atol=1e-9),
        "weights": np.allclose(again.use.weights, given.use.weights, atol=1e-9),
        "notes": again.notes == given.notes,
    }
    others = [name for name, equal in same.items() if not equal]
    if others:
        return Check(what, "failed", f"the fragments, assembled again, give other {others[0]}")
    return Check(what, "ok", "the fragments, assembled again, give the same verdicts")
