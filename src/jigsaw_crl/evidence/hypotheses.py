"""What may be true of a pair of targets i and j, as a table of named rows.

The data of a pair are three statistics with a known sampling covariance C:

    g = (⟨q_i, q_j⟩, ⟨q_i, c_j⟩, ⟨c_i, q_j⟩) .

A hypothesis says which of them may differ from zero, and by how much: a component with scales
`v = (v₁, v₂, v₃)` has the density `N(g; 0, C + diag(v²))`, and a hypothesis is a weighted sum of
components. The scales of ⟨q_i, c_j⟩ and ⟨c_i, q_j⟩ are in units of the length of c_j and of c_i.
Where c does not stand out from noise, its length counts as half the lower quartile of those that
do: an ancestor's effect is then as small as it can be without being seen.

A target may be read in several ways (`mixture.Statistics`). In a reading with c_j = 0, i cannot be
an ancestor of j; hypotheses with `free="j"` use readings in which c_j is free.

To add a hypothesis, or a component of one, add a row to `HYPOTHESES`; nothing else changes.

Examples
--------
>>> from jigsaw_crl.evidence.hypotheses import HYPOTHESES
>>> print(HYPOTHESES)  # doctest: +ELLIPSIS
hypothesis          <q_i,q_j>   <q_i,c_j>   <c_i,q_j>   weight  c is free
unrelated           0           0           0           1
leaning             0           0           0           1       i, j
...
ancestor, strong    0           0.5         0           1       j
...
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.evidence.priors import HIDDEN_SHARE, ONE_WEAK, STRONG, WEAK


@dataclass(frozen=True)
class Component:
    """Scales of the three statistics under a hypothesis, and the component's weight.

    Parameters
    ----------
    qq, qc, cq : float
        Standard deviation that the hypothesis allows ⟨q_i, q_j⟩, ⟨q_i, c_j⟩ and ⟨c_i, q_j⟩, the
        last two in units of the lengths of c_j and of c_i.
    weight : float
        A component of weight zero is left out.
    """

    qq: float = 0.0
    qc: float = 0.0
    cq: float = 0.0
    weight: float = 1.0

    def mirrored(self) -> Component:
        """The component of the pair (j, i)."""
        return Component(self.qq, self.cq, self.qc, self.weight)


Meaning = Literal["unrelated", "leaning", "ancestor", "descendant", "district"]
_MIRROR: dict[Meaning, Meaning] = {"ancestor": "descendant", "descendant": "ancestor"}


@dataclass(frozen=True)
class Hypothesis:
    """One thing that may be true of the pair (i, j)."""

    name: str
    # What it says: i is an ancestor of j, j is one of i, neither, or the question stays open (same
    # district). Several rows may have one meaning, such as one per effect scale.
    meaning: Meaning
    components: tuple[Component, ...]
    # Weight of the row among those of its meaning when the readings of a target are compared. The
    # four meanings (unrelated, either direction, same district) have a quarter each.
    prior: float = 1.0
    scale: float | None = None  # the effect scale of an ancestor row
    free: tuple[str, ...] = ()  # "i", "j": readings with c = 0 of these targets are left out

    def mirrored(self) -> Hypothesis:
        """The same statement about the pair (j, i)."""
        meaning = _MIRROR.get(self.meaning, self.meaning)
        return replace(
            self,
            name=self.name.replace(self.meaning, meaning),
            meaning=meaning,
            components=tuple(c.mirrored() for c in self.components),
            free=tuple({"i": "j", "j": "i"}[x] for x in self.free),
        )


@dataclass(frozen=True)
class Hypotheses:
    """A table of hypotheses; the first row is the one that all others are compared with."""

    rows: tuple[Hypothesis, ...]

    def __post_init__(self) -> None:
        names = [row.name for row in self.rows]
        if len(set(names)) < len(names):
            raise ValueError(f"two hypotheses have one name: {', '.join(names)}")

    def plus(self, *rows: Hypothesis) -> Hypotheses:
        """The table with further rows; an ancestor row brings its mirror image along."""
        mirrored = (row.mirrored() for row in rows if row.meaning == "ancestor")
        return replace(self, rows=(*self.rows, *rows, *mirrored))

    def without(self, meaning: Meaning) -> Hypotheses:
        """The table in which hypotheses of this meaning are impossible."""
        rows = (replace(r, components=()) if r.meaning == meaning else r for r in self.rows)
        return replace(self, rows=tuple(rows))

    def where(self, meaning: Meaning) -> IntArray:
        """Positions of the rows with this meaning."""
        return np.flatnonzero([row.meaning == meaning for row in self.rows])

    @cached_property
    def scales(self) -> tuple[float, ...]:
        """Effect scales of the ancestor rows."""
        return tuple(row.scale for row in self.rows if row.meaning == "ancestor" and row.scale)

    @cached_property
    def mirror(self) -> IntArray:
        """Position of each row's mirror image; its own if the row is symmetric."""
        names = [row.name for row in self.rows]
        return np.array([names.index(row.mirrored().name) for row in self.rows])

    @cached_property
    def free(self) -> BoolArray:
        """Must c_i, c_j be free? Shape (n_rows, 2)."""
        return np.array([[x in row.free for x in "ij"] for row in self.rows])

    @cached_property
    def components(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Position of the hypothesis, scales and weight of every component: (n,), (n, 3), (n,)."""
        every = [(k, c) for k, row in enumerate(self.rows) for c in row.components]
        scales = np.array([(c.qq, c.qc, c.cq) for _, c in every])
        weights = np.array([c.weight for _, c in every])
        return np.array([k for k, _ in every], dtype=np.intp), scales, weights

    @cached_property
    def priors(self) -> FloatArray:
        """Weight of each row when readings are compared; a quarter for each meaning, (n_rows,)."""
        given = np.array([row.prior for row in self.rows])
        of_meaning = [sum(given[self.where(row.meaning)]) for row in self.rows]
        share = np.divide(0.25 * given, of_meaning, out=np.zeros_like(given), where=given > 0)
        return np.asarray(share)

    def __str__(self) -> str:
        lines = [("hypothesis", "<q_i,q_j>", "<q_i,c_j>", "<c_i,q_j>", "weight", "c is free")]
        for row in self.rows:
            for n, c in enumerate(row.components):
                name, free = (row.name, ", ".join(row.free)) if n == 0 else ("", "")
                qq, qc, cq, weight = (f"{x:g}" for x in (c.qq, c.qc, c.cq, c.weight))
                lines.append((name, qq, qc, cq, weight, free))
        return "\n".join(f"{a:20}{b:12}{c:12}{d:12}{e:8}{f}".rstrip() for a, b, c, d, e, f in lines)


# A hidden cause reaches i with weight u and j with weight v. Then ⟨q_i, q_j⟩ goes with uv,
# ⟨q_i, c_j⟩ with u and ⟨c_i, q_j⟩ with v. If v is small, one statistic is large and the others are
# tiny, as under ancestry: that case has components of its own each way. A district also joins
# targets without any common cause, through a third that shares one with either: their statistics
# are products and small, but with many rows they are seen. A target with a spouse has a second
# direction (T1), so c must be free at both.
MIDDLE, TINY, FAINT = 0.1, 0.004, 0.01

UNRELATED = Hypothesis("unrelated", "unrelated", (Component(),))
# Unrelated, and the second direction of a target that seems to have one was missed: its line leans
# towards its ancestors. It does not count when readings are
# compared; its prior comes with the assembly.
LEANING = Hypothesis("leaning", "leaning", (Component(),), prior=0.0, free=("i", "j"))


def ancestor(name: str, scale: float) -> Hypothesis:
    """i is an ancestor of j, with an effect of this scale."""
    return Hypothesis(
        f"ancestor, {name}", "ancestor", (Component(qc=scale),), scale=scale, free=("j",)
    )


DISTRICT = Hypothesis(
    "district",
    "district",
    (
        Component(0.5, 0.5, 0.5, weight=0.40),
        Component(MIDDLE, 0.5, 0.5, weight=0.30),
        Component(0.05, 0.05, 0.05, weight=0.06),
        Component(TINY, 0.5, 0.05, weight=ONE_WEAK),
        Component(TINY, 0.05, 0.5, weight=ONE_WEAK),
        Component(TINY, 0.05, FAINT, weight=0.04),
        Component(TINY, FAINT, 0.05, weight=0.04),
    ),
    free=("i", "j"),
)

HYPOTHESES = Hypotheses((UNRELATED, LEANING, DISTRICT)).plus(
    ancestor("strong", STRONG),
    ancestor("weak", WEAK),
)

# -- hard interventions ---------------------------------------------------------------------------
# If the intervention on j is hard, ⟨q_i, q_j⟩ − ⟨q_i, c_j⟩ is the effect of i on j whatever is
# hidden (T8): it takes the place of ⟨q_i, c_j⟩ (`Statistics.as_effects`), in units of the statistic
# that an effect of one standard deviation has. A hidden cause then moves ⟨q_i, q_j⟩ and no effect.
# Sizes and shares of strong and of weak hidden causes:
HIDDEN = ((0.5, 0.6), (MIDDLE, 0.4))


def hard_hypotheses(table: Hypotheses, hard_i: bool, hard_j: bool) -> Hypotheses:
    """The table for a pair whose interventions on i, on j or on both are hard.

    Rows keep their names and meanings. "District" says that a hidden cause joins the pair and that
    no target with a hard intervention has the other as its ancestor. Ancestors of such a target are
    so with a hidden cause, whose probability is `HIDDEN_SHARE`, or without.
    """
    if not (hard_i or hard_j):
        return table
    (district,) = (row for row in table.rows if row.meaning == "district")
    hidden = [(0.0, 1.0 - HIDDEN_SHARE), *((x, HIDDEN_SHARE * w) for x, w in HIDDEN)]
    if not district.components:
        hidden = [(0.0, 1.0)]
    qc, cq = (0.0 if hard else 0.5 for hard in (hard_j, hard_i))

    def components(row: Hypothesis) -> tuple[Component, ...]:
        scale = row.scale or 0.0
        if row.meaning == "district" and row.components:
            return tuple(Component(x, qc, cq, w) for x, w in HIDDEN)
        if row.meaning == "ancestor" and hard_j:
            return tuple(Component(x, scale, cq if x else 0.0, w) for x, w in hidden)
        if row.meaning == "descendant" and hard_i:
            return tuple(Component(x, qc if x else 0.0, scale, w) for x, w in hidden)
        return row.components

    rows = (replace(row, components=components(row)) for row in table.rows)
    return replace(table, rows=tuple(rows))
