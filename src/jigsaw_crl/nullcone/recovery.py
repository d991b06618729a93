"""From a client to its fragment by the null-cone method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from jigsaw_crl.base.algebra import orthogonal_rows
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.findings import ReadingNote
from jigsaw_crl.base.nulls import CLEAR_ERRORS, CLEARLY, RARE_ALARM
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.base.text import few
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.covariates import Covariates
from jigsaw_crl.client.reduction import Reduction
from jigsaw_crl.evidence.effects import Sizes
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.evidence.hypotheses import HYPOTHESES
from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES, Fragment, Outcome, RankOne, Statements
from jigsaw_crl.fragment.latents import Loadings
from jigsaw_crl.nullcone.district import Lines, certain
from jigsaw_crl.nullcone.effects import Revealed, read_claimed, reveal
from jigsaw_crl.nullcone.judge import spread_edge
from jigsaw_crl.nullcone.metric_free import read_metric_free
from jigsaw_crl.nullcone.nonlinear import Nonlinear, read_nonlinear
from jigsaw_crl.nullcone.reading import Reading, Sight, see
from jigsaw_crl.nullcone.structure import Structure, decide, functionals

Confounding = Literal["allow", "none"]


class Told(NamedTuple):
    """What a reading tells of the labels of its client."""

    seen: BoolArray  # some regime shows the target
    single: BoolArray  # all its regimes moved a single direction
    mean_alone: BoolArray  # all its regimes moved the mean and nothing else
    alike: BoolArray  # a root, or an intervention that changed noise alone: they look alike
    unsaid: BoolArray  # nothing is said about its ancestors
    # Its line is known for sure; in exact moments, or if none is hard, it is seen. A line that is
    # taken for its c gives effects that no intervention had, so lines that are not sure say what
    # they would if the interventions were soft. The line of a soft intervention is sure only if a
    # shift shows it: as the wrong line it may have contradicted the claim.
    sure: BoolArray
    settled: BoolArray  # `[a, d]`: a hard intervention on d settles whether a is its ancestor
    # Some target clearly moved a second direction, so that interventions tell about ancestry.
    identified: bool

    @classmethod
    def of(cls, revealed: Revealed, rank_one: RankOne | None, read: BoolArray | None) -> Told:
        """What is told; `read` are the labels of the reading that replaced this one, if any did."""
        reading, linear = revealed.reading, read is None
        t, owner, hard, exact = reading.targets, reading.owner, reading.hard, reading.exact
        seen = np.isin(np.arange(len(hard)), owner[t.usable]) if read is None else read
        single, mean_alone = seen.copy(), seen.copy()
        for every, flag in ((single, t.single), (mean_alone, t.mean_alone)):
            every[owner[t.usable & ~flag]] = False
        sure = seen
        if linear and hard.any() and not exact:
            sure = revealed.known & (hard | revealed.shifted)
        settled = hard & (~single | exact) & sure & sure[:, None]
        np.fill_diagonal(settled, False)
        several = linear and seen.sum() > 1
        identified = bool(not several or t.identified or settled.any())
        default = "no-ancestor" if exact else "unsure"
        alike = single & ((rank_one or default) == "unsure") & ~hard
        unsaid = mean_alone | (alike & exact) | (not identified)
        return cls(seen, single, mean_alone, alike, unsaid, sure, settled, identified)


@dataclass(frozen=True, eq=False)
class Recovery:
    """What was read from one client: its own fragment, and the one refined by the global order."""

    client: str
    labels: tuple[str, ...]
    n_samples: Mapping[str, int] | None
    rank_one: RankOne | None
    reading: Reading
    revealed: Revealed  # what hard interventions reveal, and the direction of every line
    told: Told
    # Claims of "hard" that the data contradict.
    contradicted: tuple[ReadingNote, ...]
    contradicts: bool
    # The readings that replace that by the null cone where the system bends, or where the noise of
    # the sensors is not known; and whether one of them does.
    nonlinear: Nonlinear | None
    metric_free: tuple[BayesFactors, Sizes] | None
    replaced: bool
    chance_linear: float
    # The feature that the user named for each label (−1 for none), the features' variances, and
    # what takes functionals of the features to the columns of the table.
    named: tuple[int, ...]
    variances: FloatArray
    columns: Reduction | Covariates | None

    @classmethod
    def of(
        cls,
        client: Client,
        *,
        confounding: Confounding = "allow",
        rank_one: RankOne | None = None,
        sight: Sight | None = None,
    ) -> Recovery:
        """Read a client, for the options of `recover_fragment`.

        `sight` is what was seen of it before all clients together told that the system bends: where
        effects run both ways, or means do not fit, it is then read without linearity, whatever the
        chance of its own misfits to a linear system is.
        """
        possible = HYPOTHESES if confounding == "allow" else HYPOTHESES.without("district")
        hard = np.array([label in client.hard for label in client.labels])
        sight, doubted = (see(client.white), 0.0) if sight is None else (sight, 1.0)
        reading, contradicted = read_claimed(sight, client.labels, possible, hard)
        free, bent, chance, contradicts, read = None, None, 1.0, False, None
        if hard.any():
            white, hidden = client.white, confounding == "allow"
            free = read_metric_free(white, hidden=hidden, scales=possible.scales)
            contradicted = contradicted if free is None else ()
            # A bend also makes means contradict covariances, as offsets of batches do, and moves
            # several directions, as second targets do.
            contradicts = bool(contradicted) or not reading.targets.means_fit
            contradicts |= bool(sight.second.refused.any())
            bent, chance = read_nonlinear(
                white, hard, possible.scales, contradicts=contradicts, doubted=doubted
            )
            if bent is not None:
                free, contradicted, contradicts, read = None, (), False, bent.read
            elif free is not None:
                read = np.ones_like(hard)
        up, place = client.up, client.features.index
        named = tuple(place(up[x]) if x in up else -1 for x in client.labels)
        revealed = reveal(reading, named)
        return cls(
            client=client.name,
            labels=client.labels,
            n_samples=client.n_samples,
            rank_one=rank_one,
            reading=reading,
            revealed=revealed,
            told=Told.of(revealed, rank_one, read),
            contradicted=contradicted,
            contradicts=contradicts,
            nonlinear=bent,
            metric_free=free,
            replaced=read is not None,
            chance_linear=chance,
            named=named,
            variances=np.diagonal(client.control_second_moment),
            columns=client.reduction or client.covariates,
        )

    @cached_property
    def bayes(self) -> BayesFactors:
        """The client's evidence."""
        return self._factors(self.reading, hard=True)

    @cached_property
    def soft(self) -> BayesFactors:
        """The evidence as if every intervention were soft, for districts and blocks."""
        hard = self.reading.hard.any()
        return self._factors(self.reading, hard=False) if hard else self.bayes

    def _factors(self, reading: Reading, *, hard: bool) -> BayesFactors:
        """The factors of a reading, without those of labels about whose ancestors nothing is said.

        With what `hard` interventions add where they settle a pair, or without.
        """
        if self.nonlinear is not None:
            return self.nonlinear.bayes(reading.hypotheses)
        if self.metric_free is not None:
            return self.metric_free[0]
        table, told = reading.hypotheses, self.told
        settled = told.settled & hard
        sure = hard & told.sure & told.sure[:, None]
        factors = np.where(sure, reading.claimed, reading.factors)
        ancestor = factors[table.where("ancestor")]
        ancestor[:, told.unsaid & ~settled] = np.nan
        district, lean = (factors[table.where(x)][0] for x in ("district", "leaning"))
        single = tuple(told.single.tolist())
        return BayesFactors(table.scales, ancestor, district, lean, single, settled)

    def fragment(self, *, basis: bool = True) -> Fragment:
        """The client's fragment, from its own data alone, with the latent basis if `basis`."""
        structure, reading, found = decide(self.soft), self.reading, self.revealed
        exact, hard, carried, effects, shares = reading.exact, reading.hard, None, None, None
        if self.nonlinear is not None:
            effects = self.nonlinear.effects()
        elif self.metric_free is not None:
            # Without the metric the unit of effects, the spread of the latents, is not known.
            shares = self.metric_free[1]
        else:
            effects = found.tables() if hard.any() else None
            # What the features do when a label moves: one standard deviation of it moves them by
            # `g (S₀ − Ψ) Wᵀ u`; if its intervention is soft, one of its noise, without g.
            response = found.u @ reading.targets.white.carried.T
            response[~found.known] = np.nan
            # No share of a sensor that is constant in the control belongs to a label.
            variances = np.where(self.variances > 0, self.variances, np.inf)
            share, scale = response**2 / variances, np.where(hard, found.g, 1.0)[:, None]
            carried = Loadings(response * scale, share, tuple((hard & found.known).tolist()))
        if not (exact or self.replaced):
            # Share of what changed in the column's equation that belongs to the row.
            silent = self.told.unsaid & ~self.told.settled
            value, error = np.where(silent, np.nan, reading.sizes)
            shares = Sizes(np.abs(value), error)
        return Fragment(
            client=self.client,
            method="null-cone",
            labels=self.labels,
            bayes=None if exact else self.bayes,
            soft=None if exact or not hard.any() else self.soft,
            statements=self._statements(structure) if exact else None,
            n_samples=self.n_samples,
            outcome=self._outcome(),
            hard=effects,
            shares=shares,
            rank_one=self.rank_one,
            carried=carried,
            **self._groups(structure, reading, basis=basis),
        )

    def refined(self, fragment: Fragment, order: PartialOrder[str]) -> Fragment:
        """The client's fragment with districts, blocks and basis settled by the global order.

        Its evidence and statements stay the client's own.
        """
        reading, soft = self.reading, self.soft
        if not (reading.exact or self.replaced):
            reading = reading.given(order.restrict(self.labels).matrix)
            soft = self._factors(reading, hard=False)
        structure = decide(soft, order, self.labels)
        return replace(fragment, **self._groups(structure, reading))

    def _groups(
        self, structure: Structure, reading: Reading, *, basis: bool = True
    ) -> dict[str, Any]:
        """Blocks, their order, districts and basis as fields of a fragment."""
        blocks, districts = (
            tuple(frozenset(self.labels[i] for i in group) for group in groups)
            for groups in (structure.blocks, structure.districts)
        )
        first = [b[0] for b in structure.blocks]
        above = structure.above[np.ix_(first, first)]
        fields = {
            "blocks": blocks,
            "block_order": PartialOrder.from_matrix(blocks, above),
            "districts": districts,
        }
        if not basis:
            return fields
        # One row per label: of several strengths, the one whose line is known best.
        order = np.argsort(reading.targets.strength, kind="stable")
        best = np.zeros(len(self.labels), dtype=np.intp)
        best[reading.owner[order]] = order
        rows = functionals(reading, structure)[best]
        rows = orthogonal_rows(rows, structure.blocks, structure.above)
        if self.nonlinear is not None:
            rows[self.nonlinear.which] = self.nonlinear.functionals
        elif reading.hard.any():
            found = self.revealed if reading is self.reading else reveal(reading, self.named)
            known = found.known & reading.hard
            reads = (found.u - found.c)[known]
            white = reading.targets.white
            rows[known] = reads / np.linalg.norm(reads, axis=1, keepdims=True) @ white.W
        return {**fields, "basis": rows if self.columns is None else self.columns.to_columns(rows)}

    def _statements(self, structure: Structure) -> Statements:
        """What exact moments make certain, with what they show below hard interventions."""
        t, told = self.reading.targets, self.told
        silent, lines = ~told.seen | (not t.identified), None
        if len(self.labels) == t.white.dimension and not (silent | told.mean_alone).any():
            lines = Lines.of(self.reading)
        ancestor, groups = certain(self.soft, structure.same_district, lines)
        ancestor[silent] = CANNOT_SAY
        ancestor[:, silent | told.unsaid] = CANNOT_SAY
        # Log factors of exact moments are certain either way. "District" is no ancestry here.
        ahead = self.bayes.ancestor.max(axis=0)
        settled = told.settled & ~np.isnan(ahead)
        ancestor[settled] = NO
        ancestor[settled & (ahead > np.fmax(self.bayes.district, 0.0))] = YES
        np.fill_diagonal(ancestor, NO)
        one_of = [
            (frozenset(self.labels[a] for a in group), self.labels[d])
            for group, d in sorted(groups, key=lambda one: (one[1], sorted(one[0])))
            if not told.unsaid[d]
        ]
        return Statements(ancestor, tuple(one_of))

    @property
    def unread(self) -> Iterator[ReadingNote]:
        """What was not used or not told, each with the measurement that decided so."""
        if self.nonlinear is not None:
            yield from self._bent(self.nonlinear)
        if self.replaced:
            return
        sight, targets, owner = self.reading.sight, self.reading.targets, self.reading.owner
        third, lean, labels = sight.judged.third, sight.lean(), self.labels
        if not targets.means_fit:
            edge = round(targets.most_misfit, 2)
            yield ReadingNote(None, "batch-offset", round(targets.misfit, 2), edge)
        for i in np.unique(owner[lean > CLEAR_ERRORS]).tolist():
            value = float(lean[owner == i].max())
            yield ReadingNote(labels[i], "leaning-lines", round(value, 2), CLEAR_ERRORS)
        if sight.spread > 1:
            edge = spread_edge(targets.white.dimension, len(owner))
            yield ReadingNote(None, "excess-spread", round(sight.spread, 2), edge)
        yield from self.contradicted
        for i in np.flatnonzero(self.told.mean_alone).tolist():
            value = float(targets.change[owner == i].max())
            yield ReadingNote(labels[i], "mean-only", round(value, 3), 1.0)
        for r in np.flatnonzero(sight.second.found).tolist():
            label, other = (labels[owner[x]] for x in (r, sight.second.regime[r]))
            yield ReadingNote(label, "off-target", round(float(third[r]), 3), 1.0, other)
        for i in np.flatnonzero(~self.told.seen).tolist():
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

        limit = RARE_ALARM / max(int((~np.isnan(read.bends)).sum()), 1)
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
        told = self.told
        if not told.identified:
            return Outcome(
                "not-identified",
                "No regime shows how its target depends on its ancestors, as when interventions "
                "change noise or mean alone, or regimes have too few rows: ancestry is not "
                "identified, and no ancestor is stated.",
                "Use interventions that change how the target depends on its parents, or take more "
                "rows.",
            )
        names = np.array(self.labels, dtype=object)
        if not told.seen.all():
            return Outcome(
                "partial",
                f"Nothing is said about {few(names[~told.seen])}: the regime is too weak to see or "
                "moved several targets.",
                "See the findings.",
            )
        parts, remedy, single = [], "", told.alike & ~told.mean_alone
        if told.mean_alone.any():
            parts.append(
                f"the mean alone moved for {few(names[told.mean_alone])}, whose ancestors stay open"
            )
            remedy = "Use interventions that change how the target depends on its parents."
        if single.any():
            parts.append(f"one direction moved for {few(names[single])}, whose ancestors stay open")
            remedy = remedy or (
                "A label without ancestors and an intervention on noise alone look alike. If "
                "every intervention changes how its target depends on its causes, say so: "
                "rank_one='no-ancestor' (--rank-one no-ancestor)."
            )
        return Outcome("ok", f"recovered; {'; '.join(parts)}", remedy) if parts else Outcome()
