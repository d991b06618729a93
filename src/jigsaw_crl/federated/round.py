"""One round at the coordinator: collect the sites' answers, then assemble them into a result.

`round.json` in the round's folder says how the round stands. If the coordinator is killed, the same
round can be run again. As a program, it is the process of a round: it reads `RoundOptions` from its
input, then one line for each site, and `null` when there are no more.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from jigsaw_crl.adding import assembled
from jigsaw_crl.assembly.order import Options
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import writable
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.federated.answer import check_answer
from jigsaw_crl.federated.keys import KeyList, read_private_key
from jigsaw_crl.federated.ledger import Ledger, now
from jigsaw_crl.federated.running import end_with_parent
from jigsaw_crl.federated.settings import (
    CoordinatorSettings,
    RoundOptions,
    RoundRecord,
    Standing,
    State,
    check_name,
    coordinator_settings,
)
from jigsaw_crl.federated.signing import Received
from jigsaw_crl.federated.verifying import SEED, absences, sign_result, spellings
from jigsaw_crl.fragment.fragment import Method
from jigsaw_crl.result.result import Result

# Seconds to wait for another run that uses the log of used fragments.
_PATIENCE = 60.0


def _check_known(settings: CoordinatorSettings, log: Ledger, study: str | None) -> None:
    """Refuse a log that lacks lines of a round of this study: one that was lost, or cut off."""
    for folder in settings.results.iterdir():
        record = RoundRecord.read(folder)
        if record is not None and record.log is not None and record.study == study:
            log.check(*record.log)


def end_round(
    settings: CoordinatorSettings, round_name: object, *, running: bool = False
) -> RoundRecord:
    """The record of a round; one that does not run any more and was left open is closed."""
    name = check_name(round_name, "round")
    folder = settings.results / name
    record = RoundRecord.read(folder) or _unanswered(settings, name)
    if record.ended_at is None and not running:
        # Killed between the two, a process leaves a result that is not in round.json.
        done = Ledger.read(settings.log).rounds.get(name)
        why = "the coordinator's process for the round ended before the round did"
        end = {"ended_at": done or now(), "failure": None if done else why}
        record = record.model_copy(update=end)
        record.save(folder)
    return record


def _unanswered(settings: CoordinatorSettings, name: str) -> RoundRecord:
    missing = {site: Standing(state="missing") for site in settings.sites}
    return RoundRecord(round=name, started_at=now(), sites=missing)


@dataclass
class Gathering:
    """A round in progress: the fragments that it has, and how each site stands."""

    settings: CoordinatorSettings
    log: Ledger
    keys: KeyList | None
    record: RoundRecord
    fragments: dict[str, Received] = field(default_factory=dict)

    @classmethod
    def open(
        cls, settings: CoordinatorSettings, round_name: str, *, again: bool = False
    ) -> Gathering:
        """Begin a round, also one that was interrupted; options as in `RoundOptions`."""
        folder = settings.results / check_name(round_name, "round")
        record = RoundRecord.read(folder)
        with writable(folder, "the folder"):
            folder.mkdir(parents=True, exist_ok=True)
        keys = None if settings.keys is None else KeyList.from_toml(settings.keys)
        log = Ledger.read(settings.log)
        _check_known(settings, log, None if keys is None else keys.study)
        closed = record is not None and record.closed
        log.check_round(round_name, closed=closed, again=again)
        gathering = cls(settings, log, keys, _unanswered(settings, round_name))
        # Where it cannot be written, that of an earlier run would be taken for this one's.
        gathering.record.save(gathering.folder, strict=True)
        return gathering

    @property
    def folder(self) -> Path:
        """The round's result folder."""
        return self.settings.results / self.record.round

    # -- the sites --------------------------------------------------------------------------------

    def receive(self, site: str, text: str) -> Standing:
        """Check an answer, and use it if it is accepted."""
        try:
            name = self.record.round
            accepted = check_answer(text, site, name, self.settings, self.log, self.keys)
        except InputError as error:
            return self.stands(site, "refused", f"{error.what}. {error.remedy}")
        return self.stands(site, "received", given=accepted)

    def stands(
        self, site: str, state: State, why: str = "", given: Received | None = None
    ) -> Standing:
        """Note how a site stands and why, with its fragment if it has an accepted one."""
        standing = Standing(state=state, why=why)
        sites = {**self.record.sites, site: standing}
        self.record = self.record.model_copy(update={"sites": sites})
        self.fragments.pop(site, None)
        if given is not None:
            self.fragments[site] = given
        self.record.save(self.folder)
        return standing

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
        end = {"ended_at": now(), "failure": why}
        self.record.model_copy(update=end).save(self.folder)

    def _finish(self, log: Ledger, min_sites: int, method: Method) -> Result:
        for site, one in list(self.fragments.items()):
            try:
                log.check_new(one)
            except InputError as error:
                self.stands(site, "refused", error.what)
        used = self._within_limits()
        if len(used) < max(min_sites, 1):
            states = ", ".join(f"{site} {s.state}" for site, s in self.record.sites.items())
            raise InputError(
                f"{pluralise(len(used), 'fragment')} accepted where at least "
                f"{max(min_sites, 1)} are needed ({states})",
                "Run the round again when the sites can answer.",
            )
        name, study = self.record.round, None if self.keys is None else self.keys.study
        grown = log.having(used, name, study)
        provenance = grown.provenance(used, name, study)
        fragments = {one.site: one.fragment for one in used}
        asked = self.settings.witnesses if method == "null-cone" else None
        options = Options(method, SEED, witnesses=asked)
        noticed = (*absences(self.record), *spellings(fragments))
        result = assembled(fragments, options, provenance, noticed).with_proposal()
        result.save(self.folder)
        if self.settings.sign is not None:
            sign_result(self.folder, read_private_key(self.settings.sign))
        # The log before round.json: a fragment that is in a result must not be used twice.
        grown.save()
        known = {"ended_at": now(), "study": study, "log": (len(grown.lines), grown.hashes[-1])}
        end = self.record.model_copy(update=known)
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
            self.stands(
                used[worst].site,
                "refused",
                f"all sites together have more than {self.settings.most_pairs} pairs of labels, "
                "and this site brings most that few others have. Raise 'most_pairs' in "
                "local/jigsaw-coordinator.json, if that many are expected.",
            )
            del used[worst]
        return used


def main(local: Path) -> None:
    """The process of a round: its options, then what each site says, come line by line."""
    options = RoundOptions.from_text(sys.stdin.readline())
    settings = coordinator_settings(local)
    gathering = Gathering.open(settings, options.round_name, again=options.again)
    for line in sys.stdin:
        said = json.loads(line)
        if said is None:
            gathering.finish(options.min_sites, options.method)
            return
        site, text, why = said
        if site not in gathering.record.sites:
            continue  # it was revoked meanwhile
        if text is None:
            gathering.stands(site, "missing", why)
        else:
            gathering.receive(site, text)
    gathering.fail("the coordinator was stopped before the round was assembled")


if __name__ == "__main__":
    end_with_parent()
    try:
        main(Path(sys.argv[1]))
    except InputError as error:
        sys.exit(str(error))
