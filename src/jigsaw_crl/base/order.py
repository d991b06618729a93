"""Strict partial orders: which element is an ancestor of which.

An order on `m` elements is held as a read-only boolean matrix `R` with `R[a, d]` true when element
`a` is a (strict) ancestor of element `d`; it is always transitively closed and free of cycles.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from jigsaw_crl.base.arrays import ArrayLike, BoolArray, FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.frozen import ReadOnlyArrays
from jigsaw_crl.base.text import did_you_mean, few, pluralise

T = TypeVar("T", bound=Hashable)


class CycleError(InputError):
    """The relation has a cycle, so it is not a strict order."""


# Products of relations on more elements than LARGE, one of which holds for fewer than one pair in
# RARELY, take a third of the time if only its pairs are visited (1,000 elements).
LARGE, RARELY = 300, 20


def transitive_closure(relation: ArrayLike) -> BoolArray:
    """Smallest transitive relation that contains `relation`, shape (m, m)."""
    # Repeated squaring: log₂ m products, or one if the relation is closed already.
    reach = np.asarray(relation, dtype=bool)
    while True:
        longer = reach | boolean_product(reach, reach)
        if np.array_equal(longer, reach):
            return longer
        reach = longer


def boolean_product(left: BoolArray, right: BoolArray) -> BoolArray:
    """`product[i, j]`: some k has `left[i, k]` and `right[k, j]`."""
    # float32 counts are exact here (at most m < 2**24) and use the BLAS.
    if left.ndim == 2 and len(left) > LARGE:
        from scipy.sparse import csr_array  # here for start-up time

        if np.count_nonzero(left) * RARELY < left.size:
            # Not from the matrix itself, which is searched for its pairs ten times more slowly.
            row, column = np.divmod(np.flatnonzero(left), left.shape[1])
            starts = np.searchsorted(row, np.arange(len(left) + 1))
            pairs = np.ones(len(row), dtype=np.float32), column, starts
            sparse = csr_array(pairs, shape=left.shape)
            return np.asarray(sparse @ right.astype(np.float32) > 0.5)
        if np.count_nonzero(right) * RARELY < right.size:
            return boolean_product(right.T, left.T).T
    return np.asarray(left.astype(np.float32) @ right.astype(np.float32) > 0.5)


def cover_matrix(closed: BoolArray) -> BoolArray:
    """`cover[a, d]`: a is an ancestor of d in a closed relation, with nothing strictly between."""
    return np.asarray(closed & ~boolean_product(closed, closed))


def greedy_order(weight: FloatArray) -> BoolArray:
    """A closed order grown from the pairs with positive weight, largest weight first.

    A pair is added together with the pairs its transitive closure adds, if that makes no cycle and
    their weights sum to more than zero. Weights are finite, of shape (p, p).
    """
    p = len(weight)
    # Every label counts as above and below itself here.
    up, down = np.eye(p, dtype=bool), np.eye(p, dtype=bool)
    positive = np.flatnonzero(weight > 0)
    positive = positive[np.argsort(-weight.ravel()[positive], kind="stable")]
    for a, d in zip(*(x.tolist() for x in np.divmod(positive, p)), strict=True):
        if up[a, d] or up[d, a]:
            continue
        above, below = np.flatnonzero(down[a])[:, None], np.flatnonzero(up[d])
        missing = ~up[above, below]
        if missing.size == 1 or weight[above, below][missing].sum() > 0:
            up[above, below] = True
            down[below[:, None], above.T] = True
    np.fill_diagonal(up, False)
    return up


def refuted(order: BoolArray, denied: BoolArray) -> BoolArray:
    """Pairs that cannot be added to a closed `order` in which the pairs `denied` are known false.

    With P = order ∨ I they are Pᵀ (denied ∨ orderᵀ ∨ I) Pᵀ: adding (a, d) would make some u, equal
    to a or above it, an ancestor of some v, equal to d or below it, which is known to be false.
    """
    eye = np.eye(len(order), dtype=bool)
    P = order | eye
    return boolean_product(P.T, boolean_product(denied | order.T | eye, P.T))


def strongly_connected(relation: ArrayLike) -> list[list[int]]:
    """Strongly connected components, each sorted, ordered by their smallest member."""
    reach = transitive_closure(relation)
    mutual = reach & reach.T
    np.fill_diagonal(mutual, True)
    return equivalence_classes(mutual)


def equivalence_classes(mutual: BoolArray) -> list[list[int]]:
    """Classes of an equivalence relation, each sorted, ordered by their smallest member."""
    classes: dict[int, list[int]] = {}
    for i, smallest in enumerate(mutual.argmax(axis=1).tolist() if mutual.size else ()):
        classes.setdefault(smallest, []).append(i)
    return list(classes.values())


@dataclass(frozen=True, eq=False)
class PartialOrder(ReadOnlyArrays, Generic[T]):
    """A strict partial order on named elements.

    Build one with `PartialOrder.from_pairs` or `PartialOrder.from_matrix`; both take the
    transitive closure and raise `CycleError` when it is not irreflexive.

    Parameters
    ----------
    elements : tuple
        The elements; any hashable.
    matrix : array of bool, shape (m, m)
        `matrix[a, d]`: `elements[a]` is an ancestor of `elements[d]`. Closed and irreflexive.

    Examples
    --------
    >>> from jigsaw_crl.base.order import PartialOrder
    >>> order = PartialOrder.from_pairs("abc", [("a", "b"), ("b", "c")])
    >>> order.is_ancestor("a", "c")
    True
    >>> sorted(order.covers())
    [('a', 'b'), ('b', 'c')]
    """

    elements: tuple[T, ...]
    matrix: BoolArray

    @classmethod
    def from_matrix(cls, elements: Iterable[T], matrix: ArrayLike) -> PartialOrder[T]:
        names = tuple(elements)
        given = np.asarray(matrix, dtype=bool)
        if given.shape != (len(names), len(names)):
            wrong = f"an order on {pluralise(len(names), 'element')} got a matrix of shape "
            raise InputError(f"{wrong}{given.shape}", "Pass one row and one column per element.")
        if len(set(names)) != len(names):
            raise InputError("an order names an element twice", "Give each element one name.")
        closed = transitive_closure(given)
        on_cycle = np.flatnonzero(np.diagonal(closed))
        if on_cycle.size:
            cycle = ", ".join(sorted(str(names[i]) for i in on_cycle))
            raise CycleError(
                f"the relation has a cycle through {cycle}",
                "Remove a relation, or assemble with a method that weighs contradictions.",
            )
        closed.flags.writeable = False
        return cls(names, closed)

    @classmethod
    def from_pairs(cls, elements: Iterable[T], pairs: Iterable[tuple[T, T]]) -> PartialOrder[T]:
        """The closure of `(ancestor, descendant)` pairs."""
        names = tuple(elements)
        matrix = np.zeros((len(names), len(names)), dtype=bool)
        unordered = cls(names, matrix)
        for ancestor, descendant in pairs:
            matrix[unordered.index(ancestor), unordered.index(descendant)] = True
        return cls.from_matrix(names, matrix)

    @cached_property
    def _position(self) -> dict[T, int]:
        return {name: i for i, name in enumerate(self.elements)}

    def index(self, element: T) -> int:
        """Position of `element`; an `InputError` when it is unknown."""
        try:
            return self._position[element]
        except (KeyError, TypeError):  # unknown, or not hashable
            near = did_you_mean(element, self.elements)
            raise InputError(
                f"{element!r} is not an element of the order",
                f"Its elements are {few(self.elements)}. {near}".strip(),
            ) from None

    def is_ancestor(self, ancestor: T, descendant: T) -> bool:
        return bool(self.matrix[self.index(ancestor), self.index(descendant)])

    def ancestors(self, element: T) -> frozenset[T]:
        return frozenset(
            self.elements[i] for i in np.flatnonzero(self.matrix[:, self.index(element)])
        )

    def descendants(self, element: T) -> frozenset[T]:
        return frozenset(self.elements[i] for i in np.flatnonzero(self.matrix[self.index(element)]))

    def pairs(self) -> frozenset[tuple[T, T]]:
        """Every `(ancestor, descendant)` pair."""
        return self._named(self.matrix)

    @cached_property
    def cover_matrix(self) -> BoolArray:
        """`cover[a, d]`: a is an ancestor of d with nothing strictly between."""
        cover = cover_matrix(self.matrix)
        cover.flags.writeable = False
        return cover

    def covers(self) -> frozenset[tuple[T, T]]:
        """Pairs of the Hasse diagram: `(ancestor, descendant)` with nothing strictly between."""
        return self._named(self.cover_matrix)

    def _named(self, matrix: BoolArray) -> frozenset[tuple[T, T]]:
        return frozenset(
            (self.elements[a], self.elements[d]) for a, d in zip(*np.nonzero(matrix), strict=True)
        )

    def restrict(self, elements: Iterable[T]) -> PartialOrder[T]:
        """The order restricted to some of its elements."""
        kept = tuple(elements)
        chosen = [self.index(e) for e in kept]
        return PartialOrder.from_matrix(kept, self.matrix[np.ix_(chosen, chosen)])

    def topological(self) -> tuple[T, ...]:
        """Elements with ancestors first."""
        return tuple(self.elements[i] for i in np.argsort(self.matrix.sum(axis=0), kind="stable"))

    def __len__(self) -> int:
        return len(self.elements)

    def __eq__(self, other: object) -> bool:
        """Orders are equal if they have the same elements and the same pairs."""
        if not isinstance(other, PartialOrder):
            return NotImplemented
        return set(self.elements) == set(other.elements) and self.pairs() == other.pairs()

    def __hash__(self) -> int:
        return hash((frozenset(self.elements), self.pairs()))

    def __repr__(self) -> str:
        return (
            f"PartialOrder({pluralise(len(self.elements), 'element')}, "
            f"{pluralise(int(self.matrix.sum()), 'pair')})"
        )
