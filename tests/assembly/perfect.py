"""The fragment of a client without errors, for judging assembly alone."""

import numpy as np

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.order import strongly_connected
from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES, Fragment, Statements
from jigsaw_crl.truth.simulate.views import Truth


def perfect_fragment(truth: Truth, *, inside: bool = True) -> Fragment:
    """The statements that exact moments allow about one client, taken from the truth.

    Across districts, ancestry is known for every pair. Inside a district, let j and l be labels
    without a bidirected edge between them. Exact moments tell whether {l} ∪ spouses(l) contains an
    ancestor of j, and the same for l with those spouses of j that touch l's bidirected component
    among the non-spouses of j.
    """
    labels = truth.labels
    p = len(labels)
    position = {label: i for i, label in enumerate(labels)}
    ancestor = truth.order.restrict(labels).matrix
    spouse = np.zeros((p, p), dtype=bool)
    for pair in truth.spouses:
        i, j = (position[label] for label in pair)
        spouse[i, j] = spouse[j, i] = True
    says = np.where(ancestor, YES, NO).astype(np.int8)
    district = [sorted(position[label] for label in d) for d in truth.districts]
    for members in district:
        says[np.ix_(members, members)] = CANNOT_SAY
    np.fill_diagonal(says, NO)
    one_of: set[tuple[frozenset[str], str]] = set()
    for members in district if inside else []:
        for j in members:
            for candidates in _sets(j, members, spouse):
                if not ancestor[candidates, j].any():
                    says[candidates, j] = NO
                elif len(candidates) == 1:
                    says[candidates, j] = YES
                else:
                    one_of.add((frozenset(labels[c] for c in candidates), labels[j]))
    return Fragment(
        client=truth.client,
        method="null-cone",
        labels=labels,
        blocks=truth.blocks,
        block_order=truth.block_order,
        districts=truth.districts,
        statements=Statements(
            says, tuple(sorted(one_of, key=lambda item: (sorted(item[0]), item[1]))), truth.spouses
        ),
    )


def _sets(j: int, members: list[int], spouse: BoolArray) -> list[list[int]]:
    """Sets of labels about which exact moments tell whether one is an ancestor of j."""
    far = [l for l in members if l != j and not spouse[l, j]]
    if not far:
        return []
    out = []
    for component in strongly_connected(spouse[np.ix_(far, far)]):
        inside = [far[c] for c in component]
        touching = [s for s in np.flatnonzero(spouse[:, j]).tolist() if spouse[s, inside].any()]
        for l in inside:
            out.append([l, *(s for s in np.flatnonzero(spouse[:, l]).tolist() if s != j)])
            out.append([l, *touching])
    return out
