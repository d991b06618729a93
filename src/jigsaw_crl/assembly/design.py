"""Which latents should the next client access?

`site_search` finds the labels and the chances. Without a size, labels are added as long as the
expected number of settled pairs per label grows, up to the size of the largest client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jigsaw_crl.assembly.site_search import Pair, SiteSearch
from jigsaw_crl.base.errors import InputError

if TYPE_CHECKING:
    from jigsaw_crl.assembly import GlobalOrder

__all__ = ["Proposal", "next_client", "propose"]

# A pair is settled more likely than not above LIKELY, and cannot be settled below UNLIKELY.
LIKELY, UNLIKELY = 0.5, 0.05


@dataclass(frozen=True)
class Proposal:
    """What the next client should access, and what it is expected to settle.

    Parameters
    ----------
    labels : tuple of str
        Sorted; empty if nothing is undetermined.
    expected_gain : float
        Uncertainty about ordered pairs that the client is expected to remove, in bits.
    settles : tuple of (str, str)
        Undetermined pairs (ancestor?, descendant?) that it settles with probability above ½.
    chances : tuple of float
        The probability that each of `settles` is settled.
    cannot : tuple of (str, str)
        Undetermined pairs that it cannot settle: not accessed, or almost surely in one district.
    undetermined : int
        Number of ordered pairs that are open now.
    expected : float
        Expected number of open pairs that it settles, those that others imply included.
    rows : int or None
        Rows per regime that the chances hold for; None for exact moments.
    reason : str
        Why so many labels.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> order = jc.recover([world.client(0), world.client(4)]).order
    >>> proposal = jc.next_client(order, size=3)
    >>> len(proposal.labels), proposal.undetermined == len(order.undetermined())
    (3, True)
    """

    labels: tuple[str, ...]
    expected_gain: float
    settles: tuple[Pair, ...]
    chances: tuple[float, ...]
    cannot: tuple[Pair, ...]
    undetermined: int
    expected: float = 0.0
    rows: int | None = None
    reason: str = ""

    def __str__(self) -> str:
        if not self.undetermined:
            return "Nothing is undetermined: no further client is needed."
        return (
            f"Next client: {', '.join(self.labels)}. Expected to settle {self.expected:.1f} of "
            f"{self.undetermined} open pairs ({self.expected_gain:.1f} bits)"
            f"{'' if self.rows is None else f' with {self.rows:,} rows per regime'}; it cannot "
            f"settle {len(self.cannot)} of them."
        )


def next_client(
    order: GlobalOrder, size: int | None = None, *, rows: int | None = None, seed: int = 0
) -> Proposal:
    """The labels that a client should access to settle the most.

    Parameters
    ----------
    order : GlobalOrder
    size : int, optional
        How many latents the client can access; at least 2. All labels are proposed if there are
        fewer. By default as many as pay: see `Proposal.reason`.
    rows : int, optional
        Rows per regime of the client; by default as many as a typical client of the study has.
    seed : int

    Returns
    -------
    Proposal

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl import Fragment, PartialOrder, assemble
    >>> from jigsaw_crl.assembly.design import next_client
    >>> from jigsaw_crl.fragment.fragment import Statements
    >>> def client(name, a, d):
    ...     blocks = (frozenset([a]), frozenset([d]))
    ...     return Fragment(name, "null-cone", (a, d), blocks,
    ...                     PartialOrder.from_pairs(blocks, [blocks]), blocks,
    ...                     statements=Statements(np.array([[0, 1], [0, 0]])))
    >>> order = assemble([client("lab-1", "pump", "flow"), client("lab-2", "valve", "flow")])
    >>> next_client(order, size=2).labels
    ('pump', 'valve')
    """
    return propose(order, size, rows, seed)[0]


def propose(
    order: GlobalOrder, size: int | None, rows: int | None, seed: int
) -> tuple[Proposal, dict[Pair, float]]:
    """The proposal, and the chance that it settles each open pair: see `next_client`."""
    if size is not None and (
        isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 2
    ):
        raise InputError(
            f"a client of {size!r} latent{'' if size == 1 else 's'} settles nothing",
            "Ask for two latents or more.",
        )
    search = SiteSearch.of(order, rows, seed)
    if search is None:
        return Proposal((), 0.0, (), (), (), 0), {}
    largest = max(len(f.labels) for f in order.fragments)
    most = min(int(size) if size is not None else max(largest, 2), len(order.labels))
    chosen, reason = search.choose(most, fixed=size is not None)
    chances = search.chances(chosen)
    labels = tuple(order.labels[i] for i in np.flatnonzero(chosen))
    ranked = sorted(chances, key=lambda pair: -chances[pair])
    likely = [pair for pair in ranked if chances[pair] > LIKELY and set(pair) <= set(labels)]
    proposal = Proposal(
        labels=labels,
        expected_gain=float(search.gains(chosen, search.worth)[0]),
        settles=tuple(likely),
        chances=tuple(chances[pair] for pair in likely),
        cannot=tuple(pair for pair, chance in chances.items() if chance < UNLIKELY),
        undetermined=len(chances),
        expected=round(sum(chances.values()), 2),
        rows=search.rows,
        reason=reason,
    )
    return proposal, chances
