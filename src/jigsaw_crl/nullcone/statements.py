"""What follows with certainty from exact moments.

Across districts ancestry is settled either way (T3). Inside a district the rules of `district` say
some of it, provided that every latent of the client is intervened on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.order import strongly_connected, transitive_closure
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES, Statements
from jigsaw_crl.nullcone.district import DistrictFacts, district_facts
from jigsaw_crl.nullcone.reading import Reading
from jigsaw_crl.nullcone.readings import ZERO
from jigsaw_crl.nullcone.structure import Structure

__all__ = ["certain_statements"]

# By how much the log factors must lead. A number that is zero by exact moments decides by 16 to 50,
# and one that is not by thousands; less is a line or an effect within rounding of another.
BY_ZERO, BY_EFFECT = 14.0, 1_000.0


def certain_statements(
    reading: Reading,
    structure: Structure,
    bayes: BayesFactors,
    labels: tuple[str, ...],
    silent: BoolArray,
    open_columns: BoolArray,
    complete: bool,
) -> Statements:
    """Statements about every ordered pair of labels.

    Parameters
    ----------
    reading : Reading
    structure : Structure
        The districts that are most probable.
    bayes : BayesFactors
        Which of its pairs are certain.
    labels : tuple of str
    silent : array of bool, shape (p,)
        Labels about which nothing is said.
    open_columns : array of bool, shape (p,)
        Labels about whose ancestors nothing is said.
    complete : bool
        Every latent of the client has a label that shows both its line and its c.
    """
    ancestor, joined = _across_districts(bayes, structure.same_district)
    one_of: list[tuple[frozenset[str], str]] = []
    spouses: set[frozenset[str]] | None = set()
    if not complete:
        spouses = None
    else:
        # What holds inside a district holds inside several together.
        for members in strongly_connected(joined):
            if len(members) == 1:
                continue
            facts = _facts(reading, members)
            if facts is None:
                spouses = None
                continue
            for a, d in facts.no:
                ancestor[members[a], members[d]] = NO
            for group, d in facts.one_of:
                if not open_columns[members[d]]:
                    names = frozenset(labels[members[a]] for a in group)
                    one_of.append((names, labels[members[d]]))
            if facts.spouses is None:
                spouses = None
            elif spouses is not None:
                spouses |= {
                    frozenset((labels[members[a]], labels[members[b]])) for a, b in facts.spouses
                }
    ancestor[silent] = CANNOT_SAY
    ancestor[:, open_columns] = CANNOT_SAY
    np.fill_diagonal(ancestor, NO)
    one_of = sorted(one_of, key=lambda item: (item[1], len(item[0]), sorted(item[0])))
    return Statements(ancestor, tuple(one_of), None if spouses is None else frozenset(spouses))


def _across_districts(
    bayes: BayesFactors, same_district: BoolArray
) -> tuple[npt.NDArray[np.int8], BoolArray]:
    """What the factors make certain about ancestry, and which labels may be of one district.

    Both have shape (p, p); the second is an equivalence relation.
    """
    ahead = bayes.ancestor.max(axis=0)
    apart = np.fmax(bayes.lean, 0.0)
    neither = np.fmax(apart, ahead.T)
    with np.errstate(invalid="ignore"):  # NaN: the client cannot say
        yes = (ahead - neither > BY_EFFECT) & (ahead - bayes.district > BY_ZERO)
        no = neither - np.fmax(ahead, bayes.district) > BY_ZERO
        known = np.abs(bayes.district - np.fmax(neither, ahead)) >= BY_ZERO
    joined = transitive_closure(same_district | ~known)
    ancestor = np.full(yes.shape, CANNOT_SAY, dtype=np.int8)
    ancestor[no] = NO
    # Inside a district, a spouse's effect passes for one's own; a zero is one there too.
    ancestor[transitive_closure(yes & ~joined)] = YES
    ancestor[same_district] = CANNOT_SAY
    return ancestor, joined


def _facts(reading: Reading, members: list[int]) -> DistrictFacts | None:
    """Facts about a district.

    The first regime of a label stands for it: exact moments of further strengths add nothing.
    """
    first = np.unique(reading.owner, return_index=True)[1]
    own, others = first[members], np.delete(first, members)
    targets, rounding = reading.targets, reading.sight.rounding
    assert rounding is not None
    two = targets.has[:, 0]
    choice = np.where(two, reading.choice.reading, 0)
    outside = targets.u[others[:, None], np.stack([choice[others], 1 - choice[others]], axis=1)]
    # A spouse moves a second direction. Where it is within rounding, it tilts the one line.
    error = rounding.error[own] + rounding.tilt[own]
    lines = targets.u[own, :ZERO], error, outside, rounding.error[others]
    return district_facts(*lines, choice[own], two[own])
