"""How good a recovery is, when the truth is known.

E1, E2 and E3 are the paper's and lie in [0, 1]. E1 (`global_f1`) compares orders; larger is better.
Of an assembled order, E1 scores the best guess, `GlobalOrder.best_guess`, not only decided pairs.
E2 (`subspace_error`) and E3 (`support_leakage`) compare a client's latent basis with the truth;
smaller is better. `latent_correlation` compares the latents themselves, which hard interventions
reveal, and `effect_scores` and `edge_counts` the effects and the graph. `verdict_counts` counts
wrong verdicts, and `reliability` compares stated probabilities with the share of pairs that are
true.

Examples
--------
>>> import jigsaw_crl as jc
>>> world = jc.simulate.setting("A", 0)
>>> result = jc.recover(world.clients())
>>> jc.metrics.global_f1(world.order, result.order)
1.0
>>> truths = [world.truth(k) for k in range(world.n_clients)]
>>> round(jc.metrics.subspace_error(truths, result.fragments), 12)
0.0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.linalg import orth

from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.assembly.verdict import NO, Verdict
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.evidence.effects import INTERVAL

if TYPE_CHECKING:
    from jigsaw_crl.base.order import PartialOrder
    from jigsaw_crl.fragment.fragment import Fragment
    from jigsaw_crl.truth.simulate.views import TrueEffects, Truth

    Pairs = GlobalOrder | PartialOrder[Any] | Iterable[tuple[Any, Any]]

__all__ = [
    "PROBABILITY_BINS",
    "EdgeCounts",
    "EffectScores",
    "VerdictCounts",
    "edge_counts",
    "effect_scores",
    "global_f1",
    "latent_correlation",
    "reliability",
    "scored_pairs",
    "subspace_error",
    "support_leakage",
    "verdict_counts",
]


# The paper's ε: a coefficient outside the allowed support counts when it is larger.
LEAKAGE_THRESHOLD = 1e-2
# Singular values of a block's rows below this share of the largest are rounding errors.
ROW_SPACE_TOLERANCE = 1e-10
# Rounding error of an effect from exact moments, whose interval has no width.
ROUNDING = 1e-8

# Inner edges of the bins of `reliability`: below 1 %, 1 to 5 %, …, above 99 %.
PROBABILITY_BINS = (0.01, 0.05, 0.2, 0.8, 0.95, 0.99)


def global_f1(true_pairs: Pairs, estimated_pairs: Pairs) -> float:
    """E1: the F1 score of the estimated set of (ancestor, descendant) pairs.

    Parameters
    ----------
    true_pairs, estimated_pairs : order or iterable of (ancestor, descendant)
        Of a `GlobalOrder`, the pairs of its best guess count; from Algorithm 3 all pairs that it
        states, also those on a cycle.

    Returns
    -------
    float
        `2 |T ∩ S| / (|T| + |S|)`; 1 when both are empty.

    Examples
    --------
    >>> from jigsaw_crl.truth.metrics import global_f1
    >>> global_f1({("a", "b"), ("a", "c")}, {("a", "b")})
    0.6666666666666666
    >>> global_f1(set(), set())
    1.0
    """
    true, estimated = scored_pairs(true_pairs), scored_pairs(estimated_pairs)
    size = len(true) + len(estimated)
    return 2 * len(true & estimated) / size if size else 1.0


def scored_pairs(order: Pairs) -> frozenset[tuple[Any, Any]]:
    """The pairs of an order that E1 scores: see `global_f1`."""
    if isinstance(order, GlobalOrder) and order.mode != "paper":
        order = order.best_guess()
    return frozenset(order.pairs() if hasattr(order, "pairs") else order)


class _Counts:
    """Counts, those of several worlds add up with `+`."""

    def __add__(self, other: Self) -> Self:
        both = zip(astuple(self), astuple(other), strict=True)  # type: ignore[call-overload]
        return type(self)(*(a + b for a, b in both))


@dataclass(frozen=True)
class VerdictCounts(_Counts):
    """How many ordered pairs were decided, and how many of these wrongly.

    Parameters
    ----------
    pairs, ancestors : int
        Ordered pairs of labels, and how many of them are true ancestors.
    yes, wrong_yes : int
        Verdicts "ancestor", and how many of them are wrong.
    no, wrong_no : int
        Verdicts "not ancestor", and how many of them are wrong.
    """

    pairs: int = 0
    ancestors: int = 0
    yes: int = 0
    wrong_yes: int = 0
    no: int = 0
    wrong_no: int = 0

    @property
    def decided(self) -> float:
        """Share of the pairs with a verdict."""
        return (self.yes + self.no) / self.pairs if self.pairs else 1.0


def verdict_counts(
    truth: PartialOrder[str], order: GlobalOrder, labels: Iterable[str] | None = None
) -> VerdictCounts:
    """Count the verdicts of an order, and the wrong ones among them.

    Parameters
    ----------
    truth : PartialOrder
    order : GlobalOrder
    labels : iterable of str, optional
        Labels whose pairs count; by default those of the order. Pairs with a label that the order
        lacks are undecided.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> jc.metrics.verdict_counts(world.order, jc.recover(world.clients()).order)
    VerdictCounts(pairs=20, ancestors=9, yes=9, wrong_yes=0, no=11, wrong_no=0)
    """
    known, counts = set(order.labels), Counter[str]()
    for a, d in permutations(order.labels if labels is None else labels, 2):
        verdict = order.verdict(a, d) if {a, d} <= known else Verdict.UNDETERMINED
        is_true = truth.is_ancestor(a, d)
        counts.update(pairs=1, ancestors=is_true)
        if verdict is not Verdict.UNDETERMINED:
            said = "yes" if verdict is Verdict.ANCESTOR else "no"
            counts.update({said: 1, f"wrong_{said}": is_true != (said == "yes")})
    return VerdictCounts(**counts)


def reliability(truth: PartialOrder[str], order: GlobalOrder) -> FloatArray:
    """Stated probabilities against the truth, in the bins of `PROBABILITY_BINS`.

    Returns
    -------
    array, shape (7, 3)
        Per bin: number of ordered pairs, sum of their stated probabilities, number of true
        ancestors among them. Arrays of several worlds add up.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> jc.metrics.reliability(world.order, jc.recover(world.clients()).order)[[0, -1]]
    array([[11.,  0.,  0.],
           [ 9.,  9.,  9.]])
    """
    off = ~np.eye(len(order.labels), dtype=bool)
    stated = order.probabilities[off]
    true = truth.restrict(order.labels).matrix[off]
    which = np.digitize(stated, PROBABILITY_BINS)
    size = len(PROBABILITY_BINS) + 1
    columns = (np.bincount(which, weights=w, minlength=size) for w in (None, stated, true))
    return np.column_stack([*columns]).astype(np.float64)


def subspace_error(truth: Any, fragment: Any) -> float:
    """E2: the distance of the blocks' row spaces from the true ones.

    For a client and a true block C, `E = ‖P̂ − P‖_F² / (2|C|)`, where P and P̂ project on the rows of
    Q and of Q̂ that belong to the labels in C, whatever blocks were estimated. E2 is the mean over
    the blocks of a client, then over clients. A block with a row that was not recovered (absent,
    zero or not finite) scores 1.

    Parameters
    ----------
    truth : Truth or sequence of Truth
    fragment : Fragment, sequence of Fragment, or mapping from client to Fragment

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> fragment = jc.recover_fragment(world.client(0))
    >>> round(jc.metrics.subspace_error(world.truth(0), fragment), 12)
    0.0
    """
    return _mean_over_clients(_client_subspace_error, truth, fragment)


def support_leakage(truth: Any, fragment: Any) -> float:
    """E3: the share of coefficients of Ẑ that should be zero and are not small.

    `N = Q̂ G` expresses Ẑ in the true latents (rows of Q̂ at unit norm, as the paper defines them).
    Entry (i, j) is forbidden unless the block of j is the block of i or one of its ancestor blocks;
    E3 is the share of forbidden entries with `|N_ij| > 0.01`, averaged over clients. A client
    without forbidden entries scores 0; a row that was not recovered counts as leaking everywhere.
    Parameters as for `subspace_error`.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> jc.metrics.support_leakage(world.truth(0), jc.recover_fragment(world.client(0)))
    0.0
    """
    return _mean_over_clients(_client_support_leakage, truth, fragment)


def latent_correlation(truth: Any, fragment: Any) -> float:
    """Mean absolute correlation of the latents that `Fragment.transform` gives with the true ones.

    Each label's latent is compared with its own, over the control's population: the correlation
    has no sampling error of its own. A latent that was not recovered scores 0. Parameters as for
    `subspace_error`.

    Returns
    -------
    float
        In [0, 1], averaged over the labels of a client, then over clients.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.random_world(5, 2, 0.8, seed=1, intervention="hard")
    >>> result = jc.recover(world.clients(), interventions="hard")
    >>> truths = [world.truth(k) for k in range(world.n_clients)]
    >>> round(jc.metrics.latent_correlation(truths, result.fragments), 12)
    1.0
    """
    return _mean_over_clients(_client_latent_correlation, truth, fragment)


def _mean_over_clients(
    score: Callable[[Truth, FloatArray], float], truth: Any, fragment: Any
) -> float:
    truths: Sequence[Truth] = [truth] if hasattr(truth, "labels") else list(truth)
    if isinstance(fragment, Mapping):
        found: list[Fragment] = list(fragment.values())
    else:
        found = [fragment] if hasattr(fragment, "labels") else list(fragment)
    by_client = {f.client: f for f in found}
    missing = [t.client for t in truths if t.client not in by_client]
    if missing or not truths:
        named = ", ".join(missing) or "no client"
        raise InputError(f"{named}: nothing to score", "Pass one fragment per truth.")
    return float(np.mean([score(t, _rows(t, by_client[t.client])) for t in truths]))


def _rows(truth: Truth, fragment: Fragment) -> FloatArray:
    """Rows of Q̂ in the order of the truth's labels, at unit norm; nan where not recovered."""
    if fragment.basis is None:
        raise InputError(
            "the fragment has no basis", "Score the fragment at its client.", client=truth.client
        )
    if not set(fragment.labels) <= set(truth.labels):
        raise InputError(
            "the fragment has labels that the truth does not have",
            "Score a fragment against the truth of its own client.",
            client=truth.client,
        )
    rows = np.full((len(truth.labels), fragment.basis.shape[1]), np.nan)
    for i, label in enumerate(truth.labels):
        if label in fragment.labels:
            rows[i] = fragment.basis[fragment.index(label)]
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    found = np.isfinite(norms) & (norms > 0)
    return np.where(found, rows / np.where(found, norms, 1.0), np.nan)


def _client_subspace_error(truth: Truth, rows: FloatArray) -> float:
    errors = []
    for block in truth.blocks:
        chosen = [i for i, label in enumerate(truth.labels) if label in block]
        if np.isnan(rows[chosen]).any():
            errors.append(1.0)
            continue
        gap = _projector(rows[chosen]) - _projector(truth.Q[chosen])
        errors.append(float((gap**2).sum()) / (2 * len(chosen)))
    return float(np.mean(errors))


def _projector(rows: FloatArray) -> FloatArray:
    """The orthogonal projector on the row space."""
    basis = orth(rows.T, rcond=ROW_SPACE_TOLERANCE)
    return np.asarray(basis @ basis.T, dtype=np.float64)


def _client_support_leakage(truth: Truth, rows: FloatArray) -> float:
    block = [truth.block_of(label) for label in truth.labels]
    forbidden = np.array(
        [[bi != bj and not truth.block_order.is_ancestor(bj, bi) for bj in block] for bi in block]
    )
    if not forbidden.any():
        return 0.0
    small = np.abs(rows @ truth.mixing) <= LEAKAGE_THRESHOLD  # false for nan
    return float((forbidden & ~small).sum() / forbidden.sum())


def _client_latent_correlation(truth: Truth, rows: FloatArray) -> float:
    covariance = np.linalg.inv(truth.marginal.precision())
    N = rows @ truth.mixing  # Ẑ = N Z
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.diag(N @ covariance)
        spread = np.einsum("ij,jk,ik->i", N, covariance, N) * np.diag(covariance)
        return float(np.nan_to_num(np.abs(own) / np.sqrt(spread)).mean())


# -- effects and edges from hard interventions ----------------------------------------------------


@dataclass(frozen=True)
class EffectScores(_Counts):
    """How far effects are from the truth, and how often their 95 % intervals hold it.

    Parameters
    ----------
    zero, zero_covered : int
        Ordered pairs with an estimate whose true effect is zero, and how many intervals hold it.
    other, other_covered : int
        The same for pairs with an effect.
    squares : float
        Sum over these pairs of the squared error of `total` in `Result.effects`.
    """

    zero: int = 0
    zero_covered: int = 0
    other: int = 0
    other_covered: int = 0
    squares: float = 0.0

    @property
    def rms(self) -> float:
        """Root mean square error; NaN without pairs."""
        return float(np.sqrt(_ratio(self.squares, self.zero + self.other)))

    @property
    def coverage(self) -> float:
        """Share of intervals that hold the true effect."""
        return _ratio(self.zero_covered + self.other_covered, self.zero + self.other)

    @property
    def coverage_of_zero(self) -> float:
        """The same where there is no effect."""
        return _ratio(self.zero_covered, self.zero)

    @property
    def coverage_of_effects(self) -> float:
        """The same where there is one."""
        return _ratio(self.other_covered, self.other)


@dataclass(frozen=True)
class EdgeCounts(_Counts):
    """How many edges there are, how many are stated as "direct", and how many of these are there.

    Parameters
    ----------
    true, stated, right : int
    undetermined : int
        Ordered pairs with the verdict "undetermined".
    """

    true: int = 0
    stated: int = 0
    right: int = 0
    undetermined: int = 0

    @property
    def f1(self) -> float:
        """`2 right / (true + stated)`; 1 when both are zero."""
        size = self.true + self.stated
        return 2 * self.right / size if size else 1.0


def effect_scores(truth: TrueEffects, order: GlobalOrder) -> EffectScores:
    """Compare the total effects of an order with the truth.

    The direction of a label whose interventions do not shift it is arbitrary; effects of and on
    such a label are compared by their size.

    Parameters
    ----------
    truth : TrueEffects
        `world.effects(order.labels)`.
    order : GlobalOrder

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.random_world(5, 3, 0.8, seed=1, intervention="hard")
    >>> order = jc.recover(world.clients(), interventions="hard").order
    >>> scores = jc.metrics.effect_scores(world.effects(order.labels), order)
    >>> scores.coverage, round(scores.rms, 8)
    (1.0, 0.0)
    """
    _check_labels(truth, order)
    effects = order.effects
    if effects is None:
        return EffectScores()
    known = effects.known & ~np.eye(len(order.labels), dtype=bool)
    by_size = ~(effects.oriented[:, None] & effects.oriented)
    true, estimate = (np.where(by_size, np.abs(x), x) for x in (truth.total, effects.estimate))
    half = INTERVAL * effects.error + ROUNDING
    covered = np.abs(estimate - true) <= half
    total: FloatArray = np.where(order.verdicts == NO, 0.0, estimate)
    zero = truth.total == 0
    return EffectScores(
        zero=int((known & zero).sum()),
        zero_covered=int((known & zero & covered).sum()),
        other=int((known & ~zero).sum()),
        other_covered=int((known & ~zero & covered).sum()),
        squares=float(((total - true)[known] ** 2).sum()),
    )


def edge_counts(truth: TrueEffects, order: GlobalOrder, above: float = 0.0) -> EdgeCounts:
    """Compare the direct edges of an order with those of the truth, given as for `effect_scores`.

    Edges up to the size `above`, in standard deviations, count neither as found nor as missed.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.random_world(5, 3, 0.8, seed=1, intervention="hard")
    >>> order = jc.recover(world.clients(), interventions="hard").order
    >>> jc.metrics.edge_counts(world.effects(order.labels), order).f1
    1.0
    """
    _check_labels(truth, order)
    edge, small = truth.direct != 0, np.abs(truth.direct) <= above
    true = edge & ~small
    direct = order.direct_effects
    if direct is None:
        return EdgeCounts(true=int(true.sum()))
    p = range(len(order.labels))
    verdicts = np.array([[direct.verdict(a, d) for d in p] for a in p])
    stated = (verdicts == "direct") & ~(edge & small)
    return EdgeCounts(
        true=int(true.sum()),
        stated=int(stated.sum()),
        right=int((stated & true).sum()),
        undetermined=int((verdicts == "undetermined").sum()),
    )


def _check_labels(truth: TrueEffects, order: GlobalOrder) -> None:
    if truth.labels != order.labels:
        raise InputError(
            "the true effects are not those of the order's labels",
            "Pass world.effects(order.labels).",
        )


def _ratio(part: float, whole: int) -> float:
    return part / whole if whole else float("nan")
