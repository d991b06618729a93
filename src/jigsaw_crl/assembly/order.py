"""The global order: a verdict, a probability and a certificate for every ordered pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.bounds import Bounds, effect_bounds
from jigsaw_crl.assembly.certificate import Certificate
from jigsaw_crl.assembly.decision import with_certainty
from jigsaw_crl.assembly.effects import PooledEffects, pool_effects
from jigsaw_crl.assembly.exact.deduction import Deduction, deduce
from jigsaw_crl.assembly.graph import DirectEffects, direct_effects
from jigsaw_crl.assembly.influence import contested, rests_on
from jigsaw_crl.assembly.lookup import unknown_label
from jigsaw_crl.assembly.pairwise import evidence_of
from jigsaw_crl.assembly.panel import Panel, read_fragments
from jigsaw_crl.assembly.posterior import Convergence, decode, draw_orders, sample_orders
from jigsaw_crl.assembly.verdict import NO, OPEN, VERDICTS, YES, Verdict, tally
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.faces import face
from jigsaw_crl.base.frozen import ReadOnlyArrays
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.fragment.fragment import Fragment

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

__all__ = ["GlobalOrder", "Mode", "tally"]

Mode = Literal["exact", "evidence", "paper"]

# Log-odds given to a fact when orders that agree with the facts are sampled.
FACT = 200.0


# Modules that build on this type are imported inside the methods that need them.
@dataclass(frozen=True, eq=False)
class GlobalOrder(ReadOnlyArrays):
    """A verdict, a probability and a certificate for every ordered pair of labels.

    Returned by `assemble`.

    Parameters
    ----------
    labels : tuple of str
        All labels, sorted, in the order of the arrays' rows and columns.
    mode : {"exact", "evidence", "paper"}
        Entailment from certain statements, a posterior from log-odds, or Algorithm 3.
    verdicts : array of int8, shape (p, p)
        1 ancestor, 0 not ancestor, -1 undetermined (`verdict.YES`, `NO`, `OPEN`).
    decoded : array of bool, shape (p, p)
        Evidence mode: the order with the highest expected F1. Exact mode: the entailed pairs.
        Algorithm 3: the pairs it states. Transitively closed, unless Algorithm 3 made a cycle.
    sampled : array, shape (p, p), or None
        Posterior probabilities (evidence mode).
    client_weights : mapping of str to float
        Trust per client, from 0 (ignored) to 1.
    notes : tuple of str
        Contradictions, distrusted clients, chains that did not agree.
    fragments : sequence of Fragment
        The fragments it was assembled from, sorted by client.
    seed : int
    closed_world : bool
    rate : float
        Error rate assumed for statements without log-odds (evidence mode).
    disagreement : bool
        At least a third of the clients contradict the rest: do not rely on the result.
    convergence : Convergence or None
    smallest_effect : float or None
        The size of effect that matters: "not ancestor" then says that none is larger.
    resting : mapping of (ancestor, descendant) to client, or None
        What `rests_on` found, for certificates and reports; None until `with_rests_on` has looked.

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl import Fragment, PartialOrder, assemble
    >>> from jigsaw_crl.fragment.fragment import Statements
    >>> def client(name, a, d):
    ...     blocks = (frozenset([a]), frozenset([d]))
    ...     return Fragment(name, "null-cone", (a, d), blocks,
    ...                     PartialOrder.from_pairs(blocks, [blocks]), blocks,
    ...                     statements=Statements(np.array([[0, 1], [0, 0]])))
    >>> order = assemble([client("lab-1", "pump", "valve"), client("lab-2", "valve", "flow")])
    >>> str(order.verdict("pump", "flow"))
    'ancestor'
    >>> sorted(order.ancestors("flow"))
    ['pump', 'valve']
    >>> order
    GlobalOrder(3 labels from 2 clients: 3 ancestor pairs, 3 not ancestor, 0 undetermined; exact)
    """

    labels: tuple[str, ...]
    mode: Mode
    verdicts: npt.NDArray[np.int8]
    decoded: BoolArray
    sampled: FloatArray | None
    client_weights: Mapping[str, float]
    notes: tuple[str, ...]
    fragments: Sequence[Fragment]
    seed: int = 0
    closed_world: bool = False
    rate: float = 0.0
    disagreement: bool = False
    convergence: Convergence | None = None
    smallest_effect: float | None = None
    resting: Mapping[tuple[str, str], str] | None = None

    def __post_init__(self) -> None:
        for name in ("verdicts", "decoded", "sampled"):
            value = getattr(self, name)
            if value is not None and (value.base is not None or value.flags.writeable):
                value = np.array(value)  # nobody else can change a read-only one
                value.flags.writeable = False
                object.__setattr__(self, name, value)

    # -- answers --------------------------------------------------------------------------------

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
        """The single order with the highest expected F1, undetermined pairs included.

        Use it where one order is needed and some wrong pairs can be accepted. It holds the decided
        pairs and those undetermined ones that are probable enough to raise the expected F1. From
        Algorithm 3 it is the order that the algorithm states, without pairs stated in both
        directions.

        Examples
        --------
        >>> import jigsaw_crl as jc
        >>> order = jc.recover(jc.simulate.setting("A", 0).clients(200)).order
        >>> order.pairs() <= order.best_guess().pairs()
        True
        """
        return PartialOrder.from_matrix(self.labels, self._guess)

    @cached_property
    def _guess(self) -> BoolArray:
        if self.mode == "exact" and self.undetermined():
            return decode(self.probabilities, np.random.default_rng(self.seed))
        return self.decoded & ~self.decoded.T

    def hasse(self) -> nx.DiGraph[str]:
        """The decided pairs that no others imply, as edges from ancestor to descendant.

        Each edge has its `probability`.
        """
        from jigsaw_crl.assembly.tables import hasse_graph

        return hasse_graph(self)

    def to_frame(self) -> pd.DataFrame:
        """One row per ordered pair.

        Columns: ancestor, descendant, verdict, probability, the numbers of clients whose own data
        say yes (supporting) and no (contradicting), for pairs that are not ancestors the size of
        effect that the data exclude (excludes_above, in excludes_unit; see `bound`), the
        probability that one truth holds at all sites (agreement; NaN for fewer than two), and
        whether the verdict is `contested`.
        """
        from jigsaw_crl.assembly.tables import order_frame

        return order_frame(self)

    def explain(self, ancestor: str, descendant: str) -> Certificate:
        """The certificate of the verdict; its `str()` is readable."""
        from jigsaw_crl.assembly.explanation import explain

        return explain(self, *self.indices(ancestor, descendant))

    def undetermined(self) -> frozenset[tuple[str, str]]:
        """The ordered pairs whose verdict is undetermined."""
        return frozenset(self._named(self.verdicts == OPEN))

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """The number of ordered pairs with each verdict, by the verdict's name."""
        off = self.verdicts[~np.eye(len(self.labels), dtype=bool)]
        return {str(verdict): int((off == code).sum()) for code, verdict in VERDICTS.items()}

    def add(self, *fragments: Fragment) -> GlobalOrder:
        """The order assembled from these fragments and those already in it.

        The result does not depend on the order in which fragments are added.
        """
        from jigsaw_crl.assembly.combine import assemble

        return assemble(
            [*self.fragments, *fragments],
            method="paper" if self.mode == "paper" else "evidence",
            seed=self.seed,
            closed_world=self.closed_world,
            smallest_effect=self.smallest_effect,
        )

    def with_refined(self, refined: Mapping[str, Fragment]) -> GlobalOrder:
        """The same order, with the clients' districts, blocks and bases after refinement.

        Verdicts and probabilities rest on the clients' evidence and statements, which stay as they
        are. Explanations and designs also use districts: they use the refined ones.
        `refined` has the fragments to take them from, by client name.
        """
        fragments = tuple(own.refined_as(refined[own.client]) for own in self.fragments)
        order = replace(self, fragments=fragments)
        if "deduction" in self.__dict__:
            # It follows from the statements alone, so it need not be derived again.
            order.__dict__["deduction"] = self.deduction
        return order

    # -- what the answers are based on ----------------------------------------------------------

    @cached_property
    def panel(self) -> Panel:
        """The fragments in the order's numbering of labels and clients."""
        return read_fragments(self.fragments)

    @cached_property
    def deduction(self) -> Deduction:
        """The facts of exact mode and how they follow from the fragments."""
        return deduce(self.panel, closed_world=self.closed_world)

    @cached_property
    def effects(self) -> PooledEffects | None:
        """Total effects of all clients together; None without hard interventions."""
        return pool_effects(self.panel)

    @cached_property
    def applied_effects(self) -> PooledEffects | None:
        """What interventions did as applied, over all clients; None without hard ones."""
        return pool_effects(self.panel, quantity="applied")

    @cached_property
    def direct_effects(self) -> DirectEffects | None:
        """The weighted causal graph; None without hard interventions."""
        if self.effects is None:
            return None
        exact = self.mode == "exact"
        return direct_effects(self.effects, self.verdicts, self.probabilities, entailed=exact)

    @cached_property
    def rests_on(self) -> dict[tuple[str, str], str]:
        """Decided pairs that rest on one client: without it, the others would not decide them.

        Computed when it is asked for: the posterior is sampled once more for every client. Empty in
        exact mode, where every certificate names what it rests on, and from Algorithm 3.

        Examples
        --------
        >>> import jigsaw_crl as jc
        >>> world = jc.simulate.setting("A", 0)
        >>> order = jc.recover([world.client(0, n_samples=5_000)]).order
        >>> set(order.rests_on.values()) == {world.views[0].name}
        True
        """
        if self.resting is not None:
            return dict(self.resting)
        if self.mode != "evidence":
            return {}
        assert self.sampled is not None
        given = (self.rate, self.verdicts, self.sampled, self.seed)
        return rests_on(self.panel, self._trust, *given)

    def with_rests_on(self) -> GlobalOrder:
        """The same order, whose certificates name the client that a verdict rests on."""
        return replace(self, resting=self.rests_on) if self.mode == "evidence" else self

    @cached_property
    def contested(self) -> frozenset[tuple[str, str]]:
        """Decided pairs against which some clients together have firm evidence.

        The clients that speak against the verdict would decide the opposite among themselves.
        `explain` names them. Empty in exact mode and from Algorithm 3.
        """
        if self.mode != "evidence":
            return frozenset()
        return frozenset(self._named(contested(self.panel, self._trust, self.rate, self.verdicts)))

    @property
    def _trust(self) -> FloatArray:
        """The clients' weights, in the order of the fragments."""
        return np.array([self.client_weights[f.client] for f in self.fragments])

    @cached_property
    def bounds(self) -> Bounds:
        """How large an effect the data leave possible, for every pair that a client measured."""
        return effect_bounds(self.panel, self._trust, self.effects)

    def bound(self, ancestor: str, descendant: str) -> float:
        """The size of effect of `ancestor` on `descendant` that the data exclude with 95 %.

        In standard deviations where the intervention on the descendant is hard, otherwise as a
        share (0 to 1) of what the intervention on the descendant changed in how it depends on the
        rest; a share of 1 or more excludes nothing. NaN where no client has both labels.
        """
        return float(self.bounds.value[self.indices(ancestor, descendant)])

    @cached_property
    def evidence(self) -> FloatArray:
        """Pooled log-odds of every ordered pair, shape (p, p).

        In exact mode and from Algorithm 3, ±`FACT` for decided pairs and 0 for others.
        """
        if self.mode == "evidence":
            return evidence_of(self.panel, self._trust, self.rate, self.sampled)
        return np.where(self.verdicts == YES, FACT, np.where(self.verdicts == NO, -FACT, 0.0))

    @cached_property
    def probabilities(self) -> FloatArray:
        """Probability of every ordered pair, shape (p, p).

        In exact mode the probability of an undetermined pair is its frequency in orders sampled
        from the prior that agree with the decided pairs. From Algorithm 3 it is ½.
        """
        if self.sampled is not None:
            return self.sampled
        chance: float | FloatArray = 0.5
        if self.mode == "exact" and self.undetermined():
            rng = np.random.default_rng(self.seed)
            chance = sample_orders(self.evidence, rng, start=self.decoded).probability
        return with_certainty(self.verdicts, chance)

    def sample(self, n: int, *, seed: int = 0) -> list[BoolArray]:
        """`n` orders that agree with what is known, as matrices over `labels`."""
        rng = np.random.default_rng([self.seed, seed])
        start = None if self.mode == "paper" else self.decoded
        return draw_orders(self.evidence, rng, n, start=start)

    # -- names ----------------------------------------------------------------------------------

    @cached_property
    def _position(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    def index(self, label: str) -> int:
        """Position of a label; an `InputError` if it is unknown."""
        try:
            return self._position[label]
        except (KeyError, TypeError):  # unknown, or not hashable
            raise unknown_label(label, self.labels, self.fragments) from None

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
        return str(face("order.html")(self))

    def __repr__(self) -> str:
        return (
            f"GlobalOrder({pluralise(len(self.labels), 'label')} from "
            f"{pluralise(len(self.fragments), 'client')}: {tally(self.counts)}; {self.mode})"
        )
