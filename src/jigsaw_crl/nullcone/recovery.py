"""From a client to its fragment by the null-cone method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.findings import ReadingNote
from jigsaw_crl.base.nulls import CLEAR_ERRORS, CLEARLY
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.white import White, whiten
from jigsaw_crl.evidence.effects import Effects, Sizes
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.evidence.hypotheses import HYPOTHESES
from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES, Fragment, Outcome, RankOne, Statements
from jigsaw_crl.fragment.latents import Loadings
from jigsaw_crl.nullcone.basis import constrained_functionals, orthogonal_rows
from jigsaw_crl.nullcone.district import Lines, certain
from jigsaw_crl.nullcone.effects import Revealed, read_claimed, reveal
from jigsaw_crl.nullcone.judge import spread_edge
from jigsaw_crl.nullcone.metric_free import read_metric_free
from jigsaw_crl.nullcone.nonlinear import BENT, DOUBTED, Nonlinear, read_nonlinear
from jigsaw_crl.nullcone.reading import Reading, Sight, see
from jigsaw_crl.nullcone.readings import MISFIT
from jigsaw_crl.nullcone.structure import Structure, decide

__all__ = ["Confounding", "Recovery"]

Confounding = Literal["allow", "none"]


@dataclass(frozen=True, eq=False)
class Recovery:
    """What was read from one client: its own fragment, and the one refined by the global order."""

    client: str
    labels: tuple[str, ...]
    n_samples: dict[str, int] | None
    rank_one: RankOne | None
    reading: Reading
    # Claims of "hard" that the data contradict.
    contradicted: tuple[ReadingNote, ...]
    contradicts: bool
    nonlinear: Nonlinear | None
    chance_linear: float
    metric_free: tuple[BayesFactors, Sizes] | None
    # The feature that the user named for each label (−1 for none), and the features' variances.
    named: tuple[int, ...]
    variances: FloatArray

    @classmethod
    def of(
        cls,
        client: Client,
        *,
        confounding: Confounding = "allow",
        rank_one: RankOne | None = None,
        white: White | None = None,
        sight: Sight | None = None,
        doubted: float = DOUBTED,
    ) -> Recovery:
        """Read a client, for the options of `recover_fragment`.

        Parameters
        ----------
        white, sight : White and Sight, optional
            The client, whitened by its control, and what was seen of it before.
        doubted : float
            Where effects run both ways, or means do not fit: the chance of the misfits to a linear
            system below which the client is read without linearity.
        """
        possible = HYPOTHESES if confounding == "allow" else HYPOTHESES.without("district")
        hard = np.array([label in client.hard for label in client.labels])
        given = whiten(client) if white is None else white
        sight = see(given) if sight is None else sight
        reading, contradicted = read_claimed(sight, client.labels, possible, hard)
        free, bent, chance, contradicts = None, None, 1.0, False
        if hard.any():
            free = read_metric_free(given, hidden=confounding == "allow", scales=possible.scales)
            contradicted = contradicted if free is None else ()
            # A bend also makes means contradict covariances, as offsets of batches do, and moves
            # several directions, as second targets do.
            contradicts = bool(contradicted) or not reading.targets.means_fit
            contradicts |= bool(sight.second.refused.any())
            bent, chance = read_nonlinear(
                given, hard, possible.scales, contradicts=contradicts, doubted=doubted
            )
        return cls(
            client=client.name,
            labels=client.labels,
            n_samples=client.n_samples,
            rank_one=rank_one,
            reading=reading,
            named=tuple(client.sensor_of(label) for label in client.labels),
            variances=np.diagonal(client.control_second_moment()),
            contradicted=contradicted if bent is None else (),
            contradicts=contradicts and bent is None,
            nonlinear=bent,
            chance_linear=chance,
            metric_free=free if bent is None else None,
        )

    @cached_property
    def seen(self) -> BoolArray:
        """Labels with a regime that shows its target, shape (p,)."""
        if self.nonlinear is not None:
            return self.nonlinear.read
        owner = self.reading.owner[self.reading.targets.usable]
        told = np.isin(np.arange(len(self.labels)), owner)
        return told if self.metric_free is None else np.ones_like(told)

    @cached_property
    def single(self) -> BoolArray:
        """Labels whose regimes all moved a single direction, shape (p,)."""
        return self._every(self.reading.targets.single)

    @cached_property
    def mean_alone(self) -> BoolArray:
        """Labels whose regimes all moved the mean and nothing else, shape (p,)."""
        return self._every(self.reading.targets.mean_alone)

    def _every(self, flag: BoolArray) -> BoolArray:
        """Seen labels all of whose usable regimes have a flag, shape (p,)."""
        every = self.seen.copy()
        every[self.reading.owner[self.reading.targets.usable & ~flag]] = False
        return every

    @cached_property
    def not_identified(self) -> bool:
        """No target clearly moved a second direction, so no intervention tells about ancestry."""
        several = bool(self.seen.sum() > 1) and not self._otherwise
        return several and not self.reading.targets.identified and not self.settled.any()

    @cached_property
    def revealed(self) -> Revealed:
        """What hard interventions reveal, and the direction of every line."""
        return reveal(self.reading, self.named)

    @cached_property
    def settled(self) -> BoolArray:
        """`[a, d]`: a hard intervention on d settles whether a is its ancestor, shape (p, p)."""
        hard = self.reading.hard & (~self.single | self.reading.exact)
        settled = hard & self._sure & self._sure[:, None]
        np.fill_diagonal(settled, False)
        return np.asarray(settled)

    @cached_property
    def _sure(self) -> BoolArray:
        """Labels whose line is known for sure, shape (p,); in exact moments, those that are seen.

        A line that is taken for its c gives effects that no intervention had, so lines that are not
        sure say what they would if the interventions were soft. The line of a soft intervention is
        sure only if a shift shows it: as the wrong line it may have contradicted the claim.
        """
        if self.reading.exact or self.effects is None:
            return self.seen
        return np.asarray(self.revealed.known & (self.reading.hard | self.revealed.shifted))

    @cached_property
    def bayes(self) -> BayesFactors:
        """The reading's factors, without those of labels about whose ancestors nothing is said."""
        sure = self._sure & self._sure[:, None]
        factors = np.where(sure, self.reading.claimed, self.reading.factors)
        return self._bayes(factors, self.settled)

    @cached_property
    def soft(self) -> BayesFactors:
        """The factors as if every intervention were soft, for districts and blocks."""
        none = np.zeros_like(self.settled)
        return self._bayes(self.reading.factors, none) if self.reading.hard.any() else self.bayes

    def _bayes(self, factors: FloatArray, settled: BoolArray) -> BayesFactors:
        if self.nonlinear is not None:
            return self.nonlinear.bayes(self.reading.hypotheses)
        if self.metric_free is not None:
            return self.metric_free[0]
        table, single = self.reading.hypotheses, tuple(self.single.tolist())
        ancestor = factors[table.where("ancestor")]
        ancestor[:, self._unsaid & ~settled] = np.nan
        district, lean = (factors[table.where(x)][0] for x in ("district", "leaning"))
        return BayesFactors(table.scales, ancestor, district, lean, single, settled)

    def fragment(self, *, basis: bool = True) -> Fragment:
        """The client's fragment, from its own data alone, with the latent basis if `basis`."""
        structure, exact, carried = decide(self.soft), self.reading.exact, None
        if not self._otherwise:
            # What the features do when a label moves: one standard deviation of it moves them by
            # `g (S₀ − Ψ) Wᵀ u`; if its intervention is soft, one of its noise, without g.
            found, hard = self.revealed, self.reading.hard
            response = found.u @ self.reading.targets.white.carried.T
            response[~found.known] = np.nan
            share, scale = response**2 / self.variances, np.where(hard, found.g, 1.0)[:, None]
            carried = Loadings(response * scale, share, tuple((hard & found.known).tolist()))
        shares = None if self.metric_free is None else self.metric_free[1]
        if not exact and not self._otherwise:
            # Share of what changed in the column's equation that belongs to the row.
            value, error = np.where(self._unsaid & ~self.settled, np.nan, self.reading.sizes)
            shares = Sizes(np.abs(value), error)
        return Fragment(
            client=self.client,
            method="null-cone",
            labels=self.labels,
            bayes=None if exact else self.bayes,
            soft=None if exact or not self.reading.hard.any() else self.soft,
            statements=self._statements(structure) if exact else None,
            n_samples=self.n_samples,
            outcome=self._outcome(),
            basis=self._basis(structure, self.reading) if basis else None,
            hard=self.effects,
            shares=shares,
            rank_one=self.rank_one,
            carried=carried,
            **self._groups(structure),
        )

    @cached_property
    def effects(self) -> Effects | None:
        """What hard interventions reveal; None without any."""
        if self.nonlinear is not None:
            return self.nonlinear.effects()
        # Without the metric their unit, the spread of the latents, is not known.
        told = self.reading.hard.any() and self.metric_free is None
        return self.revealed.tables() if told else None

    @property
    def _otherwise(self) -> bool:
        """The reading by the null cone was replaced by another one."""
        return self.nonlinear is not None or self.metric_free is not None

    def refined(self, fragment: Fragment, order: PartialOrder[str]) -> Fragment:
        """The client's fragment with districts, blocks and basis settled by the global order.

        Its evidence and statements stay the client's own.
        """
        reading, soft = self.reading, self.soft
        if not self.reading.exact and not self._otherwise:
            ancestor = order.restrict(self.labels).matrix
            reading = reading.given(ancestor)
            soft = self._bayes(reading.factors, np.zeros_like(self.settled))
            reading = reading.given(ancestor, decide(soft, order, self.labels).same_district)
        structure = decide(soft, order, self.labels)
        return replace(fragment, basis=self._basis(structure, reading), **self._groups(structure))

    def _groups(self, structure: Structure) -> dict[str, Any]:
        """Blocks, their order and districts as fields of a fragment."""
        blocks, districts = (
            tuple(frozenset(self.labels[i] for i in group) for group in groups)
            for groups in (structure.blocks, structure.districts)
        )
        first = [b[0] for b in structure.blocks]
        above = (structure.reach & ~structure.reach.T)[np.ix_(first, first)]
        return {
            "blocks": blocks,
            "block_order": PartialOrder.from_matrix(blocks, above),
            "districts": districts,
        }

    @cached_property
    def _alike(self) -> BoolArray:
        """Labels that are roots, or whose interventions changed noise alone: they look alike."""
        default = "no-ancestor" if self.reading.exact else "unsure"
        unsure = (self.rank_one or default) == "unsure"
        return self.single & unsure & ~self.reading.hard

    @cached_property
    def _unsaid(self) -> BoolArray:
        """Labels about whose ancestors nothing is said, shape (p,)."""
        open_ = self.mean_alone | (self._alike & self.reading.exact)
        return np.asarray(open_ | self.not_identified)

    def _statements(self, structure: Structure) -> Statements:
        """What exact moments make certain, with what they show below hard interventions."""
        t = self.reading.targets
        silent, lines = ~self.seen | (not t.identified), None
        if len(self.labels) == t.white.dimension and not (silent | self.mean_alone).any():
            lines = Lines.of(self.reading)
        ancestor, groups = certain(self.soft, structure.same_district, lines)
        ancestor[silent] = CANNOT_SAY
        ancestor[:, silent | self._unsaid] = CANNOT_SAY
        # Log factors of exact moments are certain either way. "District" is no ancestry here.
        ahead = self.bayes.ancestor.max(axis=0)
        settled = self.settled & ~np.isnan(ahead)
        ancestor[settled] = NO
        ancestor[settled & (ahead > np.fmax(self.bayes.district, 0.0))] = YES
        np.fill_diagonal(ancestor, NO)
        one_of = [
            (frozenset(self.labels[a] for a in group), self.labels[d])
            for group, d in sorted(groups, key=lambda one: (one[1], sorted(one[0])))
            if not self._unsaid[d]
        ]
        return Statements(ancestor, tuple(one_of))

    def _basis(self, structure: Structure, reading: Reading) -> FloatArray:
        white, functionals = reading.targets.white, constrained_functionals(reading, structure)
        # One row per label: of several strengths, the one whose line is known best.
        order = np.argsort(reading.targets.strength, kind="stable")
        best = np.zeros(len(self.labels), dtype=np.intp)
        best[reading.owner[order]] = order
        rows = orthogonal_rows(functionals[best], structure)
        if self.nonlinear is not None:
            rows[self.nonlinear.which] = self.nonlinear.functionals
        elif reading.hard.any():
            revealed = reveal(reading, self.named)
            known = revealed.known & reading.hard
            reads = (revealed.u - revealed.c)[known]
            rows[known] = reads / np.linalg.norm(reads, axis=1, keepdims=True) @ white.W
        return rows

    @cached_property
    def unread(self) -> tuple[ReadingNote, ...]:
        """What was not used or not told, each with the measurement that decided so."""
        if self.nonlinear is not None:
            return tuple(self._bent(self.nonlinear))
        return () if self.metric_free is not None else tuple(self._notes())

    def _notes(self) -> Iterator[ReadingNote]:
        sight, targets, owner = self.reading.sight, self.reading.targets, self.reading.owner
        third, lean, labels = sight.judged.third, sight.lean(), self.labels
        if not targets.means_fit:
            yield ReadingNote(None, "batch-offset", round(targets.misfit, 2), MISFIT)
        for i in np.unique(owner[lean > CLEAR_ERRORS]).tolist():
            value = float(lean[owner == i].max())
            yield ReadingNote(labels[i], "leaning-lines", round(value, 2), CLEAR_ERRORS)
        if sight.spread > 1:
            edge = spread_edge(targets.white.dimension, len(owner))
            yield ReadingNote(None, "excess-spread", round(sight.spread, 2), edge)
        yield from self.contradicted
        for i in np.flatnonzero(self.mean_alone).tolist():
            value = float(targets.change[owner == i].max())
            yield ReadingNote(labels[i], "mean-only", round(value, 3), 1.0)
        for r in np.flatnonzero(sight.second.found).tolist():
            label, other = (labels[owner[x]] for x in (r, sight.second.regime[r]))
            yield ReadingNote(label, "off-target", round(float(third[r]), 3), 1.0, other)
        for i in np.flatnonzero(~self.seen).tolist():
            refused = (owner == i) & sight.second.refused
            if refused.any():
                value = float(third[refused].max())
                limit = CLEARLY if value > CLEARLY else 1.0
                yield ReadingNote(labels[i], "several-targets", round(value, 3), limit)
            else:
                value = float(targets.strength[owner == i].max())
                yield ReadingNote(labels[i], "weak-intervention", round(value, 3), 1.0)

    def _bent(self, read: Nonlinear) -> Iterator[ReadingNote]:
        """Labels whose responses bend, and those that peeling does not explain."""

        def exponent(probability: float) -> float:
            return round(-float(np.log10(max(probability, 1e-300))), 1)

        limit = BENT / max(int((~np.isnan(read.bends)).sum()), 1)
        # Where no misfit is clear by itself, the clearest one is named.
        clearest = max(limit, float(np.nanmin(read.bends)) * (1 + 1e-9))
        for i, label in enumerate(self.labels):
            value, left = float(read.bends[i]), float(read.unexplained[i])
            if left < limit:
                yield ReadingNote(label, "several-targets", exponent(left), exponent(limit))
            elif value < clearest:
                yield ReadingNote(label, "nonlinear-response", exponent(value), exponent(clearest))
            elif not read.read[i]:
                strength = float(self.reading.targets.strength[self.reading.owner == i].max())
                yield ReadingNote(label, "no-shift", round(strength, 3), 1.0)

    def _outcome(self) -> Outcome:
        if self.metric_free is not None:
            return Outcome(
                "ok",
                "recovered; there are too few features to tell the noise of the sensors, so that "
                "ancestry is read from means and from changes of the covariance alone, and no "
                "effects are given",
                "Add sensors: with three features more than labels the noise can be estimated. If "
                "it is known, say so (sensor_noise). If nothing is hidden from this client, say "
                "so too (confounding='none').",
            )
        if self.not_identified:
            return Outcome(
                "not-identified",
                "No regime shows how its target depends on its ancestors, as when interventions "
                "change noise or mean alone, or regimes have too few rows: ancestry is not "
                "identified, and no ancestor is stated.",
                "Use interventions that change how the target depends on its parents, or take more "
                "rows.",
            )

        def named(which: BoolArray) -> str:
            names = [label for label, k in zip(self.labels, which, strict=True) if k]
            return f"{', '.join(names[:8])}{' …' if len(names) > 8 else ''}"

        if not self.seen.all():
            return Outcome(
                "partial",
                f"Nothing is said about {named(~self.seen)}: the regime is too weak to see or "
                "moved several targets.",
                "See the findings.",
            )
        parts, remedy, single = [], "", self._alike & ~self.mean_alone
        if self.mean_alone.any():
            parts.append(
                f"the interventions on {named(self.mean_alone)} moved the mean and nothing else, "
                "so nothing is said about their ancestors"
            )
            remedy = "Use interventions that change how the target depends on its parents."
        if single.any():
            parts.append(f"one direction moved for {named(single)}, whose ancestors stay open")
            remedy = remedy or (
                "A label without ancestors and an intervention on noise alone look alike. If "
                "every intervention changes how its target depends on its causes, say so: "
                "rank_one='no-ancestor' (--rank-one no-ancestor)."
            )
        return Outcome("ok", f"recovered; {'; '.join(parts)}", remedy) if parts else Outcome()
