"""Algorithm 3, ID-Global-Causal-Order: one order from the blocks of all clients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.order import strongly_connected, transitive_closure
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["PaperOrder", "assemble_pairs"]


@dataclass(frozen=True)
class PaperOrder:
    """The output of Algorithm 3.

    Parameters
    ----------
    labels : tuple of str
        Every label of every fragment, sorted.
    pairs : frozenset of (str, str)
        Every `(ancestor, descendant)` pair of the transitive closure, without pairs of a label
        with itself.
    cyclic : tuple of frozenset of str
        Sets of labels that lie on a cycle of the clients' relations; `pairs` then holds both
        directions between any two labels of a set. Empty when the relation is an order.
    """

    labels: tuple[str, ...]
    pairs: frozenset[tuple[str, str]]
    cyclic: tuple[frozenset[str], ...] = ()

    @property
    def is_order(self) -> bool:
        """Whether the relation has no cycle."""
        return not self.cyclic


def assemble_pairs(fragments: Iterable[Fragment]) -> PaperOrder:
    """The transitive closure of all parent relations between singleton blocks: Algorithm 3.

    Only block-level parents are used. Other ancestor relations between singleton blocks need not
    hold between the nodes: the path may pass through a block whose nodes share confounders only.

    Parameters
    ----------
    fragments : iterable of Fragment
        Of any method; only blocks and block order are used.

    Returns
    -------
    PaperOrder

    Examples
    --------
    >>> from jigsaw_crl import Fragment, PartialOrder
    >>> from jigsaw_crl.baseline import assemble_pairs
    >>> def chain(client, *labels):
    ...     blocks = tuple(frozenset({x}) for x in labels)
    ...     order = PartialOrder.from_pairs(blocks, zip(blocks, blocks[1:]))
    ...     return Fragment(client, "paper", labels, blocks, order)
    >>> order = assemble_pairs([chain("lab-1", "pump", "valve"), chain("lab-2", "valve", "fan")])
    >>> sorted(order.pairs)
    [('pump', 'fan'), ('pump', 'valve'), ('valve', 'fan')]
    >>> cyclic = assemble_pairs([chain("lab-1", "pump", "fan"), chain("lab-2", "fan", "pump")])
    >>> [sorted(labels) for labels in cyclic.cyclic]
    [['fan', 'pump']]
    """
    given = tuple(fragments)
    if not given:
        raise InputError("there is no fragment to assemble", "Pass at least one.")
    # Sorted, so that the result does not depend on the order of the fragments.
    labels = tuple(sorted({label for fragment in given for label in fragment.labels}))
    position = {label: i for i, label in enumerate(labels)}
    relation = np.zeros((len(labels), len(labels)), dtype=bool)  # line 1: ≺̃ ← ∅
    for fragment in given:  # line 2
        for ancestor, descendant in fragment.block_order.covers():  # line 3: parents ...
            if len(ancestor) == len(descendant) == 1:  # ... between singletons
                (j,), (i,) = ancestor, descendant
                relation[position[j], position[i]] = True  # line 4: j is an ancestor of i
    closed = transitive_closure(relation)  # line 6
    cyclic = tuple(
        frozenset(labels[i] for i in members)
        for members in strongly_connected(relation)
        if len(members) > 1
    )
    np.fill_diagonal(closed, False)
    pairs = frozenset((labels[a], labels[d]) for a, d in np.argwhere(closed).tolist())
    return PaperOrder(labels, pairs, cyclic)  # line 7
