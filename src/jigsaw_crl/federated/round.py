"""One round at the coordinator: collect the sites' answers, then assemble them into a result.

Each accepted answer is written to the round's folder at once, and `round.json` beside it says how
the round stands. If the coordinator is killed, the same round can be run again with the answers
that were kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock

from jigsaw_crl.assembly import conclude
from jigsaw_crl.assembly.order import Method, Options
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import write_text
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.federated.answer import Rules, check_answer
from jigsaw_crl.federated.keys import read_key_list, read_private_key
from jigsaw_crl.federated.ledger import Head, Ledger, now
from jigsaw_crl.federated.settings import (
    ANSWERS,
    CoordinatorSettings,
    RoundRecord,
    Standing,
    check_name,
)
from jigsaw_crl.federated.signing import Received
from jigsaw_crl.federated.verifying import SEED, sign_result, spellings
from jigsaw_crl.result.result import Result

# Seconds to wait for another run that uses the log of used fragments.
_PATIENCE = 60.0
# Sites up to which a label counts as that of few.
_FEW = 2


def begin_round(settings: CoordinatorSettings, round_name: object, *, again: bool = False) -> None:
    """Check that a round may be run, and write `round.json` before it begins.

    A round that has a result is refused unless `again`, and so is a name that differs from
    another's only by case.
    """
    name = check_name(round_name, "round")
    others = [path.name for path in settings.results.iterdir()] if settings.results.is_dir() else []
    for other in others:
        if other != name and other.casefold() == name.casefold():
            raise InputError(
                f"the round's name {name!r} differs from {other!r} only by case",
                "Choose another name.",
            )
    folder = settings.results / name
    record = RoundRecord.read(folder)
    if record is not None and record.closed and not again:
        raise InputError(
            f"the round {name!r} has ended on {record.ended_at} with a result",
            "Choose a new name, or pass --again to replace that result.",
        )
    try:
        (folder / ANSWERS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder cannot be made ({error.strerror})",
            "Correct 'results' in local/jigsaw-coordinator.json.",
            path=folder,
        ) from None
    if record is None:
        _unanswered(settings, name).save(folder)


def _check_known(settings: CoordinatorSettings, log: Ledger, study: str | None) -> None:
    """Refuse a log that lacks lines of a round of this study: one that was lost, or cut off."""
    for folder in settings.results.iterdir():
        record = RoundRecord.read(folder)
        if record is not None and record.log is not None and record.study == study:
            log.check(Head(*record.log))


def end_round(settings: CoordinatorSettings, round_name: object, status: str) -> RoundRecord:
    """The record of a round after its process has ended; one that was left open is closed."""
    name = check_name(round_name, "round")
    folder = settings.results / name
    record = RoundRecord.read(folder) or _unanswered(settings, name)
    if record.ended_at is None:
        # Killed between the two, a process leaves a result that is not in round.json.
        done = Ledger.read(settings.log).rounds.get(name)
        why = f"the coordinator's process for the round ended before the round did ({status})"
        end = {"ended_at": done or now(), "failure": None if done else why}
        record = record.model_copy(update=end)
        record.save(folder)
    return record


def _unanswered(settings: CoordinatorSettings, name: str) -> RoundRecord:
    missing = {site: Standing(state="missing") for site in settings.sites}
    return RoundRecord(round=name, started_at=now(), sites=missing)


@dataclass
class Gathering:
    """A round in progress: the fragments that it has, and how each site stands.

    Answers and lost processes are told by different threads.
    """

    settings: CoordinatorSettings
    rules: Rules
    standings: dict[str, Standing]
    fragments: dict[str, Received] = field(default_factory=dict)
    started_at: str = field(default_factory=now)
    lock: RLock = field(default_factory=RLock)

    @classmethod
    def open(
        cls, settings: CoordinatorSettings, round_name: str, *, again: bool = False
    ) -> Gathering:
        """Begin a round, or continue one that was interrupted; options as in `RoundOptions`."""
        begin_round(settings, round_name, again=again)
        keys = None if settings.keys is None else read_key_list(settings.keys)
        log = Ledger.read(settings.log)
        _check_known(settings, log, None if keys is None else keys.study)
        log.check_round(round_name, again=again)
        limits = (settings.most_bytes, settings.most_labels)
        rules, sites = (
            Rules(round_name, log, *limits, keys),
            _unanswered(settings, round_name).sites,
        )
        gathering = cls(settings, rules, sites)
        gathering._record().save(gathering.folder)
        return gathering

    @property
    def folder(self) -> Path:
        """The round's result folder."""
        return self.settings.results / self.rules.round_name

    # -- the sites --------------------------------------------------------------------------------

    def receive(self, site: str, text: object) -> Standing:
        """Check an answer, and keep it if it is accepted."""
        if site not in self.standings:
            return Standing(state="refused", why="it is not one of this federation's sites")
        try:
            accepted = check_answer(text, site, self.rules)
            write_text(self.folder / ANSWERS / f"{site}.json", str(text))
        except InputError as error:
            return self.refuse(site, f"{error.what}. {error.remedy}")
        return self._stands(site, Standing(state="received"), accepted)

    def refuse(self, site: str, why: str) -> Standing:
        """Note that a site's answer is refused, and why."""
        return self._stands(site, Standing(state="refused", why=why))

    def lose(self, site: str, why: str) -> None:
        """Note that a site cannot answer any more, and why; an answer that it gave still counts."""
        with self.lock:
            if self.waits_for([site]):
                self._stands(site, Standing(state="missing", why=why))

    def waits_for(self, sites: Iterable[str]) -> bool:
        """Can one of these sites still answer?"""
        return any(self.standings.get(site) == Standing(state="missing") for site in sites)

    def _stands(self, site: str, standing: Standing, given: Received | None = None) -> Standing:
        """Note how a site stands, with its fragment if it has an accepted one."""
        with self.lock:
            self.standings[site] = standing
            self.fragments.pop(site, None)
            if given is not None:
                self.fragments[site] = given
            self._record().save(self.folder)
        return standing

    def _record(self) -> RoundRecord:
        sites = {site: self.standings[site] for site in self.settings.sites}
        return RoundRecord(round=self.rules.round_name, started_at=self.started_at, sites=sites)

    def _keep(self) -> None:
        """Take valid answers from an interrupted run, of sites that did not answer in this one."""
        for site in self.settings.sites:
            path = self.folder / ANSWERS / f"{site}.json"
            if self.standings[site].state == "missing" and path.is_file():
                with suppress(OSError, ValueError):  # unreadable, not UTF-8, or an InputError
                    kept = check_answer(path.read_text("utf-8"), site, self.rules)
                    self._stands(site, Standing(state="kept"), kept)

    # -- the result -------------------------------------------------------------------------------

    def finish(self, min_sites: int, method: Method = "null-cone") -> Result:
        """Assemble the accepted fragments and write the round's result folder.

        With fewer than `min_sites` there is no result: this raises an `InputError`. `round.json`
        has the state of every site all the same.
        """
        try:
            # Both routes use one log: what was accepted may have been overtaken since.
            with Ledger.held(self.settings.log, patience=_PATIENCE) as log:
                return self._finish(log, min_sites, method)
        except BaseException as error:
            self.fail(str(error) if isinstance(error, InputError) else type(error).__name__)
            raise

    def fail(self, why: str) -> None:
        """End the round without a result, and write why."""
        self._keep()
        end = {"ended_at": now(), "failure": why}
        self._record().model_copy(update=end).save(self.folder)

    def _finish(self, log: Ledger, min_sites: int, method: Method) -> Result:
        self.rules = replace(self.rules, log=log)
        for site, one in list(self.fragments.items()):
            if log.overtook(site, one.serial):
                self.refuse(site, "its fragment is stale: a newer one has been used")
        self._keep()
        used = self._within_limits()
        standings = self._record().sites
        if len(used) < max(min_sites, 1):
            states = ", ".join(f"{site} {s.state}" for site, s in standings.items())
            raise InputError(
                f"{pluralise(len(used), 'fragment')} accepted where at least "
                f"{max(min_sites, 1)} are needed ({states})",
                "Run the round again when the sites can answer.",
            )
        name, keys = self.rules.round_name, self.rules.keys
        study = None if keys is None else keys.study
        grown = log.having(used, name, study)
        provenance = {
            **grown.provenance(used, name, study),
            "missing": sorted(site for site, s in standings.items() if s.state == "missing"),
            "refused": {site: s.why for site, s in standings.items() if s.state == "refused"},
        }
        fragments = {one.site: one.fragment for one in used}
        asked = self.settings.witnesses if method == "null-cone" else None
        concluded = conclude(fragments.values(), options=Options(method, SEED, witnesses=asked))
        findings = (*_absences(standings), *spellings(fragments), *concluded.findings)
        result = Result(fragments, concluded.order, findings, provenance).with_proposal()
        result.save(self.folder)
        if self.settings.sign is not None:
            sign_result(self.folder, read_private_key(self.settings.sign))
        # The log before round.json: a fragment that is in a result must not be used twice.
        grown.save()
        known = {"ended_at": now(), "study": study, "log": grown.heads[-1]}
        end = self._record().model_copy(update=known)
        end.save(self.folder, strict=True)
        return result

    def _within_limits(self) -> list[Received]:
        """The fragments to use, after refusing those that bring the most labels that few have."""
        used = [self.fragments[site] for site in self.settings.sites if site in self.fragments]
        while used:
            counts = Counter(x for one in used for x in one.fragment.labels)
            if len(counts) * (len(counts) - 1) <= self.settings.most_pairs:
                break
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


def _absences(standings: Mapping[str, Standing]) -> list[Finding]:
    """A warning for each site that is missing or refused."""
    found = []
    for site, s in standings.items():
        if s.used:
            continue
        if s.state == "missing":
            what = f"the site did not answer{f': {s.why}' if s.why else ' in time'}"
            remedy = "Run the round again with it."
        else:
            what = f"the site's answer was refused: {s.why}"
            remedy = "Correct it, then run the round again."
        found.append(Finding(f"{s.state}-site", "warning", what, remedy, client=site))
    return found
