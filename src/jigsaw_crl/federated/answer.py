"""The answer of a site that is asked for its fragment, and the coordinator's checks of it.

An answer is a list in JSON: the text of the fragment's file and the time at which it was written,
or null twice; then null, or one word that says why there is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.disclosure import check_rows
from jigsaw_crl.federated.keys import KeyList
from jigsaw_crl.federated.ledger import Ledger
from jigsaw_crl.federated.settings import CoordinatorSettings, SiteSettings
from jigsaw_crl.federated.signing import Received, check_time, open_signed, open_unverified
from jigsaw_crl.fragment.reading import read_bytes

WHY_NOT: Mapping[str, str] = {
    "none": "it has no finished fragment",
    "invalid": "its file is not a fragment as this program writes it",
    "other-client": "its fragment is another client's",
    "too-few-rows": "a regime has fewer rows than the site allows",
    "budget-spent": "it has sent as many fragments as the site allows",
    "not-logged": "it could not log what it sends",
}
"""The words with which a site says that it sends no fragment, and what they mean."""

# Seconds to wait for another process of the site that writes to its log.
_PATIENCE = 30.0


# -- at the site ----------------------------------------------------------------------------------


def make_answer(settings: SiteSettings, site: str, round_name: str) -> str:
    """The site's answer: its fragment if the file holds one of this site and nothing else."""
    try:
        return json.dumps([*_own_fragment(settings, site, round_name), None])
    except _NoFragmentError as reason:
        return json.dumps([None, None, str(reason)])


class _NoFragmentError(Exception):
    """Its text is one of the words of `WHY_NOT`."""


@contextmanager
def _or_else(why_not: str) -> Iterator[None]:
    """What goes wrong in the block means, to the coordinator, one of the words of `WHY_NOT`."""
    try:
        yield
    except (OSError, InputError):
        raise _NoFragmentError(why_not) from None


def _own_fragment(settings: SiteSettings, site: str, round_name: str) -> tuple[str, int]:
    """The fragment and the time at which it was written; what is sent is logged first."""
    with _or_else("none"):
        written_at = settings.fragment.stat().st_mtime_ns
        data = read_bytes(settings.fragment)
    with _or_else("invalid"):
        fragment = open_unverified(data)
    if fragment.client != site:
        raise _NoFragmentError("other-client")
    with _or_else("too-few-rows"):
        check_rows(fragment, settings.min_rows)
    own, limit = Received(fragment, written_at), settings.most_fragments
    # The log may have been altered, or cannot be written.
    with _or_else("not-logged"), Ledger.held(settings.sent, patience=_PATIENCE) as log:
        # The same fragment says nothing new: it may be sent in any number of rounds.
        sent = {line.digest for line in log.lines}
        if limit is not None and own.digest not in sent and len(sent) >= limit:
            raise _NoFragmentError("budget-spent")
        log.having([own], round_name).save()
    return data.decode(), written_at


# -- at the coordinator ---------------------------------------------------------------------------


def check_answer(
    text: str,
    site: str,
    round_name: str,
    settings: CoordinatorSettings,
    log: Ledger,
    keys: KeyList | None = None,
) -> Received:
    """The fragment in an answer that is valid, of this site, and not older than one that was used.

    With `keys`, it has to be signed for this study and round. Any other raises an `InputError` that
    names the site and says what is wrong.
    """

    def refuse(what: str, remedy: str = "Ask the site to make its fragment again.") -> InputError:
        return InputError(what, remedy, client=site)

    if len(text.encode("utf-8", "replace")) > settings.most_bytes:
        raise refuse(
            f"its answer is oversized: more than {settings.most_bytes} bytes",
            "Raise 'most_bytes' in local/jigsaw-coordinator.json, if fragments can be that large.",
        )
    try:
        given, written_at, why_not = json.loads(text)
        data = b"" if why_not is not None else given.encode()
    except (AttributeError, RecursionError, TypeError, ValueError):
        data = written_at = why_not = None
    if why_not is not None:
        raise refuse(f"it says that {WHY_NOT.get(str(why_not), 'it sends none')}")
    # The time is in nanoseconds since 1970, in 64 bits.
    if data is None or type(written_at) is not int or not 0 <= written_at < 2**63:
        raise refuse("its answer is garbage", "Use one version of jigsaw-crl at all sites.")
    most = settings.most_labels
    try:
        if keys is None:
            fragment = open_unverified(data, most_labels=most)
            check_time(written_at, site)
            found = Received(fragment, written_at)
        else:
            found = open_signed(data, keys, round_name, most_labels=most)
    except InputError as error:
        raise refuse(f"its fragment is refused: {error.what}", error.remedy) from None
    if found.site != site:
        raise refuse(f"its fragment is of another client, {found.site[:80]!r}")
    log.check_new(found)
    return found
