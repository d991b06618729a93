"""One round at the coordinator: collect the sites' answers, then assemble them into a result.

Each accepted answer is written to the round's folder at once, and `round.json` beside it says how
the round stands. If the coordinator is killed, the same round can be run again with the answers
that were kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jigsaw_crl.assembly import conclude
from jigsaw_crl.assembly.order import Method, Options
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import write_text
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.labels import label_key
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.federated.answer import Accepted, Rules, check_answer
from jigsaw_crl.federated.keys import read_key_list, read_private_key
from jigsaw_crl.federated.received import signature_document
from jigsaw_crl.federated.round import ANSWERS, SEED, RoundRecord, Standing, check_open, now
from jigsaw_crl.federated.seen import Seen
from jigsaw_crl.federated.settings import CoordinatorSettings, check_name
from jigsaw_crl.federated.verifying import sign_result
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.result.result import Result

__all__ = ["Gathering"]

# Seconds to wait for another run that uses the record of used fragments.
_PATIENCE = 60.0
# Sites up to which a label counts as that of few.
_FEW = 2


@dataclass
class Gathering:
    """A round in progress.

    Parameters
    ----------
    settings : CoordinatorSettings
    rules : Rules
    accepted : dict of str to Accepted
        By site.
    refused, lost : dict of str to str
        Why a site's answer is not used, and why a site cannot answer any more, by site.
    started_at : str
        In UTC.
    """

    settings: CoordinatorSettings
    rules: Rules
    accepted: dict[str, Accepted] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    started_at: str = field(default_factory=now)

    @classmethod
    def open(
        cls,
        settings: CoordinatorSettings,
        round_name: str,
        *,
        max_age: float | None = None,
        again: bool = False,
    ) -> Gathering:
        """Begin a round, or continue one that was interrupted.

        Parameters
        ----------
        settings : CoordinatorSettings
        round_name : str
        max_age : float, optional
            Seconds; older fragments are stale.
        again : bool
            Run a round again that has a result; the new result replaces it.
        """
        check_name(round_name, "round")
        check_open(settings.results, round_name, again=again)
        keys = None if settings.keys is None else read_key_list(settings.keys)
        seen = Seen.at(settings.seen)
        seen.check_round(round_name, again=again)
        rules = Rules(
            round_name, seen, settings.most_bytes, settings.most_labels, max_age=max_age, keys=keys
        )
        gathering = cls(settings, rules)
        try:
            gathering._answers.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"the folder cannot be made ({error.strerror})",
                "Correct 'results' in local/jigsaw-coordinator.json.",
                path=gathering.folder,
            ) from None
        gathering._record().save(gathering.folder)
        return gathering

    @property
    def folder(self) -> Path:
        """The round's result folder."""
        return self.settings.results / self.rules.round_name

    @property
    def _answers(self) -> Path:
        return self.folder / ANSWERS

    # -- the sites --------------------------------------------------------------------------------

    def receive(self, site: str, text: object) -> Standing:
        """Check an answer, and keep it if it is accepted."""
        if site not in self.settings.sites:
            return Standing("refused", "it is not one of this federation's sites")
        try:
            accepted = check_answer(text, site, self.rules)
            write_text(self._answers / f"{site}.json", str(text))
            self._log(accepted)
        except InputError as error:
            return self.refuse(site, f"{error.what}. {error.remedy}")
        self.refused.pop(site, None)
        self.accepted[site] = accepted
        self._record().save(self.folder)
        return Standing("received")

    def _log(self, accepted: Accepted) -> None:
        self.rules.seen.ledger.append(
            study=None if self.rules.keys is None else self.rules.keys.study,
            round_name=self.rules.round_name,
            site=accepted.site,
            serial=accepted.serial,
            digest=accepted.digest,
        )

    def refuse(self, site: str, why: str) -> Standing:
        """Note that a site's answer is refused, and why."""
        self.accepted.pop(site, None)
        self.refused[site] = why
        self._record().save(self.folder)
        return Standing("refused", why)

    def lose(self, site: str, why: str) -> None:
        """Note that a site cannot answer any more, and why; an answer that it gave still counts."""
        if site in self.settings.sites:
            self.lost[site] = why
            self._record().save(self.folder)

    def waits_for(self, sites: Iterable[str]) -> bool:
        """Can one of these sites still answer?"""
        return any(
            site not in self.accepted and site not in self.refused and site not in self.lost
            for site in sites
        )

    def _standing(self, site: str, kept: Mapping[str, Accepted]) -> Standing:
        if site in self.accepted:
            return Standing("received")
        if site in self.refused:
            return Standing("refused", self.refused[site])
        if site in kept:
            return Standing("kept")
        return Standing("missing", self.lost.get(site, ""))

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

    # -- the result -------------------------------------------------------------------------------

    def finish(self, min_sites: int, method: Method = "null-cone") -> Result:
        """Assemble the accepted fragments and write the round's result folder.

        Parameters
        ----------
        min_sites : int
            With fewer there is no result.
        method : {"null-cone", "paper"}
            Of `assemble`.

        Raises
        ------
        InputError
            Too few sites, or a folder that cannot be written. `round.json` has the state of every
            site all the same.
        """
        kept: dict[str, Accepted] = {}
        try:
            # Both routes use one record: what was accepted may have been overtaken since.
            with Seen.held(self.settings.seen, patience=_PATIENCE) as seen:
                return self._finish(seen, kept, min_sites, method)
        except BaseException as error:
            self.fail(str(error) if isinstance(error, InputError) else type(error).__name__, kept)
            raise

    def _finish(
        self, seen: Seen, kept: dict[str, Accepted], min_sites: int, method: Method
    ) -> Result:
        self.rules = replace(self.rules, seen=seen)
        for site, accepted in list(self.accepted.items()):
            if seen.overtook(site, accepted.serial):
                self.refuse(site, "its fragment is stale: a newer one has been used")
        kept |= self._kept()
        used = self._within_limits(kept | self.accepted)
        standings = self._standings(kept)
        if len(used) < max(min_sites, 1):
            states = ", ".join(f"{site} {s.state}" for site, s in standings.items())
            raise InputError(
                f"{pluralise(len(used), 'fragment')} accepted where at least "
                f"{max(min_sites, 1)} are needed ({states})",
                "Run the round again when the sites can answer.",
            )
        # Answers kept from a run that was killed may not be in the log yet.
        for one in used:
            self._log(one)
        asked = self.settings.witnesses if method == "null-cone" else None
        options = Options(method, SEED, witnesses=asked)
        result = _assemble(self._provenance(used, standings), used, standings, options)
        result.save(self.folder)
        if self.settings.sign is not None:
            sign_result(self.folder, read_private_key(self.settings.sign))
        # The record of used fragments first: a fragment that is in a result must not be used twice.
        seen.save(self.rules.round_name)
        replace(self._record(kept), ended_at=now()).save(self.folder, strict=True)
        return result

    def _provenance(
        self, used: list[Accepted], standings: Mapping[str, Standing]
    ) -> dict[str, Any]:
        digests = {one.site: one.digest for one in used}
        ledger = self.rules.seen.ledger
        found: dict[str, Any] = {
            "round": self.rules.round_name,
            "digests": digests,
            "missing": sorted(site for site, s in standings.items() if s.state == "missing"),
            "refused": {site: s.why for site, s in standings.items() if s.state == "refused"},
            "log": ledger.head_of(self.rules.round_name, digests).to_document(),
        }
        if self.rules.keys is not None:
            found["study"] = self.rules.keys.study
            found["signatures"] = {
                one.site: signature_document(one.signed) for one in used if one.signed is not None
            }
        return found

    def fail(self, why: str, kept: Mapping[str, Accepted] | None = None) -> None:
        """End the round without a result, and write why."""
        record = self._record(self._kept() if kept is None else kept)
        replace(record, ended_at=now(), failure=why).save(self.folder)

    def _within_limits(self, usable: Mapping[str, Accepted]) -> list[Accepted]:
        """The fragments to use, after refusing those that bring the most labels that few have."""
        used = [usable[site] for site in self.settings.sites if site in usable]
        while used and _pairs(used) > self.settings.most_pairs:
            counts = Counter(x for one in used for x in one.fragment.labels)
            # A label that few sites have is mostly theirs, also if they share it.
            own = [sum(1 / counts[x] for x in one.fragment.labels) for one in used]
            # The last of several, so that a site that was listed earlier is kept.
            worst = max(range(len(used)), key=lambda i: (own[i], i))
            few = sum(counts[x] <= _FEW for x in used[worst].fragment.labels)
            self.refuse(
                used[worst].site,
                f"all sites together have more than {self.settings.most_pairs} pairs of labels, "
                f"and this site brings most ({pluralise(few, 'label')} that no other site has, or "
                "one). Raise 'most_pairs' in local/jigsaw-coordinator.json, if that many are "
                "expected.",
            )
            del used[worst]
        return used

    def _standings(self, kept: Mapping[str, Accepted]) -> dict[str, Standing]:
        return {site: self._standing(site, kept) for site in self.settings.sites}

    def _record(self, kept: Mapping[str, Accepted] | None = None) -> RoundRecord:
        return RoundRecord(
            round=self.rules.round_name,
            started_at=self.started_at,
            sites=self._standings({} if kept is None else kept),
        )


def _pairs(used: Iterable[Accepted]) -> int:
    p = len({x for one in used for x in one.fragment.labels})
    return p * (p - 1)


def _assemble(
    provenance: dict[str, Any],
    used: list[Accepted],
    standings: dict[str, Standing],
    options: Options,
) -> Result:
    fragments = {one.site: one.fragment for one in used}
    concluded = conclude(fragments.values(), options=options)
    findings = (*_absences(standings), *_spellings(fragments), *concluded.findings)
    return Result(fragments, concluded.order, findings, provenance).with_proposal()


def _absences(standings: dict[str, Standing]) -> list[Finding]:
    """A warning for each site that is missing or refused."""
    found = []
    for site, s in standings.items():
        if s.state == "missing":
            what = f"the site did not answer{f': {s.why}' if s.why else ' in time'}"
            remedy = "Run the round again with it."
        elif s.state == "refused":
            what = f"the site's answer was refused: {s.why}"
            remedy = "Correct it, then run the round again."
        else:
            continue
        found.append(Finding(f"{s.state}-site", "warning", what, remedy, client=site))
    return found


def _spellings(fragments: Mapping[str, Fragment]) -> list[Finding]:
    """A warning for each label that differs from another site's only by case or spaces.

    Files with such labels are refused. A round goes on, because one site must not end it.
    """
    first: dict[str, tuple[str, str]] = {}
    found = []
    for site, fragment in fragments.items():
        for label in fragment.labels:
            owner, spelling = first.setdefault(label_key(label), (site, label))
            if spelling != label:
                what = f"the label {label!r} differs from {owner}'s {spelling!r} only in spelling"
                remedy = "Labels are shared between sites: agree on one spelling."
                found.append(Finding("label-spelling", "warning", what, remedy, client=site))
    return found
