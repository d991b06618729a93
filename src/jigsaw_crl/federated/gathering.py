"""One round at the coordinator: collect the sites' answers, then assemble them into a result.

Each accepted answer is written to the round's folder at once. If the coordinator is killed, the
same round can be run again with the answers that were kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from jigsaw_crl.assembly import assemble
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import write_text
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.federated.answer import Accepted, Rules, check_answer
from jigsaw_crl.federated.seen import Seen
from jigsaw_crl.federated.settings import CoordinatorSettings, check_name
from jigsaw_crl.fragment.signing import read_site_keys
from jigsaw_crl.result.result import Result

__all__ = ["STATUS", "Gathering", "Standing"]

STATUS = "round.json"
State = Literal["received", "kept", "refused", "missing"]


@dataclass(frozen=True)
class Standing:
    """The state of a site in a round.

    Parameters
    ----------
    state : {"received", "kept", "refused", "missing"}
        "kept": it did not answer this time, but its answer from an interrupted run of this round
        is used.
    why : str
        Why the answer was refused; else empty.
    """

    state: State
    why: str = ""


@dataclass
class Gathering:
    """A round in progress.

    Parameters
    ----------
    settings : CoordinatorSettings
    rules : Rules
    accepted : dict of str to Accepted
        By site.
    refused : dict of str to str
        Why, by site.
    started_at : str
        In UTC.
    """

    settings: CoordinatorSettings
    rules: Rules
    accepted: dict[str, Accepted] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    started_at: str = ""

    @classmethod
    def open(
        cls, settings: CoordinatorSettings, round_name: str, *, max_age: float | None = None
    ) -> Gathering:
        """Begin a round, or continue one that was interrupted."""
        check_name(round_name, "round")
        keys = None if settings.keys is None else read_site_keys(settings.keys)
        seen = Seen.at(settings.results / "seen.json")
        rules = Rules(round_name, seen, settings.most_bytes, max_age, keys)
        gathering = cls(settings, rules, started_at=_now())
        try:
            gathering._answers.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"the folder cannot be made ({error.strerror})",
                "Correct 'results' in local/jigsaw-coordinator.json.",
                path=gathering.folder,
            ) from None
        return gathering

    @property
    def folder(self) -> Path:
        """The round's result folder."""
        return self.settings.results / self.rules.round_name

    @property
    def _answers(self) -> Path:
        return self.folder / "answers"

    def receive(self, site: str, text: object) -> Standing:
        """Check an answer, and keep it if it is accepted."""
        if site not in self.settings.sites:
            return Standing("refused", "it is not one of this federation's sites")
        try:
            accepted = check_answer(text, site, self.rules)
        except InputError as error:
            return self.refuse(site, f"{error.what}. {error.remedy}")
        write_text(self._answers / f"{site}.json", str(text))
        self.refused.pop(site, None)
        self.accepted[site] = accepted
        return Standing("received")

    def refuse(self, site: str, why: str) -> Standing:
        """Note that a site's answer is refused, and why."""
        self.refused[site] = why
        return Standing("refused", why)

    def _standing(self, site: str, kept: dict[str, Accepted]) -> Standing:
        if site in self.accepted:
            return Standing("received")
        if site in self.refused:
            return Standing("refused", self.refused[site])
        return Standing("kept" if site in kept else "missing")

    def _kept(self) -> dict[str, Accepted]:
        """Valid answers from an interrupted run, of sites that have not answered in this one."""
        found = {}
        for site in self.settings.sites:
            path = self._answers / f"{site}.json"
            if site in self.accepted or site in self.refused or not path.is_file():
                continue
            try:
                found[site] = check_answer(path.read_text(encoding="utf-8"), site, self.rules)
            except (OSError, ValueError):  # unreadable, not UTF-8, or an InputError
                continue
        return found

    def finish(self, min_sites: int, **options: Any) -> Result:
        """Assemble the accepted fragments and write the round's result folder.

        Parameters
        ----------
        min_sites : int
            With fewer there is no result.
        options
            Of `assemble`.

        Raises
        ------
        InputError
            Too few sites, or fragments that cannot be assembled. `round.json` is written all the
            same, with the state of every site.
        """
        kept = self._kept()
        standings = {site: self._standing(site, kept) for site in self.settings.sites}
        usable = kept | self.accepted
        used = [usable[site] for site in self.settings.sites if site in usable]
        try:
            if len(used) < max(min_sites, 1):
                states = ", ".join(f"{site} {s.state}" for site, s in standings.items())
                raise InputError(
                    f"{pluralise(len(used), 'fragment')} accepted where at least "
                    f"{max(min_sites, 1)} are needed ({states})",
                    "Run the round again when the sites can answer.",
                )
            result = _assemble(self.rules.round_name, used, standings, options)
            result.save(self.folder)
        except InputError as error:
            self._note(standings, str(error))
            raise
        self._note(standings, None)
        self.rules.seen.updated(used).save()
        return result

    def _note(self, standings: dict[str, Standing], failure: str | None) -> None:
        document = {
            "round": self.rules.round_name,
            "started_at": self.started_at,
            "ended_at": _now(),
            "failure": failure,
            "sites": {
                site: {"state": s.state, **({"why": s.why} if s.why else {})}
                for site, s in standings.items()
            },
        }
        write_text(self.folder / STATUS, json.dumps(document, indent=1, ensure_ascii=False))


def _assemble(
    round_name: str, used: list[Accepted], standings: dict[str, Standing], options: dict[str, Any]
) -> Result:
    fragments = {one.site: one.fragment for one in used}
    order = assemble(list(fragments.values()), **options)
    provenance = {
        "round": round_name,
        "digests": {one.site: one.digest for one in used},
        "missing": sorted(site for site, s in standings.items() if s.state == "missing"),
        "refused": {site: s.why for site, s in standings.items() if s.state == "refused"},
    }
    findings = (
        *_absences(standings),
        *(f for fragment in fragments.values() for f in fragment.findings),
    )
    return Result(fragments, order, findings, provenance, options).with_proposal()


def _absences(standings: dict[str, Standing]) -> list[Finding]:
    """A warning for each site that is missing or refused."""
    found = []
    for site, s in standings.items():
        if s.state == "missing":
            what, remedy = "the site did not answer in time", "Run the round again with it."
        elif s.state == "refused":
            what = f"the site's answer was refused: {s.why}"
            remedy = "Correct it, then run the round again."
        else:
            continue
        found.append(Finding(f"{s.state}-site", "warning", what, remedy, client=site))
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
