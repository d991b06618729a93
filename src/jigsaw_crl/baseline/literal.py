"""Algorithms 1 to 4 of the paper, line by line; read it with the paper open.

Each function of the first table is one algorithm under the paper's own name. Variables are the
paper's symbols, and the comment at the end of a line is the line number that the paper prints.
Numbers that do not appear are ends of loops and the counter t.

============================  ==================================================================
`id_block_ancestor`           Algorithm 1, ID-Block-Ancestor
`id_block_causal_order`       Algorithm 2, ID-Block-Causal-Order
`id_global_causal_order`      Algorithm 3, ID-Global-Causal-Order
`block_rq`                    Algorithm 4, Block-RQ decomposition (appendix)
`id_block_ancestor_fs`        Algorithm 1-FS, ID-Block-Ancestor-FS (appendix)
`id_block_causal_order_fs`    Algorithm 2-FS, ID-Block-Causal-Order-FS (appendix)
============================  ==================================================================

=============  =================================================================================
in the code    in the paper
=============  =================================================================================
`Theta`        {Θ⁽ʲ⁾ : j ∈ {0} ∪ J}: a mapping; key 0 holds the control's precision
`C`, `B`       blocks: tuples of labels
`I`, `A`, `R`  ℐ, 𝒜 and R: lists of blocks, and the labels that no block holds yet
`q`            {q̂_i}: a mapping from label to a vector of length n_k
`W`            rows q̂ one above the other; stands for the space ⟨q̂⟩
`prec`         ≺: pairs `(C, B)` with C ≺ B, which means that B is a block *ancestor* of C
=============  =================================================================================

All label sets of a size are tried, up to `2^m − 1` sets for m labels. Use it to check and to
understand; `jigsaw_crl.baseline.recover_fragment` is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError

Block = tuple[str, ...]
Rows = Mapping[str, FloatArray]
Precisions = Mapping[str | int, FloatArray]
Order = set[tuple[Block, Block]]
Search = Callable[[Sequence[str], FloatArray, Precisions, float], Block]

# Exact moments: a singular value counts as zero below SAFETY · n_k · eps · κ · ‖Θ⁽ʲ⁾‖, where κ is
# the condition number of Θ⁽ʲ⁾. The factor covers the errors of q̂ from earlier blocks: on 11,000
# random clients of up to 8 latents, factors from 64 to 1024 gave the true blocks every time.
SAFETY = 128.0


# -- notation -------------------------------------------------------------------------------------


def stacked(Theta: Precisions, C: Block) -> FloatArray:
    """M̃(C): the changes Θ⁽ʲ⁾ − Θ⁽⁰⁾ of j ∈ C, one above the other.

    A label that was applied at several strengths may have a stack of matrices.
    """
    return np.concatenate([(Theta[j] - Theta[0]).reshape(-1, len(Theta[0])) for j in C])


def rows(q: Rows, blocks: Sequence[Block], n: int) -> FloatArray:
    """W: the rows q̂_i of all labels in `blocks`, shape (number of labels, n)."""
    return np.vstack([np.zeros((0, n)), *(q[i] for B in blocks for i in B)])


def off(M: FloatArray, W: FloatArray) -> FloatArray:
    """M (I − Wᵀ(WWᵀ)⁻¹W): the rows of M without their part in the row space of W."""
    # The pseudo-inverse of W is Wᵀ(WWᵀ)⁻¹, with fewer rounding errors.
    return np.asarray(M - M @ np.linalg.pinv(W) @ W)


def P(C: Block, W: FloatArray, Theta: Precisions) -> FloatArray:
    """𝒫(C; W): orthonormal rows that span what is left of the changes of C without W."""
    _, sigma, right = np.linalg.svd(off(stacked(Theta, C), W))
    basis: FloatArray = right[: np.count_nonzero(sigma > rounding(Theta, C))]
    return basis


def rounding(Theta: Precisions, C: Block) -> float:
    """Bound on the rounding error in M̃(C); `Theta` holds all p_k labels of the client."""
    p = len(Theta) - 1
    regimes: tuple[str | int, ...] = (0, *C)
    sigma = [np.linalg.svd(Theta[j], compute_uv=False) for j in regimes]
    largest = max(s[0] * s[0] / s[p - 1] for s in sigma)  # κ‖Θ⁽ʲ⁾‖, where Θ⁽ʲ⁾ has rank p_k
    return float(SAFETY * len(Theta[0]) * np.finfo(np.float64).eps * largest)


def rho(M: FloatArray, r: int) -> float:
    """ρ_r(M): the share of the r largest singular values in the sum of all; 1 if M is zero."""
    sigma = np.linalg.svd(M, compute_uv=False)
    return float(sigma[:r].sum() / sigma.sum()) if sigma.any() else 1.0


# -- exact moments --------------------------------------------------------------------------------


def id_block_ancestor(
    C: Block, Theta: Precisions, I: Sequence[Block], q: Rows
) -> tuple[dict[str, FloatArray], list[Block]]:
    """Algorithm 1: takes a new block C and the earlier blocks ℐ; returns {q̂_i : i ∈ C} and 𝒜.

    𝒜 contains all parent blocks of C and no block that is not an ancestor. It may miss an ancestor
    when rows of H are orthogonal; line 9 then leaves a part of that ancestor's direction in q̂.
    """
    n = len(Theta[0])
    A = list(I)  # 1
    for B in I:  # 2
        W = rows(q, [b for b in I if b != B], n)  # 3
        V = P(C, W, Theta)  # 4
        if len(V) == len(C):  # 5
            A.remove(B)  # 6
    W = rows(q, A, n)  # 9
    V = P(C, W, Theta)  # 9
    return dict(zip(C, V, strict=True)), A  # 10, 11


def id_block_causal_order(Theta: Precisions) -> tuple[list[Block], Order, FloatArray]:
    """Algorithm 2: takes exact precisions; returns the blocks Ĉ_k, their order ≺ and Q̂_k.

    Blocks are newest first, and the rows of Q̂_k follow them: the labels of the first block, then
    those of the second, and so on. Raises an `InputError` where the printed loop would not end.
    """
    I: list[Block] = []  # 1
    R = [j for j in Theta if isinstance(j, str)]  # 1
    q: dict[str, FloatArray] = {}
    n = len(Theta[0])
    Q = np.zeros((0, n))  # 1
    prec: Order = set()
    while R:  # 2
        r, flag = 1, True  # 3
        while flag:  # 4
            W = rows(q, I, n)  # 5
            sets = list(combinations(R, r))  # 6
            tight = [C for C in sets if len(P(C, W, Theta)) == r]  # 7
            if tight:
                C, flag = tight[0], False  # 8
            else:
                r = r + 1  # 10
                _check_size(r, R)
        q_C, A = id_block_ancestor(C, Theta, I, q)  # 13
        prec |= {(C, B) for B in _with_ancestors(A, prec)}  # 14
        Q = np.vstack([*q_C.values(), Q])  # 15
        q |= q_C
        I = [C, *I]  # 16
        R = [j for j in R if j not in C]  # 17
    return I, prec, Q  # 20, 21


def id_global_causal_order(
    clients: Iterable[tuple[Sequence[Block], Order]],
) -> set[tuple[str, str]]:
    """Algorithm 3: takes every client's blocks and order; returns all pairs (i, j) with i ≺ j.

    In each pair, j is an ancestor of i. Contradictory clients lead to pairs in both directions.
    """
    relation: set[tuple[str, str]] = set()  # 1
    for blocks, prec in clients:  # 2
        for C_i, C_j in prec:  # 3
            between = [C for C in blocks if (C_i, C) in prec and (C, C_j) in prec]
            if len(C_i) == len(C_j) == 1 and not between:  # 3: C_j is a block-level parent of C_i
                relation.add((C_i[0], C_j[0]))  # 4
    while True:  # 6
        longer = {(i, k) for i, j in relation for j_, k in relation if j == j_}
        if longer <= relation:
            return relation  # 7
        relation = relation | longer


def block_rq(
    H: FloatArray, blocks: Sequence[Sequence[int]], anc: Sequence[Sequence[int]]
) -> tuple[FloatArray, FloatArray]:
    """Algorithm 4: takes H and the block order; returns R and Q with H = R Q.

    It defines the true Q; a learner does not know H. `blocks` lists the rows of H in each block,
    ancestors first, and `anc[l]` the rows in all ancestor blocks of block l.
    """
    R, Q = np.zeros((len(H), len(H))), np.zeros(H.shape)  # 1
    for C, above in zip(blocks, anc, strict=True):  # 2
        own = H[list(C)]  # 3
        W = Q[list(above)]  # 4
        innovation = off(own, W)  # 5 to 9
        Q[list(C)] = innovation / np.linalg.norm(innovation, axis=1, keepdims=True)  # 10
        J = [*C, *above]  # 11
        R[np.ix_(list(C), J)] = own @ np.linalg.pinv(Q[J])  # 12; line 13 leaves zeros elsewhere
    return R, Q  # 15


# -- estimates ------------------------------------------------------------------------------------


def id_block_ancestor_fs(
    C: Block, Theta: Precisions, I: Sequence[Block], q: Rows, tau: float
) -> tuple[dict[str, FloatArray], list[Block]]:
    """Algorithm 1-FS: takes and returns the same as Algorithm 1, from estimates and τ.

    A ratio of singular values above 1 − τ takes the place of the equality of dimensions.
    """
    n = len(Theta[0])
    A = list(I)  # 1
    M_C = stacked(Theta, C)  # 2
    for B in I:  # 3
        W = rows(q, [b for b in I if b != B], n)  # 4
        M = off(M_C, W)  # 5
        if rho(M, len(C)) > 1 - tau:  # 6, 7: strictly greater, unlike line 12 of Algorithm 2-FS
            A.remove(B)  # 8
    W = rows(q, A, n)  # 11
    M = off(M_C, W)  # 12
    right = np.linalg.svd(M)[2]
    return dict(zip(C, right[: len(C)], strict=True)), A  # 13, 14


def largest_ratio(R: Sequence[str], W: FloatArray, Theta: Precisions, tau: float) -> Block:
    """Lines 3 to 17 of Algorithm 2-FS: the next block, of as few labels as possible."""
    r = 1  # 3
    while True:  # 4
        sets = list(combinations(R, r))  # 6
        ratio = {C: rho(off(stacked(Theta, C), W), r) for C in sets}  # 7 to 11
        C = max(sets, key=ratio.__getitem__)
        if ratio[C] >= 1 - tau:  # 12
            return C  # 13, 14
        r = r + 1  # 16
        _check_size(r, R)


def id_block_causal_order_fs(
    Theta: Precisions, tau: float, search: Search = largest_ratio
) -> tuple[list[Block], Order, FloatArray]:
    """Algorithm 2-FS: takes estimated precisions and τ; returns the same as Algorithm 2.

    `search` does lines 3 to 17. The printed one tries all sets; `baseline.search` has a faster one.
    """
    I: list[Block] = []  # 1
    R = [j for j in Theta if isinstance(j, str)]  # 1
    q: dict[str, FloatArray] = {}
    n = len(Theta[0])
    Q = np.zeros((0, n))  # 1
    prec: Order = set()
    while R:  # 2
        W = rows(q, I, n)  # 5: it does not change while r grows
        C = search(R, W, Theta, tau)  # 3 to 17
        q_C, A = id_block_ancestor_fs(C, Theta, I, q, tau)  # 19
        prec |= {(C, B) for B in _with_ancestors(A, prec)}  # 20
        Q = np.vstack([*q_C.values(), Q])  # 21
        q |= q_C
        I, R = [C, *I], [j for j in R if j not in C]  # 22
    return I, prec, Q  # 24, 25


def _with_ancestors(A: Sequence[Block], prec: Order) -> set[Block]:
    """Every block C′ with C̃ ≼ C′ for some C̃ ∈ 𝒜."""
    return set(A) | {above for below, above in prec if below in A}


def _check_size(r: int, R: Sequence[str]) -> None:
    """Raises an `InputError` when no set of r labels is left, where the paper's loop runs on."""
    if r > len(R):
        raise InputError(
            f"no set of the labels {', '.join(R)} changes as many directions as it has labels",
            "Check that every label intervenes on a latent of its own.",
        )
