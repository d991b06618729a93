"""What the clients sent, in the coordinator's numbering. It is built once and never edited.

Clients are sorted by name and labels alphabetically, so that nothing downstream can depend on the
order in which fragments arrived. Everything that is not believed, or not believed in full, is said
in a `Use`: how far each client counts, which labels a client says nothing about, which were not
intervened on as hard as claimed, and whose word on ancestry is withheld. Leaving a client out is
another `Use` of the same panel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.knowledge import NOTHING, Knowledge
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES, Fragment

# With more labels, orders are not sampled: chains would take more than 200 bytes for each of the
# p² pairs (3 GB at this size), and a minute of moves would hardly touch each pair once.
MOST_LABELS = 4_000


@dataclass(frozen=True, eq=False)
class Rows:
    """What one client sent about its ordered pairs; all arrays follow `members`."""

    client: str
    # Position of each of the client's labels among the study's, ascending, shape (p,).
    members: IntArray
    # Yes, no or cannot say (1, 0, -1), where the client states rather than weighs, shape (p, p).
    certain: npt.NDArray[np.int8] | None
    # The statements come from exact moments.
    sure: bool
    # Where the client weighs rather than states; and the same if no intervention were hard.
    bayes: BayesFactors | None
    soft: BayesFactors | None
    # Candidates, one of which is an ancestor of the last.
    one_of: tuple[tuple[tuple[int, ...], int], ...]
    # Pairs that the client puts in one district (or block, where districts are unknown), (p, p).
    together: BoolArray
    # Labels whose interventions are said to change how the target depends on its causes, (p,).
    declared: BoolArray
    # Of each pair the share of what changed in the column's equation that belongs to the row, and
    # its error; NaN where it was not measured.
    shares: tuple[FloatArray, FloatArray] | None

    @classmethod
    def of(cls, fragment: Fragment, position: dict[str, int]) -> Rows:
        """The rows of a fragment, given the positions of all labels of the study."""
        members = np.array([position[label] for label in fragment.labels], dtype=np.intp)
        # Sums must not depend on how the client lists its labels, not even in the last digit.
        listed = np.argsort(members)
        grid = np.ix_(listed, listed)
        certain, sure, one_of = None, False, []
        if fragment.statements is not None:
            certain, sure = fragment.statements.ancestor, True
            one_of = [
                (tuple(sorted(position[c] for c in candidates)), position[d])
                for candidates, d in fragment.statements.one_of
            ]
        elif fragment.bayes is None:
            certain, sure = _from_blocks(fragment), fragment.n_samples is None
        weighs = certain is None
        bayes, soft = (
            factors.at(listed).bounded() if weighs and factors is not None else None
            for factors in (fragment.bayes, fragment.soft)
        )
        groups = fragment.blocks if fragment.districts is None else fragment.districts
        together = np.zeros((len(members), len(members)), dtype=bool)
        for group in groups:
            inside = [fragment.index(label) for label in group]
            together[np.ix_(inside, inside)] = True
        declared = np.full(len(members), fragment.rank_one == "no-ancestor")
        if fragment.hard is not None:
            declared |= np.array(fragment.hard.hard)
        return cls(
            client=fragment.client,
            members=members[listed],
            certain=None if certain is None else certain[grid],
            sure=sure,
            bayes=bayes,
            soft=soft,
            one_of=tuple(sorted(one_of)),
            together=together[grid],
            declared=declared[listed],
            shares=None
            if fragment.shares is None
            else (fragment.shares.value[grid], fragment.shares.error[grid]),
        )


@dataclass(frozen=True, eq=False)
class Panel:
    """All clients' rows on one list of labels, their fragments, and what the user knows."""

    labels: tuple[str, ...]
    rows: tuple[Rows, ...]
    fragments: tuple[Fragment, ...]
    knowledge: Knowledge = NOTHING

    @cached_property
    def known(self) -> npt.NDArray[np.int8]:
        """What the user said of every pair: yes, no, or nothing (1, 0, -1), shape (p, p)."""
        yes, no = self.knowledge.facts(self.labels)
        return np.where(yes, YES, np.where(no, NO, CANNOT_SAY)).astype(np.int8)

    @cached_property
    def bent(self) -> frozenset[str]:
        """The clients that were read without linearity (T9)."""
        bent = "nonlinear-response"
        return frozenset(f.client for f in self.fragments if bent in {x.check for x in f.findings})

    @cached_property
    def position(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    @property
    def clients(self) -> tuple[str, ...]:
        return tuple(rows.client for rows in self.rows)

    @cached_property
    def scales(self) -> tuple[float, ...]:
        """Effect scales at which evidence is pooled: those of most clients that weigh.

        What a client says at others is pooled as if it were the same at each, so that no client
        changes how the others count.
        """
        used = Counter(rows.bayes.scales for rows in self.rows if rows.bayes is not None)
        return max(sorted(used), key=lambda scales: used[scales]) if used else (1.0,)

    @cached_property
    def where(self) -> npt.NDArray[np.int32]:
        """`where[k, i]`: row of label i at client k, -1 when it has no such label."""
        out = np.full((len(self.rows), len(self.labels)), -1, dtype=np.int32)
        for k, rows in enumerate(self.rows):
            out[k, rows.members] = np.arange(len(rows.members))
        return out

    def seen_by(self, a: int, d: int) -> list[tuple[int, int, int]]:
        """The clients that have both labels: number, and rows of a and d there."""
        both = np.flatnonzero((self.where[:, a] >= 0) & (self.where[:, d] >= 0))
        return [(k, int(self.where[k, a]), int(self.where[k, d])) for k in both.tolist()]


def read_fragments(
    fragments: Iterable[Fragment],
    knowledge: Knowledge = NOTHING,
) -> Panel:
    """Sort, number and check the fragments; labels of the knowledge may be missing.

    Raises
    ------
    InputError
        No fragment, or two with one client name.
    """
    given = list(fragments)
    for item in given:
        if not isinstance(item, Fragment):
            raise InputError(
                f"a fragment is expected, got {type(item).__name__}",
                "Pass what `recover_fragment` returns, or read it with `Fragment.from_json`.",
            )
    if not given:
        raise InputError("there is no fragment to assemble", "Pass at least one fragment.")
    given.sort(key=lambda fragment: fragment.client)
    for one, other in pairwise(given):
        if one.client == other.client:
            raise InputError(
                "two fragments carry this client's name",
                "Give each client one name, or keep only its latest fragment.",
                client=one.client,
            )
    labels = tuple(sorted({label for fragment in given for label in fragment.labels}))
    position = {label: i for i, label in enumerate(labels)}
    rows = tuple(Rows.of(f, position) for f in given)
    return Panel(labels, rows, tuple(given), knowledge)


def check_size(panel: Panel) -> None:
    """Refuse more labels than orders are sampled of, and say what to do."""
    p = len(panel.labels)
    if p > MOST_LABELS:
        raise InputError(
            f"there are {p:,} labels, and orders of {MOST_LABELS:,} at most are sampled",
            "Leave labels out, or assemble groups of clients that share no label on their own.",
        )


def _from_blocks(fragment: Fragment) -> npt.NDArray[np.int8]:
    """What blocks and block order alone settle, shape (p, p).

    A cover between two singleton blocks is an ancestor; a label whose block is neither the same
    nor an ancestor is none; all else stays open.
    """
    p = len(fragment.labels)
    order = fragment.block_order
    number = {block: i for i, block in enumerate(order.elements)}
    block = np.array([number[fragment.block_of(label)] for label in fragment.labels])
    single = np.array([len(b) == 1 for b in order.elements])
    above = order.matrix[np.ix_(block, block)]
    cover = order.cover_matrix[np.ix_(block, block)]
    out = np.full((p, p), -1, dtype=np.int8)
    out[cover & single[block][:, None] & single[block][None, :]] = YES
    out[~above & (block[:, None] != block[None, :])] = NO
    return out


# -- use ------------------------------------------------------------------------------------------

# From about a third of the clients on, collusion can no longer be told from consensus.
DISAGREEMENT = 0.3


# Error rate of statements that come without one of their own, until the study tells.
FIRST_RATE = 0.02


@dataclass(frozen=True, eq=False)
class Use:
    """How a panel is used."""

    # How far each client counts, from 0 (ignored) to 1, shape (n_clients,).
    weights: FloatArray
    # Error rate of statements that come without log Bayes factors.
    rate: float = FIRST_RATE
    # Labels whose interventions are not believed to be hard.
    soft: frozenset[str] = frozenset()
    # Clients from which nothing is concluded about ancestors, as when the system is not linear.
    withheld: frozenset[str] = frozenset()
    # Clients that sent the same evidence. The first of a group counts, the others do not.
    copies: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def all_of(cls, panel: Panel) -> Use:
        """Everything counts."""
        return cls(np.ones(len(panel.rows)))

    def with_copies(self, k: int) -> list[int]:
        """Client k and everyone who sent the same evidence."""
        return next((list(group) for group in self.copies if k in group), [k])

    @property
    def shares(self) -> FloatArray:
        """What copies leave of each client's weight, shape (n_clients,): 0 or 1."""
        out = np.ones(len(self.weights))
        for _, *others in self.copies:
            out[others] = 0.0
        return out

    @property
    def trusted(self) -> BoolArray:
        """Clients that count at least half, shape (n_clients,)."""
        return np.asarray(self.weights >= 0.5)

    @property
    def distrusted(self) -> list[int]:
        """Clients that count for less than half, although no other counts in their place."""
        return [int(k) for k in np.flatnonzero(~self.trusted & (self.shares > 0))]

    @property
    def disagreement(self) -> bool:
        """So many clients contradict the rest that it cannot be told who is right."""
        return len(self.distrusted) >= DISAGREEMENT * len(self.weights)

    def not_hard(self, panel: Panel, k: int) -> BoolArray:
        """Labels of client k that are not believed hard."""
        return np.array([panel.labels[i] in self.soft for i in panel.rows[k].members])
