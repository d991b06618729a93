"""What may be true of a pair of targets i and j, as a table of named rows.

The data of a pair are three statistics with a known sampling covariance C:

    g = (⟨q_i, q_j⟩, ⟨q_i, c_j⟩, ⟨c_i, q_j⟩) .

A hypothesis says which of them may differ from zero, and by how much: a component with scales
`v = (v₁, v₂, v₃)` has the density `N(g; 0, C + diag(v²))`, and a hypothesis is a weighted sum of
components. A scale is a number, or a multiple of a quantity of the pair such as `SIZE_J`, the
length of c_j.

A target may be read in several ways (`mixture.Statistics`). In a reading with c_j = 0, i cannot be
an ancestor of j; hypotheses with `free="j"` use readings in which c_j is free.

To add a hypothesis, or a component of one, add a row to `HYPOTHESES`; nothing else changes.

Examples
--------
>>> from jigsaw_crl.evidence.hypotheses import HYPOTHESES
>>> print(HYPOTHESES)  # doctest: +ELLIPSIS
hypothesis          <q_i,q_j>       <q_i,c_j>       <c_i,q_j>       weight  c is free
unrelated           0               0               0               1
leaning             0               0               0               1       i, j
...
ancestor, strong    0               0.5 size_j      0               1       j
...
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.evidence.priors import HIDDEN_SHARE, ONE_WEAK, STRONG, WEAK

__all__ = [
    "HYPOTHESES",
    "UNRELATED",
    "Component",
    "Hypotheses",
    "Hypothesis",
    "Meaning",
    "Multiple",
    "hard_hypotheses",
    "quantities",
]


@dataclass(frozen=True)
class Multiple:
    """A number times a quantity of the pair, by its name in `quantities`: `0.5 * SIZE_I`."""

    factor: float
    of: str = "one"

    def __rmul__(self, factor: float) -> Multiple:
        return Multiple(factor * self.factor, self.of)

    def __str__(self) -> str:
        return f"{self.factor:g}" if self.of == "one" else f"{self.factor:g} {self.of}"

    def mirrored(self) -> Multiple:
        """The multiple of the pair (j, i)."""
        swapped = {"_i": "_j", "_j": "_i"}.get(self.of[-2:], self.of[-2:])
        return Multiple(self.factor, self.of[:-2] + swapped)


# Length of c_i and c_j. Where c does not stand out from noise, half the lower quartile of those
# that do: an ancestor's effect is then as small as it can be without being seen.
SIZE_I, SIZE_J = Multiple(1.0, "size_i"), Multiple(1.0, "size_j")
# A standardised effect of 1, of j on i and of i on j, in units of the statistic that carries it
# (T8).
UNIT_I, UNIT_J = Multiple(1.0, "unit_i"), Multiple(1.0, "unit_j")
# Standard deviation of the inner product of two unrelated directions in p dimensions, `p^(−½)`; and
# the same times either size.
APART, APART_I, APART_J = (Multiple(1.0, name) for name in ("apart", "apart_i", "apart_j"))


def quantities(
    size_i: FloatArray, size_j: FloatArray, dimension: int, ratio: FloatArray | float = 1.0
) -> dict[str, FloatArray]:
    """The quantities of each pair that rows of the table may refer to, shape (k,) each.

    From the lengths of c at either target, the number of latents and, for hard interventions (T8),
    the ratio `‖u_j − c_j‖/‖u_i − c_i‖`.
    """
    ratio = np.broadcast_to(ratio, size_i.shape)
    apart = np.full(len(size_i), dimension**-0.5)
    return {
        "unit_i": 1.0 / ratio,
        "unit_j": ratio,
        "one": np.ones_like(apart),
        "size_i": size_i,
        "size_j": size_j,
        "apart": apart,
        "apart_i": apart * size_i,
        "apart_j": apart * size_j,
    }


@dataclass(frozen=True)
class Component:
    """Scales of the three statistics under a hypothesis, and the component's weight.

    Parameters
    ----------
    qq, qc, cq : float or Multiple
        Standard deviation that the hypothesis allows ⟨q_i, q_j⟩, ⟨q_i, c_j⟩ and ⟨c_i, q_j⟩.
    weight : float or Multiple
        A component of weight zero is left out.
    """

    qq: float | Multiple = 0.0
    qc: float | Multiple = 0.0
    cq: float | Multiple = 0.0
    weight: float | Multiple = 1.0

    @property
    def multiples(self) -> tuple[Multiple, ...]:
        """The three scales and the weight."""
        given = (self.qq, self.qc, self.cq, self.weight)
        return tuple(x if isinstance(x, Multiple) else Multiple(float(x)) for x in given)

    def mirrored(self) -> Component:
        """The component of the pair (j, i)."""
        given = (self.qq, self.cq, self.qc, self.weight)
        return Component(*(x.mirrored() if isinstance(x, Multiple) else x for x in given))


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
    """A table of hypotheses; the first row is the one that all others are compared with.

    `reference` is the density that every reading is divided by: the two targets' lines are
    unrelated directions. Readings with different statistics can then be compared.
    """

    rows: tuple[Hypothesis, ...]
    reference: Component

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
    def components(self) -> tuple[tuple[int, tuple[Multiple, ...]], ...]:
        """All components with the position of their hypothesis; the reference, at −1, first."""
        own = ((k, c.multiples) for k, row in enumerate(self.rows) for c in row.components)
        return ((-1, self.reference.multiples), *own)

    @cached_property
    def priors(self) -> FloatArray:
        """Weight of each row when readings are compared; a quarter for each meaning, (n_rows,)."""
        given = np.array([row.prior for row in self.rows])
        of_meaning = [sum(given[self.where(row.meaning)]) for row in self.rows]
        share = np.divide(0.25 * given, of_meaning, out=np.zeros_like(given), where=given > 0)
        return np.asarray(share)

    def of_pairs(self, sizes: dict[str, FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Scales, shape (k, n_components, 3), and weights, shape (k, n_components), of pairs.

        `sizes` are the quantities of each pair: see `quantities`.
        """
        flat = [x for _, multiples in self.components for x in multiples]
        known = np.stack([sizes[x.of] for x in flat], axis=-1)
        all_of = (known * [x.factor for x in flat]).reshape(len(known), len(self.components), 4)
        return np.ascontiguousarray(all_of[:, :, :3]), np.ascontiguousarray(all_of[:, :, 3])

    def __str__(self) -> str:
        lines = [("hypothesis", "<q_i,q_j>", "<q_i,c_j>", "<c_i,q_j>", "weight", "c is free")]
        for row in self.rows:
            for n, component in enumerate(row.components):
                name, free = (row.name, ", ".join(row.free)) if n == 0 else ("", "")
                qq, qc, cq, weight = map(str, component.multiples)
                lines.append((name, qq, qc, cq, weight, free))
        return "\n".join(f"{a:20}{b:16}{c:16}{d:16}{e:8}{f}".rstrip() for a, b, c, d, e, f in lines)


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
        f"ancestor, {name}", "ancestor", (Component(qc=scale * SIZE_J),), scale=scale, free=("j",)
    )


DISTRICT = Hypothesis(
    "district",
    "district",
    (
        Component(0.5, 0.5 * SIZE_J, 0.5 * SIZE_I, weight=0.40),
        Component(MIDDLE, 0.5 * SIZE_J, 0.5 * SIZE_I, weight=0.30),
        Component(0.05, 0.05 * SIZE_J, 0.05 * SIZE_I, weight=0.06),
        Component(TINY, 0.5 * SIZE_J, 0.05 * SIZE_I, weight=ONE_WEAK),
        Component(TINY, 0.05 * SIZE_J, 0.5 * SIZE_I, weight=ONE_WEAK),
        Component(TINY, 0.05 * SIZE_J, FAINT * SIZE_I, weight=0.04),
        Component(TINY, FAINT * SIZE_J, 0.05 * SIZE_I, weight=0.04),
    ),
    free=("i", "j"),
)

HYPOTHESES = Hypotheses(
    (UNRELATED, LEANING, DISTRICT), reference=Component(APART, APART_J, APART_I)
).plus(
    ancestor("strong", STRONG),
    ancestor("weak", WEAK),
)

# -- hard interventions ---------------------------------------------------------------------------
# If the intervention on j is hard, ⟨q_i, q_j⟩ − ⟨q_i, c_j⟩ is the effect of i on j whatever is
# hidden (T8): it takes the place of ⟨q_i, c_j⟩ (`Statistics.as_effects`). A hidden cause then moves
# ⟨q_i, q_j⟩ and no effect. Sizes and shares of strong and of weak hidden causes:
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
    qc, cq = (0.0 if hard else 0.5 * size for hard, size in ((hard_j, SIZE_J), (hard_i, SIZE_I)))

    def components(row: Hypothesis) -> tuple[Component, ...]:
        scale = row.scale or 0.0
        if row.meaning == "district" and row.components:
            return tuple(Component(x, qc, cq, w) for x, w in HIDDEN)
        if row.meaning == "ancestor" and hard_j:
            effect = scale * UNIT_J
            return tuple(Component(x, effect, cq if x else 0.0, w) for x, w in hidden)
        if row.meaning == "descendant" and hard_i:
            effect = scale * UNIT_I
            return tuple(Component(x, qc if x else 0.0, effect, w) for x, w in hidden)
        return row.components

    rows = (replace(row, components=components(row)) for row in table.rows)
    return replace(table, rows=tuple(rows))
