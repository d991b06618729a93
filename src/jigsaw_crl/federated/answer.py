"""What a site answers when it is asked for its fragment, and how the coordinator judges it.

The answer is one JSON object: the round it belongs to, when the fragment's file was written, and
the fragment's text; or, instead of these two, one word that says why there is none.
"""

from __future__ import annotations

import hashlib
import json
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.disclosure import size_bound
from jigsaw_crl.federated.seen import Seen
from jigsaw_crl.federated.settings import SiteSettings
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.signing import FORMAT as SIGNED
from jigsaw_crl.fragment.signing import open_signed, peek_signed

__all__ = ["WHY_NOT", "Accepted", "Rules", "answer", "judge"]

FORMAT = "jigsaw-crl/answer"
VERSION = 1
_WITH_FRAGMENT = {"format", "version", "round", "written_at", "fragment"}
_WITHOUT = {"format", "version", "round", "why_not"}

WHY_NOT: Mapping[str, str] = {
    "none": "it has no finished fragment",
    "too-large": "its fragment is larger than the site allows, or than its labels can make it",
    "invalid": "its file is not a fragment",
    "other-client": "its fragment is another client's",
}
"""All that a site says when it does not send a fragment."""

_SECOND = 10**9
# Clocks of sites and coordinator may differ by this much.
_CLOCK_SKEW = 300 * _SECOND


@dataclass(frozen=True)
class Rules:
    """When the coordinator accepts an answer.

    Parameters
    ----------
    round_name : str
    seen : Seen
        An answer older than the last one used of its site is stale.
    most_bytes : int
    max_age : float or None
        Seconds since the fragment was written or signed; older ones are stale.
    keys : mapping of str to tuple of str, or None
        With them only signed fragments count.
    """

    round_name: str
    seen: Seen
    most_bytes: int
    max_age: float | None = None
    keys: Mapping[str, tuple[str, ...]] | None = None


@dataclass(frozen=True, eq=False)
class Accepted:
    """An answer that counts.

    Parameters
    ----------
    site : str
    fragment : Fragment
    serial : int
        Nanoseconds since 1970 of the signature, or of the fragment's file.
    digest : str
        SHA-256 of the fragment's text as it came.
    """

    site: str
    fragment: Fragment
    serial: int
    digest: str


# -- at the site ----------------------------------------------------------------------------------


def answer(settings: SiteSettings, site: str, round_name: str) -> str:
    """What the site sends: its finished fragment, if the file holds that and nothing else."""
    head = {"format": FORMAT, "version": VERSION, "round": round_name}

    def none(why: str) -> str:
        return json.dumps({**head, "why_not": why})

    try:
        status = settings.fragment.stat()
        if not stat.S_ISREG(status.st_mode):
            return none("none")
        if status.st_size > settings.most_bytes:
            return none("too-large")
        text = settings.fragment.read_text(encoding="utf-8")
    except OSError:
        return none("none")
    except ValueError:
        return none("invalid")
    try:
        fragment = _unverified(text)
    except InputError:
        return none("invalid")
    if fragment.client != site:
        return none("other-client")
    if _exceeds(fragment, text):
        return none("too-large")
    return json.dumps({**head, "written_at": status.st_mtime_ns, "fragment": text})


def _unverified(text: str) -> Fragment:
    return peek_signed(text) if _is_signed(text) else Fragment.from_json(text)


def _exceeds(fragment: Fragment, text: str) -> bool:
    """Is there more in the text than a fragment of these labels can hold?

    A signed one is quoted inside its envelope, which can double its length.
    """
    return len(text.encode()) > (2 if _is_signed(text) else 1) * size_bound(fragment.labels)


def _is_signed(text: str) -> bool:
    return text.startswith(f'{{"format":"{SIGNED}"')


# -- at the coordinator ---------------------------------------------------------------------------


def judge(text: object, site: str, rules: Rules) -> Accepted:
    """The fragment in an answer that is sound, of this round, of this site, and not stale.

    Raises
    ------
    InputError
        Names the site and says what is wrong.
    """

    def refuse(what: str, remedy: str = "Ask the site to make its fragment again.") -> InputError:
        return InputError(what, remedy, client=site)

    document = _parsed(text, rules, refuse)
    if "why_not" in document:
        why = WHY_NOT.get(str(document["why_not"]))
        raise refuse(
            "the site says nothing that is known" if why is None else f"it says that {why}"
        )
    written_at, content = document["written_at"], document["fragment"]
    if type(written_at) is not int or not isinstance(content, str):
        raise refuse("its answer is garbage: a field has the wrong type")
    try:
        if rules.keys is not None:
            signed = open_signed(content, rules.keys)
            fragment, serial = signed.fragment, signed.serial
            written_at = int(signed.issued_at.timestamp()) * _SECOND
        else:
            fragment, serial = _unverified(content), written_at
    except InputError as error:
        raise refuse(f"its fragment is refused: {error.what}", error.remedy) from None
    if fragment.client != site:
        raise refuse(f"its fragment is of another client, {fragment.client[:80]!r}")
    if _exceeds(fragment, content):
        raise refuse("its fragment is oversized: larger than its labels can make it")
    now = time.time_ns()
    if written_at > now + _CLOCK_SKEW:
        raise refuse("its fragment was written in the future", "Set the site's clock right.")
    if rules.max_age is not None and written_at < now - rules.max_age * _SECOND:
        hours = (now - written_at) / _SECOND / 3600
        raise refuse(
            f"its fragment is stale: {hours:.3g} hours old, {rules.max_age / 3600:.3g} are allowed"
        )
    if serial < rules.seen.last.get(site, (0, ""))[0]:
        raise refuse("its fragment is stale: a newer one has been used")
    return Accepted(site, fragment, serial, hashlib.sha256(content.encode()).hexdigest())


def _parsed(text: object, rules: Rules, refuse: Any) -> dict[str, Any]:
    if not isinstance(text, str):
        raise refuse("its answer is garbage: no text")
    # Characters first: that needs no copy of what may be huge.
    if len(text) > rules.most_bytes or len(text.encode("utf-8", "replace")) > rules.most_bytes:
        raise refuse(
            f"its answer is oversized: more than {rules.most_bytes} bytes",
            "Allow more in local/jigsaw-coordinator.json, if a fragment can be that large.",
        )
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise refuse("its answer is garbage: not JSON") from None
    if not isinstance(document, dict) or set(document) not in (_WITH_FRAGMENT, _WITHOUT):
        raise refuse("its answer is garbage: not the fields of an answer")
    if (document["format"], document["version"]) != (FORMAT, VERSION):
        raise refuse("its answer has another format", "Use one version of jigsaw-crl at all sites.")
    if document["round"] != rules.round_name:
        raise refuse("its answer belongs to another round: it is stale")
    return document
