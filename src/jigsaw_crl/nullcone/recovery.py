"""From a client to its fragment by the null-cone method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.base.threads import one_thread
from jigsaw_crl.client.client import Client
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.evidence.hypotheses import HYPOTHESES
from jigsaw_crl.fragment.fragment import Fragment, Outcome, Statements
from jigsaw_crl.nullcone.basis import constrained_functionals, orthogonal_rows
from jigsaw_crl.nullcone.reading import Reading, read
from jigsaw_crl.nullcone.spikes import MARGIN, SEVERAL
from jigsaw_crl.nullcone.statements import certain_statements
from jigsaw_crl.nullcone.structure import Structure, decide
from jigsaw_crl.nullcone.whitening import Start

__all__ = ["Confounding", "RankOne", "Recovery", "recover_fragment"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Confounding = Literal["allow", "none"]
RankOne = Literal["no-ancestor", "unsure"]

# A second direction is taken to be absent only if a lean of this tangent would have shown it.
LARGEST_LEAN = 0.35
# Tracy–Widom scales by which a second eigenvalue stands out beyond doubt, however many regimes.
CLEAR = 2 * MARGIN


def recover_fragment(
    client: Client, *, confounding: Confounding = "allow", rank_one: RankOne = "no-ancestor"
) -> Fragment:
    """What one client can know, from its moments alone.

    Parameters
    ----------
    client : Client
    confounding : {"allow", "none"}
        "none" when the client accesses every latent, so that no hidden cause joins two targets.
    rank_one : {"no-ancestor", "unsure"}
        What to conclude about a target whose intervention moved a single direction: that it has no
        ancestor (right when interventions change the weights of all parents), or nothing.

    Returns
    -------
    Fragment
    """
    with one_thread():
        return Recovery.of(client, confounding=confounding, rank_one=rank_one).fragment()


@dataclass(frozen=True, eq=False)
class Recovery:
    """A client's reading, from which fragments are made: alone, or knowing the global order."""

    client: str
    labels: tuple[str, ...]
    n_samples: dict[str, int] | None
    n_latent: int
    rank_one: RankOne
    reading: Reading

    @classmethod
    def of(
        cls,
        client: Client,
        *,
        confounding: Confounding = "allow",
        rank_one: RankOne = "no-ancestor",
        start: Start | None = None,
    ) -> Recovery:
        """Read a client; `start` as for `read`."""
        _check_choice("confounding", confounding, ("allow", "none"))
        _check_choice("rank_one", rank_one, ("no-ancestor", "unsure"))
        possible = HYPOTHESES if confounding == "allow" else HYPOTHESES.without("district")
        reading = read(client, hypotheses=possible, start=start)
        return cls(client.name, client.labels, client.n_samples, client.n_latent, rank_one, reading)

    @cached_property
    def rank(self) -> npt.NDArray[np.intp]:
        """Largest rank seen over the regimes of each label; 0 for weak or refused ones."""
        rank = np.zeros(len(self.labels), dtype=np.intp)
        usable = np.where(self.reading.several, 0, self.reading.lines.rank)
        np.maximum.at(rank, self.reading.owner, usable)
        return rank

    @cached_property
    def not_identified(self) -> bool:
        """No target clearly moved a second direction, so no intervention speaks of ancestry.

        One second eigenvalue just beyond its edge is what a client with many regimes shows by
        chance; where weights change, some stand out clearly.
        """
        usable = (self.reading.lines.rank > 0) & ~self.reading.several
        if len(set(self.reading.owner[usable].tolist())) < 2:
            return False
        return not bool((self.reading.second[usable] > CLEAR).any())

    def fragment(
        self,
        order: PartialOrder[str] | None = None,
        *,
        basis: bool = True,
        noted: Iterable[Finding] = (),
    ) -> Fragment:
        """The fragment, from this client alone or with the ancestry that others established.

        `order` changes the districts, blocks and basis only: the evidence stays the client's own.
        `noted` are findings of the checks, which follow those of recovery.
        """
        known = None if order is None else order.restrict(self.labels).matrix
        bayes = self._bayes()
        structure = decide(bayes, known)
        names = np.array(self.labels, dtype=object)

        def sets(groups: list[list[int]]) -> tuple[frozenset[str], ...]:
            return tuple(frozenset(names[g].tolist()) for g in groups)

        blocks = sets(structure.blocks)
        first = [b[0] for b in structure.blocks]
        above = structure.strict_block_ancestors()[np.ix_(first, first)]
        statements = None
        if self.reading.exact:
            statements = self._statements(structure if known is None else decide(bayes))
        return Fragment(
            client=self.client,
            method="null-cone",
            labels=self.labels,
            blocks=blocks,
            block_order=PartialOrder.from_matrix(blocks, above),
            districts=sets(structure.districts),
            bayes=None if self.reading.exact else bayes,
            statements=statements,
            n_samples=self.n_samples,
            outcome=self._outcome(),
            findings=tuple(dict.fromkeys((*self._findings(), *noted))),
            basis=self._basis(structure) if basis else None,
        )

    def _bayes(self) -> BayesFactors:
        """The reading's factors, without what the reading of rank-1 targets forbids to say."""
        hypotheses, factors = self.reading.hypotheses, self.reading.factors.copy()
        unsaid = np.ones_like(self._ancestors_open) if self.not_identified else self._ancestors_open
        factors[np.ix_(hypotheses.where("ancestor"), np.arange(len(unsaid)), unsaid)] = np.nan
        return BayesFactors.of(factors, hypotheses, tuple((self.rank == 1).tolist()))

    @cached_property
    def _ancestors_open(self) -> BoolArray:
        """Labels about whose ancestors a single direction says nothing.

        All of them if the user is unsure; otherwise those with too few rows for a second direction
        to be seen unless it is strong.
        """
        lean = np.zeros(len(self.labels))
        np.maximum.at(lean, self.reading.owner, self.reading.lines.lean)
        unsure = np.full(len(lean), self.rank_one == "unsure")
        return np.asarray((self.rank == 1) & (unsure | (lean > LARGEST_LEAN)), dtype=bool)

    def _statements(self, structure: Structure) -> Statements:
        rank = self.rank
        silent = rank == 0
        if self.not_identified:
            silent = np.ones_like(silent)
        open_columns = silent | self._ancestors_open
        return certain_statements(
            self.reading, structure, self.labels, silent, open_columns, self.n_latent
        )

    def _basis(self, structure: Structure) -> FloatArray:
        reading = self.reading
        functionals = constrained_functionals(
            reading.L,
            reading.lines,
            reading.choice,
            reading.n,
            reading.n_eff,
            reading.owner,
            structure,
            exact=reading.exact,
        )
        # One row per label: of several strengths, the one whose line is known best.
        best = np.zeros(len(self.labels), dtype=np.intp)
        score = np.full(len(self.labels), -np.inf)
        for r, (label, excess) in enumerate(
            zip(reading.owner.tolist(), reading.excess.tolist(), strict=True)
        ):
            if excess > score[label]:
                best[label], score[label] = r, excess
        return np.asarray(orthogonal_rows(functionals[best], structure) @ reading.basis.T)

    def _findings(self) -> tuple[Finding, ...]:
        reading, found = self.reading, []
        silent = reading.several | (reading.lines.rank == 0)
        for r in np.flatnonzero(silent).tolist():
            label = self.labels[reading.owner[r]]
            if reading.several[r]:
                found.append(
                    Finding(
                        "several-targets",
                        "error",
                        "the regime moved more directions than one target can",
                        "It is left out. Use interventions on single targets.",
                        round(float(reading.third[r]), 3),
                        SEVERAL,
                        self.client,
                        label,
                    )
                )
            else:
                found.append(
                    Finding(
                        "weak-intervention",
                        "warning",
                        "the intervention is too weak to see, so nothing is said about its target",
                        "Collect more rows, or intervene more strongly.",
                        round(float(reading.excess[r]), 3),
                        MARGIN,
                        self.client,
                        label,
                    )
                )
        return tuple(found)

    def _outcome(self) -> Outcome:
        if self.not_identified:
            return Outcome(
                "not-identified",
                "Every intervention moved a single direction, as interventions on noise or mean "
                "alone do: ancestry is not identified, and no relation is stated.",
                "Use interventions that change how the target depends on its parents.",
            )
        rank = self.rank
        silent = [label for label, k in zip(self.labels, rank, strict=True) if k == 0]
        if silent:
            return Outcome(
                "partial",
                f"Nothing is said about {', '.join(silent[:8])}"
                f"{' …' if len(silent) > 8 else ''}: the regime is too weak to see or moved "
                "several targets.",
                "See the findings.",
            )
        unsaid = self._ancestors_open
        if unsaid.any():
            single = [label for label, k in zip(self.labels, unsaid, strict=True) if k]
            why = "" if self.rank_one == "unsure" else " and their rows are too few to see a second"
            return Outcome(
                "ok",
                f"recovered; the interventions on {', '.join(single[:8])}"
                f"{' …' if len(single) > 8 else ''} moved a single direction{why}, so nothing is "
                "said about their ancestors",
            )
        return Outcome()


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(
            f"{name} is {value!r}", f"Use one of {', '.join(repr(a) for a in allowed)}."
        )
