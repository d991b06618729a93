"""The global order: a verdict, a probability and a certificate for every ordered pair."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.effects import UNEQUAL, PooledEffects, pool_effects
from jigsaw_crl.assembly.entailment import Facts, deduce
from jigsaw_crl.assembly.evidence import Evidence
from jigsaw_crl.assembly.graph import DirectEffects, direct_effects
from jigsaw_crl.assembly.pairs import UNITS, PairTable, effect_bounds
from jigsaw_crl.assembly.panel import Panel, Use
from jigsaw_crl.assembly.posterior.chains import Convergence, Posterior, entailed
from jigsaw_crl.assembly.posterior.model import log_factors, posterior_of
from jigsaw_crl.assembly.posterior.walk import decode
from jigsaw_crl.assembly.verdict import NO, OPEN, VERDICTS, YES, Decided, Verdict, Why, tally
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.frozen import ReadOnlyArrays
from jigsaw_crl.base.knowledge import NOTHING, Knowledge
from jigsaw_crl.base.labels import label_key
from jigsaw_crl.base.order import PartialOrder, cover_matrix, transitive_closure
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.evidence.effects import AT_DOSE, TOTAL
from jigsaw_crl.fragment.fragment import Fragment, Method

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from jigsaw_crl.assembly.explanation import Certificate

Mode = Literal["exact", "evidence", "paper"]
Witnesses = int | Literal["fifth"] | None


@dataclass(frozen=True)
class Options:
    """How fragments are assembled: see `assemble`.

    An `InputError` says which option is wrong, or does not belong to the method.
    """

    method: Method = "null-cone"
    seed: int = 0
    smallest_effect: float | None = None
    knowledge: Knowledge = NOTHING
    witnesses: Witnesses = None

    def __post_init__(self) -> None:
        size, asked, wrong, remedy = self.smallest_effect, self.witnesses, "", ""
        if not isinstance(self.knowledge, Knowledge):
            raise InputError(
                f"knowledge is a {type(self.knowledge).__name__}",
                'Pass jc.Knowledge(tiers=…, ancestor=["pump -> tank"], not_ancestor=…).',
            )
        if self.method not in ("null-cone", "paper"):
            wrong = f"there is no assembly method {self.method!r}"
            remedy = "Choose 'null-cone' or 'paper'."
        elif size is not None and not 0 < size < np.inf:
            wrong = f"the smallest effect that matters is {size!r}"
            remedy = "Pass a size above 0, such as 0.1."
        elif asked not in (None, "fifth") and not (type(asked) is int and asked > 0):
            wrong = f"the number of witnesses is {asked!r}"
            remedy = "Pass a whole number above 0, or 'fifth'."
        elif self.method == "paper":
            given = [x for x in ("smallest_effect", "knowledge", "witnesses") if getattr(self, x)]
            wrong = f"{given[0]} belongs to the null-cone method" if given else ""
            remedy = 'Drop it, or pass method="null-cone".'
        if wrong:
            raise InputError(wrong, remedy)


# Modules that build on this type are imported inside the methods that need them.
@dataclass(frozen=True, eq=False)
class GlobalOrder(ReadOnlyArrays):
    """A verdict, a probability and a certificate for every ordered pair of labels.

    Returned by `assemble`.

    Parameters
    ----------
    panel : Panel
        What the clients sent.
    use : Use
        How far it is used: trust, and what is set aside.
    mode : {"exact", "evidence", "paper"}
        Entailment from certain statements, a posterior from log Bayes factors, or Algorithm 3.
    verdicts : array of int8, shape (p, p)
        1 ancestor, 0 not ancestor, -1 undetermined (`verdict.YES`, `NO`, `OPEN`).
    why : array of int8, shape (p, p)
        A `verdict.Why` for every pair.
    decoded : array of bool, shape (p, p)
        Evidence mode: the best guess. Exact mode: the entailed pairs.
        Algorithm 3: the pairs it states. Transitively closed, unless Algorithm 3 made a cycle.
    chances : array, shape (p, p), or None
        The probabilities, where they are known already: see `probabilities`.
    notes : tuple of str
        Contradictions, distrusted clients, chains that did not agree.
    options : Options
        How it was assembled; the same options and fragments give the same order.
    convergence : Convergence or None

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> str(order.verdict("z1", "z2"))
    'ancestor'
    >>> sorted(order.ancestors("z2"))
    ['z1', 'z3', 'z4', 'z5']
    >>> order
    GlobalOrder(5 labels from 5 clients: 9 ancestor pairs, 11 not ancestor, 0 undetermined; exact)
    """

    panel: Panel
    use: Use
    mode: Mode
    verdicts: npt.NDArray[np.int8]
    why: npt.NDArray[np.int8]
    decoded: BoolArray
    chances: FloatArray | None = None
    notes: tuple[str, ...] = ()
    options: Options = Options()
    convergence: Convergence | None = None

    def __post_init__(self) -> None:
        self._copy_read_only("verdicts", "why", dtype=np.int8)
        self._copy_read_only("decoded", dtype=np.bool_)
        self._copy_read_only("chances")

    # -- answers --------------------------------------------------------------------------------

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, sorted, in the order of the arrays' rows and columns."""
        return self.panel.labels

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """What the clients sent, sorted by client."""
        return self.panel.fragments

    @property
    def client_weights(self) -> Mapping[str, float]:
        """Trust per client, from 0 (ignored) to 1."""
        return dict(zip(self.panel.clients, self.use.weights.tolist(), strict=True))

    @property
    def decimals(self) -> int:
        """Decimals of a probability that sampled orders can tell, from three draws of all on."""
        ran = self.convergence
        draws = 0 if ran is None else ran.chains * ran.sweeps
        return int(np.clip(np.log10(draws / 3.0), 1, 3)) if draws else 3

    def verdict(self, ancestor: str, descendant: str) -> Verdict:
        """Is `ancestor` an ancestor of `descendant`?"""
        return VERDICTS[int(self.verdicts[self.indices(ancestor, descendant)])]

    def probability(self, ancestor: str, descendant: str) -> float:
        """Probability that `ancestor` is an ancestor of `descendant`."""
        return float(self.probabilities[self.indices(ancestor, descendant)])

    def ancestors(self, descendant: str) -> frozenset[str]:
        """The labels whose verdict is that they are ancestors of `descendant`."""
        column = self.verdicts[:, self.index(descendant)]
        return frozenset(self.labels[i] for i in np.flatnonzero(column == YES))

    def descendants(self, ancestor: str) -> frozenset[str]:
        """The labels whose verdict is that `ancestor` is an ancestor of them."""
        row = self.verdicts[self.index(ancestor)]
        return frozenset(self.labels[i] for i in np.flatnonzero(row == YES))

    def pairs(self) -> set[tuple[str, str]]:
        """Every `(ancestor, descendant)` whose verdict is "ancestor": the decided pairs.

        `best_guess` also has pairs that are probable and undetermined.
        """
        return self._named(self.verdicts == YES)

    def best_guess(self) -> PartialOrder[str]:
        """The single order with the most pairs expected to be right, less the wrong ones.

        Use it where one order is needed and some wrong pairs can be accepted. It holds the decided
        pairs and undetermined ones that are more probable than not, or that these imply. It has no
        pair of a label about which no client says anything. From Algorithm 3 it is the order that
        the algorithm states, without pairs stated in both directions.
        """
        guess = self.decoded & ~self.decoded.T
        if self.mode == "exact" and self.undetermined():
            guess = decode(self.probabilities, np.random.default_rng(self.options.seed))
        return PartialOrder.from_matrix(self.labels, guess)

    def hasse(self) -> nx.DiGraph[str]:
        """The decided pairs that no others imply, as edges from ancestor to descendant.

        Each edge has its `probability`.
        """
        import networkx as nx  # here for start-up time

        decided = self.verdicts == YES
        closed = transitive_closure(decided)
        # A cycle (Algorithm 3 only) has no Hasse diagram; every pair is shown then.
        cover = decided if np.diagonal(closed).any() else cover_matrix(closed)
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(self.labels)
        for a, d in np.argwhere(cover).tolist():
            chance = float(self.probabilities[a, d])
            graph.add_edge(self.labels[a], self.labels[d], probability=chance)
        return graph

    def to_frame(self) -> pd.DataFrame:
        """One row per ordered pair.

        Columns: ancestor, descendant, verdict, probability, the numbers of clients whose own data
        say yes (supporting) and no (contradicting), for pairs that are not ancestors the size of
        effect that the data exclude (excludes_above, in excludes_unit; see `bound`), the
        probability that one truth holds at all sites (agreement; NaN for fewer than two), the
        client that the verdict rests on (rests_on; empty if there is none), the size of the
        smallest group of clients without which the others would not decide the pair (witnesses; 0
        if a fifth of the clients is too few for that), and whether clients that speak against the
        verdict would decide the opposite among themselves (contested).
        """
        import pandas as pd  # here for start-up time

        table = self.table
        a, d = np.nonzero(~np.eye(len(self), dtype=bool))
        names = np.array(self.labels, dtype=object)
        bound, units = table.excluded[a, d], np.array(UNITS)[table.bounds.units[a, d]]
        return pd.DataFrame(
            {
                "ancestor": names[a],
                "descendant": names[d],
                "verdict": [str(VERDICTS[int(code)]) for code in table.verdict[a, d]],
                "probability": table.probability[a, d],
                "supporting": table.yes[a, d],
                "contradicting": table.no[a, d],
                "excludes_above": bound,
                "excludes_unit": np.where(np.isnan(bound), "", units),
                "agreement": table.agreement[a, d],
                "rests_on": np.array([*table.clients, ""], dtype=object)[table.rests_on[a, d]],
                "witnesses": table.witnesses[a, d],
                "contested": table.contested[a, d],
            }
        )

    def explain(self, ancestor: str, descendant: str) -> Certificate:
        """The certificate of the verdict; its `str()` is readable."""
        return self.certificate(*self.indices(ancestor, descendant))

    def certificate(self, a: int, d: int) -> Certificate:
        """The certificate of a pair of positions, which is made once."""
        from jigsaw_crl.assembly.explanation import explain

        made: dict[tuple[int, int], Certificate] = self.__dict__.setdefault("_certificates", {})
        if (a, d) not in made:
            made[a, d] = explain(self, a, d)
        return made[a, d]

    def undetermined(self) -> frozenset[tuple[str, str]]:
        """The ordered pairs whose verdict is undetermined."""
        return frozenset(self._named(self.verdicts == OPEN))

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """The number of ordered pairs with each verdict, by the verdict's name."""
        off = self.verdicts[~np.eye(len(self.labels), dtype=bool)]
        return {str(verdict): int((off == code).sum()) for code, verdict in VERDICTS.items()}

    # -- what the answers are based on ----------------------------------------------------------

    @cached_property
    def said(self) -> Evidence:
        """What each client brings to the pool."""
        return Evidence.heard(self.panel, self.use).without_single_directions()

    @cached_property
    def table(self) -> PairTable:
        """Everything that is known about every pair."""
        said, P, decided = self.said, self.probabilities, Decided(self.verdicts, self.why)
        if self.mode != "evidence":
            return PairTable.of(said, self.effects, P, decided)
        applied = self.applied_effects if self.panel.bent else None
        bounds = effect_bounds(said, self.effects, applied)
        return PairTable.of(said, self.effects, P, decided, log_factors(said, P), bounds)

    @cached_property
    def facts(self) -> Facts:
        """The facts from which certificates derive all others: stated, or decided by evidence."""
        if self.mode == "exact":
            return deduce(self.said)
        known = self.table.why == Why.KNOWN
        own = (self.table.why == Why.EVIDENCE) & ~np.eye(len(self.labels), dtype=bool) | known
        yes, no = ((self.verdicts == said) & own for said in (YES, NO))
        return Facts(self.said, yes, no)

    @cached_property
    def probabilities(self) -> FloatArray:
        """Probability of every ordered pair, shape (p, p).

        In exact mode an undetermined pair has its frequency in orders that agree with all
        statements, which are sampled when it is asked for. From Algorithm 3 it has ½.
        """
        if self.chances is not None:
            return self.chances
        chance = self.posterior.probability if (self.verdicts == OPEN).any() else 0.0
        out = np.where(self.verdicts == OPEN, chance, self.verdicts == YES)
        out.flags.writeable = False
        return out

    @cached_property
    def effects(self) -> PooledEffects | None:
        """Total effects of all clients together; None without hard interventions."""
        return None if self.mode == "paper" else pool_effects(self.panel, self.use)

    @cached_property
    def applied_effects(self) -> PooledEffects | None:
        """What interventions did as applied, over all clients; None without hard ones."""
        return pool_effects(self.panel, self.use, quantity="applied")

    @cached_property
    def known_effects(self) -> tuple[tuple[str, PooledEffects, BoolArray], ...]:
        """What effects are (total, or at the dose that was applied), their sizes, and their pairs.

        In a system that is not linear an effect depends on the dose. Sites whose effects at their
        doses differ are then not pooled.
        """
        found = []
        if self.effects is not None:
            found.append((TOTAL, self.effects, self.effects.known))
        if self.panel.bent and (applied := self.applied_effects) is not None:
            alike = ~(np.nan_to_num(applied.heterogeneity, nan=1.0) < UNEQUAL)
            other = True if self.effects is None else ~self.effects.known
            found.append((AT_DOSE, applied, applied.known & alike & other))
        return tuple(found)

    @cached_property
    def direct_effects(self) -> DirectEffects | None:
        """The weighted causal graph; None without hard interventions."""
        if self.effects is None:
            return None
        return direct_effects(self.effects, self.verdicts, entailed=self.mode == "exact")

    @property
    def rests_on(self) -> dict[tuple[str, str], str]:
        """Decided pairs that rest on one client: without it, the others would not decide them.

        Empty in exact mode, where every certificate names what it rests on, and from Algorithm 3.
        """
        found = np.argwhere(self.table.rests_on >= 0).tolist()
        return {(self.labels[a], self.labels[d]): self.table.resting(a, d) for a, d in found}

    @property
    def contested(self) -> frozenset[tuple[str, str]]:
        """Decided pairs against which some clients together have firm evidence.

        The clients that speak against the verdict would decide the opposite among themselves.
        `explain` names them. Empty in exact mode and from Algorithm 3.
        """
        return frozenset(self._named(self.table.contested))

    def bound(self, ancestor: str, descendant: str) -> float:
        """The size of effect of `ancestor` on `descendant` that the data exclude with 95 %.

        In standard deviations where the intervention on the descendant is hard, otherwise as a
        share (0 to 1) of what the intervention on the descendant changed in how it depends on the
        rest; a share of 1 or more excludes nothing. NaN where no client has both labels.
        """
        return float(self.table.bounds.value[self.indices(ancestor, descendant)])

    @cached_property
    def posterior(self) -> Posterior:
        """The orders that are possible, as probable as the probabilities say."""
        if self.mode == "evidence":
            return posterior_of(self.said, np.random.default_rng([self.options.seed, 1]))
        rng = np.random.default_rng(self.options.seed)
        if self.mode == "paper":
            # Algorithm 3 denies nothing, and does not hear "one of these is an ancestor".
            return entailed(self.verdicts == YES, np.zeros_like(self.decoded), (), rng)
        one_of = [one for rows in self.panel.rows for one in rows.one_of]
        return entailed(self.facts.yes, self.facts.no, one_of, rng)

    def sample(self, n: int, *, seed: int = 0) -> list[BoolArray]:
        """`n` orders drawn from what the probabilities state, as matrices over `labels`."""
        return self.posterior.sample(n, seed=[self.options.seed, seed])

    # -- names ----------------------------------------------------------------------------------

    def index(self, label: str) -> int:
        """Position of a label; an `InputError` if it is unknown."""
        with contextlib.suppress(KeyError, TypeError):  # unknown, or not hashable
            return self.panel.position[label]
        refused = [
            f"{piece.client}: {finding.message}"
            for piece in self.fragments
            for finding in piece.findings
            if finding.severity == "error" and finding.regime == label
        ]
        known = f"The order knows {few(self.labels)}."
        if refused:
            why = "; ".join(refused)[:300]
            raise InputError(f"the label {label!r} was left out ({why})", known)
        if isinstance(label, str):
            same = [x for x in self.labels if label_key(x) == label_key(label)]
            if len(same) == 1:
                return self.panel.position[same[0]]
        near = did_you_mean(label, self.labels)
        raise InputError(f"no client has the label {label!r}", f"{known} {near}".strip())

    def indices(self, ancestor: str, descendant: str) -> tuple[int, int]:
        """Positions of two different labels."""
        a, d = self.index(ancestor), self.index(descendant)
        if a == d:
            raise InputError(
                f"{ancestor!r} is asked about itself", "Ask about two different labels."
            )
        return a, d

    def _named(self, chosen: BoolArray) -> set[tuple[str, str]]:
        """The pairs of different labels that are true in a matrix."""
        return {
            (self.labels[a], self.labels[d])
            for a, d in zip(*np.nonzero(chosen), strict=True)
            if a != d
        }

    def __len__(self) -> int:
        return len(self.labels)

    def _repr_html_(self) -> str:
        return str(resolve_name("jigsaw_crl.report.writing:order_html")(self))

    def __repr__(self) -> str:
        return (
            f"GlobalOrder({pluralise(len(self.labels), 'label')} from "
            f"{pluralise(len(self.fragments), 'client')}: {tally(self.counts)}; {self.mode})"
        )
