"""The answer of a site that is asked for its fragment, and the coordinator's checks of it.

An answer is one JSON object: the round it belongs to and either the fragment, with the time its
file was written, or one word that says why there is none.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jigsaw_crl.base.documents import Document, WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.disclosure import check_rows, size_bound
from jigsaw_crl.federated.keys import KeyList
from jigsaw_crl.federated.ledger import Ledger
from jigsaw_crl.federated.settings import MOST_LABELS, SiteSettings
from jigsaw_crl.federated.signing import (
    Received,
    check_time,
    is_signed,
    open_signed,
    open_unverified,
)
from jigsaw_crl.fragment.fragment import Fragment

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


# -- at the site ----------------------------------------------------------------------------------


def make_answer(settings: SiteSettings, site: str, round_name: str) -> str:
    """The site's answer: its fragment if the file holds one of this site and nothing else."""
    content: dict[str, object]
    try:
        found = _own_fragment(settings, site, round_name)
        content = {"written_at": found[0], "fragment": found[1]}
    except _NoFragmentError as reason:
        content = {"why_not": str(reason)}
    head = {"format": "jigsaw-crl/answer", "version": 1, "round": round_name}
    return Answer.from_document({**head, **content}).model_dump_json(exclude_none=True)


class _NoFragmentError(Exception):
    """Its text is one of the words of `WHY_NOT`."""


def _own_fragment(settings: SiteSettings, site: str, round_name: str) -> tuple[int, str]:
    """The time at which the fragment was written, and its text; what is sent is logged first."""
    try:
        status = settings.fragment.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _NoFragmentError("none")
        if status.st_size > settings.most_bytes:
            raise _NoFragmentError("too-large")
        text = settings.fragment.read_bytes().decode()
        fragment = open_unverified(text)
    except OSError:
        raise _NoFragmentError("none") from None
    except ValueError:  # not UTF-8, or an InputError
        raise _NoFragmentError("invalid") from None
    if fragment.client != site:
        raise _NoFragmentError("other-client")
    if _is_oversized(fragment, text):
        raise _NoFragmentError("too-large")
    try:
        check_rows(fragment, settings.min_rows)
    except InputError:
        raise _NoFragmentError("too-few-rows") from None
    own, limit = Received(fragment, status.st_mtime_ns), settings.most_fragments
    try:
        with Ledger.held(settings.sent, patience=_PATIENCE) as log:
            # The same fragment says nothing new: it may be sent in any number of rounds.
            sent = {line.digest for line in log.lines}
            if limit is not None and own.digest not in sent and len(sent) >= limit:
                raise _NoFragmentError("budget-spent")
            log.having([own], round_name).save()
    except InputError:  # the log was altered, or cannot be written
        raise _NoFragmentError("not-logged") from None
    return status.st_mtime_ns, text


# Seconds to wait for another process of the site that writes to its log.
_PATIENCE = 30.0


def _is_oversized(fragment: Fragment, text: str) -> bool:
    """Is the text longer than a fragment with these labels can be?

    A signed fragment is quoted inside its envelope, which can double its length.
    """
    return len(text.encode()) > (2 if is_signed(text) else 1) * size_bound(fragment.labels)


# -- at the coordinator ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Rules:
    """When the coordinator accepts an answer.

    A fragment is stale if it is older than one of its site that the log has. With `keys`, only
    fragments that were signed for this study and round are accepted.
    """

    round_name: str
    log: Ledger
    most_bytes: int
    most_labels: int = MOST_LABELS
    keys: KeyList | None = None


def check_answer(text: object, site: str, rules: Rules) -> Received:
    """The fragment in an answer that is valid, of this round and site, and not stale.

    Any other raises an `InputError` that names the site and says what is wrong.
    """

    def refuse(what: str, remedy: str = "Ask the site to make its fragment again.") -> InputError:
        return InputError(what, remedy, client=site)

    if not isinstance(text, str):
        raise refuse("its answer is garbage: not a text", Answer.remedy)
    # Characters first, because encoding copies what may be huge.
    if len(text) > rules.most_bytes or len(text.encode("utf-8", "replace")) > rules.most_bytes:
        raise refuse(
            f"its answer is oversized: more than {rules.most_bytes} bytes",
            "Raise 'most_bytes' in local/jigsaw-coordinator.json, if fragments can be that large.",
        )
    try:
        answer = Answer.from_text(text)
    except InputError as error:
        raise refuse(f"its answer is garbage: {error.what}", error.remedy) from None
    if answer.round != rules.round_name:
        raise refuse("its answer is stale: it belongs to another round")
    if answer.why_not is not None:
        raise refuse(f"it says that {WHY_NOT[answer.why_not]}")
    assert answer.fragment is not None
    assert answer.written_at is not None
    most = rules.most_labels
    try:
        if rules.keys is None:
            fragment = open_unverified(answer.fragment, most_labels=most)
            found = Received(fragment, answer.written_at)
        else:
            found = open_signed(answer.fragment, rules.keys, rules.round_name, most_labels=most)
    except InputError as error:
        raise refuse(f"its fragment is refused: {error.what}", error.remedy) from None
    if found.site != site:
        raise refuse(f"its fragment is of another client, {found.site[:80]!r}")
    if _is_oversized(found.fragment, answer.fragment):
        raise refuse("its fragment is oversized: larger than its labels can make it")
    wrong = check_time(found.serial)
    if wrong:
        raise refuse(f"its fragment was written {wrong}", "Set the site's clock right.")
    if rules.log.overtook(site, found.serial):
        raise refuse("its fragment is stale: a newer one has been used")
    return found
