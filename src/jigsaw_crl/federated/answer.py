"""The answer of a site that is asked for its fragment, and the coordinator's checks of it.

An answer is one JSON object: the round it belongs to and either the fragment, with the time its
file was written, or one word that says why there is none.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jigsaw_crl.base.documents import Document, WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.disclosure import check_rows, size_bound
from jigsaw_crl.federated.keys import KeyList
from jigsaw_crl.federated.ledger import Ledger
from jigsaw_crl.federated.seen import Seen
from jigsaw_crl.federated.settings import MOST_LABELS, SiteSettings
from jigsaw_crl.federated.signing import (
    Signed,
    check_time,
    fragment_digest,
    is_signed,
    open_signed,
    open_unverified,
)
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["WHY_NOT", "Accepted", "Answer", "Rules", "check_answer", "make_answer"]

Reason = Literal[
    "none", "too-large", "invalid", "other-client", "too-few-rows", "budget-spent", "not-logged"
]
WHY_NOT: Mapping[Reason, str] = {
    "none": "it has no finished fragment",
    "too-large": "its fragment is larger than the site allows, or than its labels can make it",
    "invalid": "its file is not a fragment",
    "other-client": "its fragment is another client's",
    "too-few-rows": "a regime has fewer rows than the site allows",
    "budget-spent": "it has sent as many fragments as the site allows",
    "not-logged": "it could not log what it sends",
}
"""The words with which a site says that it sends no fragment, and what they mean."""

# Since 1970, in 64 bits: a float can hold any of them.
_Nanoseconds = Annotated[WholeNumber, Field(ge=-(2**63), lt=2**63)]
_SECOND = 10**9


class Answer(Document):
    """What a site sends: a fragment and the time its file was written, or why there is none."""

    kind = "answer"
    remedy = "Use one version of jigsaw-crl at all sites."

    format: Literal["jigsaw-crl/answer"]
    version: Literal[1]
    round: str
    written_at: _Nanoseconds | None = None
    fragment: str | None = None
    why_not: Reason | None = None

    @model_validator(mode="after")
    def _fragment_or_reason(self) -> Self:
        given = (self.written_at is not None, self.fragment is not None, self.why_not is not None)
        if given not in ((True, True, False), (False, False, True)):
            raise ValueError("it needs written_at and fragment, or why_not alone")
        return self


@dataclass(frozen=True)
class Rules:
    """When the coordinator accepts an answer.

    Parameters
    ----------
    round_name : str
    seen : Seen
        A fragment older than the last one used of its site is stale.
    most_bytes : int
        Larger answers are refused.
    most_labels : int
        Fragments with more labels are refused.
    max_age : float or None
        Seconds since the fragment was written or signed; older ones are stale.
    keys : KeyList or None
        Study and public keys. If given, only fragments signed for this round are accepted.
    """

    round_name: str
    seen: Seen
    most_bytes: int
    most_labels: int = MOST_LABELS
    max_age: float | None = None
    keys: KeyList | None = None


@dataclass(frozen=True, eq=False)
class Accepted:
    """A fragment that was accepted.

    Parameters
    ----------
    site : str
    fragment : Fragment
    serial : int
        Nanoseconds since 1970 at which the fragment was signed or, unsigned, its file written.
    digest : str
        Of the fragment: see `fragment_digest`.
    signed : Signed or None
        The fragment's signature, if it was needed.
    """

    site: str
    fragment: Fragment
    serial: int
    digest: str
    signed: Signed | None = None


# -- at the site ----------------------------------------------------------------------------------


def make_answer(settings: SiteSettings, site: str, round_name: str) -> str:
    """The site's answer: its fragment if the file holds one of this site and nothing else."""

    def answer(**content: object) -> str:
        head = {"format": "jigsaw-crl/answer", "version": 1, "round": round_name}
        return Answer.from_document({**head, **content}).model_dump_json(exclude_none=True)

    try:
        status = settings.fragment.stat()
        if not stat.S_ISREG(status.st_mode):
            return answer(why_not="none")
        if status.st_size > settings.most_bytes:
            return answer(why_not="too-large")
        text = settings.fragment.read_bytes().decode()
        fragment = open_unverified(text)
    except OSError:
        return answer(why_not="none")
    except ValueError:  # not UTF-8, or an InputError
        return answer(why_not="invalid")
    if fragment.client != site:
        return answer(why_not="other-client")
    if _is_oversized(fragment, text):
        return answer(why_not="too-large")
    try:
        check_rows(fragment, settings.min_rows)
    except InputError:
        return answer(why_not="too-few-rows")
    try:
        if not _log_sent(settings, fragment, round_name, status.st_mtime_ns):
            return answer(why_not="budget-spent")
    except InputError:  # the log was altered, or cannot be written
        return answer(why_not="not-logged")
    return answer(written_at=status.st_mtime_ns, fragment=text)


def _log_sent(settings: SiteSettings, fragment: Fragment, round_name: str, serial: int) -> bool:
    """Log that a fragment is sent; False if it is a new one and the budget is spent.

    The same fragment says nothing new: it may be sent in any number of rounds.
    """
    ledger, digest = Ledger(settings.sent), fragment_digest(fragment)
    sent = {line.digest for line, _ in ledger.lines()}
    limit = settings.most_fragments
    if limit is not None and digest not in sent and len(sent) >= limit:
        return False
    ledger.append(
        study=None, round_name=round_name, site=fragment.client, serial=serial, digest=digest
    )
    return True


def _is_oversized(fragment: Fragment, text: str) -> bool:
    """Is the text longer than a fragment with these labels can be?

    A signed fragment is quoted inside its envelope, which can double its length.
    """
    return len(text.encode()) > (2 if is_signed(text) else 1) * size_bound(fragment.labels)


# -- at the coordinator ---------------------------------------------------------------------------


def check_answer(text: object, site: str, rules: Rules) -> Accepted:
    """The fragment in an answer that is valid, of this round and site, and not stale.

    Raises
    ------
    InputError
        Names the site and says what is wrong.
    """

    def refuse(what: str, remedy: str = "Ask the site to make its fragment again.") -> InputError:
        return InputError(what, remedy, client=site)

    answer = _parse_answer(text, site, rules)
    if answer.round != rules.round_name:
        raise refuse("its answer is stale: it belongs to another round")
    if answer.why_not is not None:
        raise refuse(f"it says that {WHY_NOT[answer.why_not]}")
    assert answer.fragment is not None
    assert answer.written_at is not None
    serial, signed = answer.written_at, None
    try:
        if rules.keys is None:
            fragment = open_unverified(answer.fragment, most_labels=rules.most_labels)
        else:
            signed = open_signed(
                answer.fragment,
                rules.keys.sites,
                study=rules.keys.study,
                round_name=rules.round_name,
                most_labels=rules.most_labels,
            )
            fragment, serial = signed.fragment, signed.serial
    except InputError as error:
        raise refuse(f"its fragment is refused: {error.what}", error.remedy) from None
    if fragment.client != site:
        raise refuse(f"its fragment is of another client, {fragment.client[:80]!r}")
    if _is_oversized(fragment, answer.fragment):
        raise refuse("its fragment is oversized: larger than its labels can make it")
    wrong = check_time(serial)
    if wrong:
        raise refuse(f"its fragment was written {wrong}", "Set the site's clock right.")
    age = time.time_ns() - serial
    if rules.max_age is not None and age > rules.max_age * _SECOND:
        raise refuse(
            f"its fragment is stale: {age / _SECOND / 3600:.3g} hours old, "
            f"{rules.max_age / 3600:.3g} are allowed"
        )
    if rules.seen.overtook(site, serial):
        raise refuse("its fragment is stale: a newer one has been used")
    return Accepted(site, fragment, serial, fragment_digest(fragment), signed)


def _parse_answer(text: object, site: str, rules: Rules) -> Answer:
    if not isinstance(text, str):
        raise InputError("its answer is garbage: not a text", Answer.remedy, client=site)
    # Characters first, because encoding copies what may be huge.
    if len(text) > rules.most_bytes or len(text.encode("utf-8", "replace")) > rules.most_bytes:
        raise InputError(
            f"its answer is oversized: more than {rules.most_bytes} bytes",
            "Raise 'most_bytes' in local/jigsaw-coordinator.json, if fragments can be that large.",
            client=site,
        )
    try:
        return Answer.from_text(text)
    except InputError as error:
        raise InputError(
            f"its answer is garbage: {error.what}", error.remedy, client=site
        ) from None
