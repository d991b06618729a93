"""The design of the next experiment: a new site, more rows, or other interventions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jigsaw_crl.assembly.design import Proposal, propose
from jigsaw_crl.assembly.effect_design import EffectNeed, effect_needs
from jigsaw_crl.assembly.more_rows import MoreRows, more_rows
from jigsaw_crl.assembly.site_search import Pair
from jigsaw_crl.base.frozen import FrozenMapping
from jigsaw_crl.base.text import pluralise

if TYPE_CHECKING:
    import pandas as pd

    from jigsaw_crl.assembly import GlobalOrder

__all__ = ["Design", "design"]


@dataclass(frozen=True)
class Design:
    """What further data would settle: by a new site, by more rows, and for effects.

    Returned by `Result.design`.

    Parameters
    ----------
    proposal : Proposal
        The new site.
    chances : mapping of (str, str) to float
        The chance that it settles each open pair.
    more_rows : tuple of MoreRows
        One per open pair: the site and the rows that would settle it, or why none would. Empty
        from exact moments.
    effects : tuple of EffectNeed
        One per effect that the order does not exclude; empty without hard interventions.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> design = jc.recover([world.client(0), world.client(4)]).design()
    >>> sorted(design.to_frame().columns)[:3]
    ['ancestor', 'chance_new_site', 'descendant']
    """

    proposal: Proposal
    chances: Mapping[Pair, float] = field(default_factory=dict)
    more_rows: tuple[MoreRows, ...] = ()
    effects: tuple[EffectNeed, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "chances", FrozenMapping(self.chances))

    def to_frame(self) -> pd.DataFrame:
        """One row per open pair, the likeliest to be settled by the new site first.

        Columns: ancestor, descendant, chance_new_site, site (where more rows help), rows (per
        regime, now), rows_even and rows_good (at which the chance is one half and four fifths),
        reason (why more rows do not help).
        """
        import pandas as pd  # here for start-up time

        needs = {(m.ancestor, m.descendant): m for m in self.more_rows}
        columns = ["ancestor", "descendant", "chance_new_site", "site", "rows"]
        columns += ["rows_even", "rows_good", "reason"]
        found = []
        for pair in sorted(self.chances, key=lambda pair: -self.chances[pair]):
            m = needs.get(pair, MoreRows(*pair, None, None, None, None))
            found.append((*pair, self.chances[pair], m.site, m.rows, m.even, m.good, m.reason))
        frame = pd.DataFrame(found, columns=columns)
        whole = dict.fromkeys(("rows", "rows_even", "rows_good"), "Int64")
        return frame.astype(whole)

    def effects_frame(self) -> pd.DataFrame:
        """One row per effect that the order does not exclude; columns as in `EffectNeed`."""
        import pandas as pd  # here for start-up time

        names = list(EffectNeed.__dataclass_fields__)
        frame = pd.DataFrame([[getattr(e, n) for n in names] for e in self.effects], columns=names)
        numbers = ("total", "error", "error_new_site", "error_more_rows", "factor")
        return frame.astype(dict.fromkeys(numbers, float))

    def __str__(self) -> str:
        lines = [str(self.proposal)]
        if self.proposal.reason:
            lines.append(f"Size: {self.proposal.reason}.")
        helped = [m for m in self.more_rows if m.site is not None]
        if helped:
            lines.append(
                f"More rows at existing sites may settle {pluralise(len(helped), 'open pair')}."
            )
        missing = sum(bool(e.missing) for e in self.effects)
        if missing:
            lines.append(f"More rows are not enough for {pluralise(missing, 'effect')}.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"Design(new site with {pluralise(len(self.proposal.labels), 'label')}, expected to "
            f"settle {self.proposal.expected:.1f} of {self.proposal.undetermined} open pairs; "
            f"{sum(m.site is not None for m in self.more_rows)} may be settled by more rows; "
            f"{pluralise(len(self.effects), 'effect')})"
        )


def design(
    order: GlobalOrder, size: int | None = None, *, rows: int | None = None, seed: int = 0
) -> Design:
    """What further data would settle; parameters as for `next_client`."""
    proposal, chances = propose(order, size, rows, seed)
    needs = effect_needs(order, proposal.labels, rows=proposal.rows)
    return Design(proposal, chances, more_rows(order, seed=seed), needs)
