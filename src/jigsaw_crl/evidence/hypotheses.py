"""What may be true of a pair of targets i and j, as a table of named rows.

The data of a pair are three statistics with a known sampling covariance C:

    g = (⟨q_i, q_j⟩, ⟨q_i, c_j⟩, ⟨c_i, q_j⟩) .

A hypothesis says which of them may differ from zero, and by how much: a component with scales
`v = (v₁, v₂, v₃)` has the density `N(g; 0, C + diag(v²))`, and a hypothesis is a weighted sum of
components. A scale is a number, or a multiple of a quantity of the pair such as `LEAN_J`, the
largest lean that j's line can have without being seen (zero when j shows two directions).

To add a hypothesis, or a component of one, add a row to `HYPOTHESES`; nothing else changes.

Examples
--------
>>> from jigsaw_crl.evidence.hypotheses import HYPOTHESES
>>> print(HYPOTHESES)  # doctest: +ELLIPSIS
hypothesis          <q_i,q_j>       <q_i,c_j>       <c_i,q_j>       weight
unrelated           0               0               0               1
leaning             0.5 lean_both   0.5 lean_i      0.5 lean_j      1
ancestor, strong    0.5 lean_j      0.5             0.5 lean_j      1
...
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from jigsaw_crl.evidence.priors import LEANS, MISSED, SCALES, STRONG, WEAK

__all__ = [
    "HYPOTHESES",
    "UNRELATED",
    "Component",
    "Hypotheses",
    "Hypothesis",
    "Multiple",
    "Quantity",
    "quantities",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Multiple:
    """A number, or a number times a quantity of the pair."""

    factor: float
    of: str = "one"

    def __str__(self) -> str:
        return f"{self.factor:g}" if self.of == "one" else f"{self.factor:g} {self.of}"


@dataclass(frozen=True)
class Quantity:
    """A quantity of a pair, by its name in `quantities`; `0.5 * LEAN_I` is a multiple of it."""

    name: str

    def __rmul__(self, factor: float) -> Multiple:
        return Multiple(factor, self.name)


# The largest lean that the line of i, of j, or of either can have without being seen; zero for a
# target that shows two directions.
LEAN_I, LEAN_J, LEAN = Quantity("lean_i"), Quantity("lean_j"), Quantity("lean")
# The same if both show a single direction, zero otherwise.
LEAN_BOTH = Quantity("lean_both")
# One if both targets show two directions, zero otherwise.
TWO_EACH = Quantity("two_each")
# Probability that a spouse of a single-direction target was missed; zero with two directions each.
MISSED_SPOUSE = Quantity("missed_spouse")
# Probability that i (or j) has an ancestor although it shows one direction; one if it shows two.
SEEN_I, SEEN_J = Quantity("seen_i"), Quantity("seen_j")


def quantities(
    lean_i: FloatArray, lean_j: FloatArray, single_i: BoolArray, single_j: BoolArray
) -> dict[str, FloatArray]:
    """The quantities of each pair that rows of the table may refer to.

    Parameters
    ----------
    lean_i, lean_j : array, shape (k,)
        Largest lean (as a tangent) of either line that could be missed; 0 with two directions.
    single_i, single_j : array of bool, shape (k,)
        Targets that show a single direction.
    """
    lean = np.maximum(lean_i, lean_j)
    return {
        "one": np.ones_like(lean),
        "lean_i": lean_i,
        "lean_j": lean_j,
        "lean": lean,
        "lean_both": np.where(single_i & single_j, lean, 0.0),
        "two_each": np.where(single_i | single_j, 0.0, 1.0),
        "missed_spouse": np.minimum(lean, MISSED),
        "seen_i": np.where(single_i, MISSED, 1.0),
        "seen_j": np.where(single_j, MISSED, 1.0),
    }


def _multiple(value: float | Multiple) -> Multiple:
    return value if isinstance(value, Multiple) else Multiple(float(value))


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
    def scales(self) -> tuple[Multiple, Multiple, Multiple]:
        return _multiple(self.qq), _multiple(self.qc), _multiple(self.cq)

    def mirrored(self) -> Component:
        """The component of the pair (j, i)."""
        return Component(*map(_mirror, (self.qq, self.cq, self.qc, self.weight)))


def _mirror(value: float | Multiple) -> float | Multiple:
    if not isinstance(value, Multiple):
        return value
    swapped = {"_i": "_j", "_j": "_i"}.get(value.of[-2:])
    return value if swapped is None else replace(value, of=value.of[:-2] + swapped)


Meaning = Literal["unrelated", "leaning", "ancestor", "descendant", "district"]


@dataclass(frozen=True)
class Hypothesis:
    """One thing that may be true of the pair (i, j).

    Parameters
    ----------
    name : str
    meaning : {"unrelated", "leaning", "ancestor", "descendant", "district"}
        What it says: i is an ancestor of j, j is one of i, neither, or the question stays open
        (same district). Several rows may have one meaning, such as one per effect scale.
    components : tuple of Component
    prior : float or Multiple
        Weight beside the other rows when the lines of a target are chosen.
    scale : float or None
        Effect scale of an ancestor row.
    """

    name: str
    meaning: Meaning
    components: tuple[Component, ...]
    prior: float | Multiple = 1.0
    scale: float | None = None

    def mirrored(self) -> Hypothesis:
        """The same statement about the pair (j, i)."""
        return replace(
            self,
            name=self.name.replace("ancestor", "descendant"),
            meaning="descendant" if self.meaning == "ancestor" else self.meaning,
            components=tuple(c.mirrored() for c in self.components),
            prior=_mirror(self.prior),
        )


@dataclass(frozen=True)
class Hypotheses:
    """A table of hypotheses; the first row is the one that all others are compared with."""

    rows: tuple[Hypothesis, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def plus(self, *rows: Hypothesis) -> Hypotheses:
        """The table with further rows; an ancestor row brings its mirror image along."""
        more = [r for row in rows for r in ((row, row.mirrored()) if row.scale else (row,))]
        return Hypotheses((*self.rows, *more))

    def without(self, meaning: Meaning) -> Hypotheses:
        """The table in which hypotheses of this meaning are impossible."""
        return Hypotheses(
            tuple(
                replace(row, components=()) if row.meaning == meaning else row for row in self.rows
            )
        )

    def where(self, meaning: Meaning) -> IntArray:
        """Positions of the rows with this meaning."""
        return np.flatnonzero([row.meaning == meaning for row in self.rows])

    @property
    def scales(self) -> tuple[float, ...]:
        """Effect scales of the ancestor rows."""
        return tuple(row.scale for row in self.rows if row.meaning == "ancestor" and row.scale)

    @cached_property
    def mirror(self) -> IntArray:
        """Position of each row's mirror image; its own if the row is symmetric."""
        position = {row.name: k for k, row in enumerate(self.rows)}
        names = [
            row.name.replace("descendant", "ancestor")
            if row.meaning == "descendant"
            else row.mirrored().name
            for row in self.rows
        ]
        return np.array([position[name] for name in names])

    @cached_property
    def components(self) -> tuple[tuple[int, Component], ...]:
        """All components with the position of their hypothesis."""
        return tuple((k, c) for k, row in enumerate(self.rows) for c in row.components)

    def of_pairs(self, sizes: dict[str, FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scales (k, n_components, 3), weights (k, n_components) and priors (k, n_rows) of pairs.

        `sizes` are the quantities of each pair: see `quantities`.
        """

        def of(values: Iterable[float | Multiple]) -> FloatArray:
            multiples = [_multiple(value) for value in values]
            return np.stack([m.factor * sizes[m.of] for m in multiples], axis=-1)

        k = len(sizes["one"])
        flat = of(s for _, c in self.components for s in c.scales)
        return (
            np.ascontiguousarray(flat.reshape(k, len(self.components), 3)),
            of(c.weight for _, c in self.components),
            of(row.prior for row in self.rows),
        )

    def __str__(self) -> str:
        lines = [("hypothesis", "<q_i,q_j>", "<q_i,c_j>", "<c_i,q_j>", "weight")]
        for row in self.rows:
            for n, component in enumerate(row.components):
                qq, qc, cq = map(str, component.scales)
                weight = str(_multiple(component.weight))
                lines.append((row.name if n == 0 else "", qq, qc, cq, weight))
        return "\n".join(f"{a:20}{b:16}{c:16}{d:16}{e}" for a, b, c, d, e in lines)


# A hidden cause reaches i with weight u and j with weight v. Then ⟨q_i, q_j⟩ goes with uv,
# ⟨q_i, c_j⟩ with u and ⟨c_i, q_j⟩ with v. If v is small, one statistic is large and the others are
# tiny, as under ancestry: that case has a component of its own each way.
MIDDLE, TINY = 0.1, 0.004

UNRELATED = Hypothesis("unrelated", "unrelated", (Component(),), prior=0.25 * (1.0 - MISSED))
# A target with one visible direction may lean towards an ancestor that it shares with the other.
LEANING = Hypothesis(
    "leaning",
    "leaning",
    (Component(LEANS[0] * LEAN_BOTH, LEANS[0] * LEAN_I, LEANS[0] * LEAN_J),),
    prior=0.25 * MISSED,
)
# i reaches c_j. If j shows one direction, ⟨q_i, c_j⟩ does not exist and j's line leans towards i.
ANCESTOR = tuple(
    Hypothesis(
        f"ancestor, {name}",
        "ancestor",
        (Component(lean * LEAN_J, scale, lean * LEAN_J),),
        prior=0.25 / len(SCALES) * SEEN_J,
        scale=scale,
    )
    for name, scale, lean in zip(("strong", "weak"), SCALES, LEANS, strict=True)
)
DISTRICT = Hypothesis(
    "district",
    "district",
    (
        Component(STRONG, STRONG, STRONG, weight=0.40 * TWO_EACH),
        Component(MIDDLE, STRONG, STRONG, weight=0.30 * TWO_EACH),
        Component(WEAK, WEAK, WEAK, weight=0.06 * TWO_EACH),
        Component(TINY, STRONG, WEAK, weight=0.12 * TWO_EACH),
        Component(TINY, WEAK, STRONG, weight=0.12 * TWO_EACH),
        # With a single direction ⟨q_i, q_j⟩ goes with the lean that was missed.
        Component(LEANS[0] * LEAN, STRONG, STRONG, weight=0.35 * MISSED_SPOUSE),
        Component(LEANS[1] * LEAN, STRONG, STRONG, weight=0.35 * MISSED_SPOUSE),
        Component(LEANS[1] * LEAN, WEAK, WEAK, weight=0.15 * MISSED_SPOUSE),
        Component(LEANS[0] * LEAN, WEAK, WEAK, weight=0.15 * MISSED_SPOUSE),
    ),
    prior=0.25,
)

HYPOTHESES = Hypotheses(
    (UNRELATED, LEANING, *ANCESTOR, *(row.mirrored() for row in ANCESTOR), DISTRICT)
)
