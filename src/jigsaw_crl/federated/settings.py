"""Options and state of a round, and settings that a participant keeps in its `local` folder.

Nobody else can change the settings. They are not in NVFlare's `resources.json`, because a site
announces the additional entries of that file to the server.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError

from jigsaw_crl.base.documents import Closed, Document, WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import write_text
from jigsaw_crl.fragment.fragment import Method

# What is asked through NVFlare: a site for its fragment, the coordinator for a round and its state.
CHANNEL = "jigsaw"
FRAGMENT, START, STATE = "fragment", "start", "state"
# The file of a round beside those of its result: how it stands.
STATUS = "round.json"
SITE_FILE, COORDINATOR_FILE = "jigsaw-site.json", "jigsaw-coordinator.json"
# A fragment of a thousand labels with evidence at two scales takes about 30 MB.
MOST_BYTES = 1 << 26
# Assembly takes about a minute for 200 labels of one site, and grows faster than their number.
MOST_LABELS = 200
# Seconds of a week. A thread cannot wait for ever.
LONGEST = 7 * 86_400
# Ordered pairs of different labels of all sites together: those of 500 labels.
MOST_PAIRS = 500 * 499
# Without a dot: the files that the coordinator keeps beside the rounds have one.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def check_name(name: object, what: str) -> str:
    """Return the name of a site or round, which may come from another machine.

    Raises an `InputError` unless it can safely be the name of a file or folder, and of no file
    that the coordinator keeps itself.
    """
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise InputError(
            f"the {what}'s name is {str(name)[:80]!r}",
            "Use up to 63 letters, digits, dashes and underscores, a letter or digit first.",
        )
    return name


class RoundOptions(Document):
    """Options of a round; one that was interrupted can be run again under the same name.

    Sites have `timeout` seconds to answer once they were asked, and all has to be done within
    `deadline` seconds. With fewer than `min_sites` fragments there is no result. `again` runs a
    round that has a result once more, and replaces it.
    """

    kind = "request for a round"
    remedy = "Correct it; the coordinator needs the same version of jigsaw-crl."

    round_name: Annotated[str, AfterValidator(lambda name: check_name(name, "round"))]
    min_sites: int = 1
    timeout: Annotated[int, Field(ge=1, le=LONGEST)] = 300
    deadline: Annotated[float, Field(gt=0, le=LONGEST)] = 420.0
    method: Method = "null-cone"
    again: bool = False


State = Literal["received", "refused", "missing"]


class Standing(Closed):
    """The state of a site in a round.

    `why` says why the answer was refused, or why there is none if that is known.
    """

    state: State
    why: str = ""


class RoundRecord(Closed):
    """The content of `round.json`.

    `ended_at` is None while the round runs, and if the coordinator was killed during it; `failure`
    says why there is no result. `log` is the number of lines of the log of used fragments, with the
    hash of the last, and `study` the study of a result with signed fragments.
    """

    round: str
    started_at: str
    ended_at: str | None = None
    failure: str | None = None
    study: str | None = None
    log: tuple[int, str] | None = None
    sites: dict[str, Standing]

    @property
    def closed(self) -> bool:
        """Whether the round has ended with a result."""
        return self.ended_at is not None and self.failure is None

    @classmethod
    def read(cls, folder: Path) -> RoundRecord | None:
        """The record in a round's folder; None if there is none that can be read."""
        try:
            return cls.model_validate_json((folder / STATUS).read_bytes())
        except (OSError, ValidationError):
            return None

    def save(self, folder: Path, *, strict: bool = False) -> None:
        """Write `round.json`; by default it keeps its last content when the disk is full."""
        with suppress(*(() if strict else (InputError,))):
            write_text(folder / STATUS, self.model_dump_json(indent=1))


def _check_sites(sites: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(sites)) != len(sites):
        raise ValueError("a site is listed twice")
    return tuple(check_name(site, "site") for site in sites)


_Count = Annotated[WholeNumber, Field(ge=1)]


class SiteSettings(Document):
    """What a site decides."""

    kind = "settings file"
    remedy = (
        'Write it as `jigsaw federate init` does: {"fragment": "fragment.json"}, with "min_rows" '
        'and "most_fragments" if needed.'
    )

    # File of the finished fragment.
    fragment: Path
    # A fragment with a regime of fewer rows is not sent.
    min_rows: _Count = 1
    # How many different fragments are sent, in all rounds together.
    most_fragments: _Count | None = None

    @property
    def sent(self) -> Path:
        """The log of what was sent: `fragment.sent.jsonl` beside `fragment.json`."""
        return self.fragment.with_suffix(".sent.jsonl")


class CoordinatorSettings(Document):
    """What the coordinator decides."""

    kind = "settings file"
    remedy = (
        'Write it as `jigsaw federate init` does: {"sites": ["lab-1"], "results": "results"}, '
        'with "admin", "certificates", "keys", "sign", "most_bytes", "most_labels", "most_pairs" '
        'and "witnesses" if needed.'
    )

    # Who starts rounds.
    admin: str = ""
    # All sites that take part.
    sites: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_check_sites)]
    # SHA-256 of the certificate with which each site and admin may connect: the newest. A site that
    # was revoked has none.
    certificates: dict[str, str] = Field(default_factory=dict)
    # Folder with one result folder per round.
    results: Path
    # List of the sites' keys: if given, only signed fragments are accepted. The coordinator's
    # private key: if given, results are signed.
    keys: Path | None = None
    sign: Path | None = None
    # Larger answers, and fragments with more labels, are refused. If all sites together have more
    # ordered pairs of labels, those that bring the most labels of their own are refused.
    most_bytes: _Count = MOST_BYTES
    most_labels: _Count = MOST_LABELS
    most_pairs: _Count = MOST_PAIRS
    # How many sites a verdict must rest on: see `assemble`.
    witnesses: _Count | Literal["fifth"] = "fifth"

    @property
    def log(self) -> Path:
        """The log of used fragments, which signed files share if there is a list of keys."""
        if self.keys is None:
            return self.results / "log.jsonl"
        return self.keys.with_suffix(".log.jsonl")


def site_settings(local: Path) -> SiteSettings:
    """Read a site's settings from the `local` folder of its kit; paths are relative to the kit."""
    given = SiteSettings.from_file(local / SITE_FILE)
    return given.model_copy(update={"fragment": local.parent / given.fragment})


def coordinator_settings(local: Path) -> CoordinatorSettings:
    """Read the coordinator's settings from the `local` folder of its kit, as for a site."""
    given = CoordinatorSettings.from_file(local / COORDINATOR_FILE)
    paths = {name: getattr(given, name) for name in ("results", "keys", "sign")}
    return given.model_copy(
        update={name: None if path is None else local.parent / path for name, path in paths.items()}
    )
