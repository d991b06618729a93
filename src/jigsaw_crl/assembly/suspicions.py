"""What do all fragments together tell, before any order? Copies, and a system that is not linear.

Log Bayes factors are computed from rows, so two clients with rows of their own hardly ever have the
same number. Clients of which most numbers are equal have the same rows, or one of them copied the
other's fragment: one witness under several names. They count as one client. So do clients whose
shares (`Fragment.shares`) are nearer to each other than their errors allow: corrected data under a
second name, or rows of which a few were changed. Numbers that a client took from several others
make it a copy of none: most numbers of *both* must be equal, and every two clients of a group.
Which of a group counts is decided by the other clients (`weigh_clients`).

In a linear system the line of a target with a single direction is orthogonal to the lines of all
other targets (T2), up to what a second direction that was missed may tilt it. A client names lines
that lean further in its findings (`leaning-lines`); that happens in linear systems too. If the
features of most clients have light tails (`light-tails`), as saturation makes them, and most have
such lines or regimes that move more directions than one target explains, the model does not fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, triu

from jigsaw_crl.assembly.panel import Panel
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.fragment.fragment import Fragment

# -- copies ---------------------------------------------------------------------------------------

# Equal numbers that differ among themselves: fewer can be equal by chance, because fragments are
# rounded and small evidence has few values.
LEAST_EQUAL = 10
# Pairs of labels, and the mean of (s − s')² / 2e² over them, with e the smaller error of the two,
# below which the shares s of two clients come from nearly the same rows. The errors are cautious:
# the least of 59 pairs of independent samples of one site was .12, of 100 pairs of sites .17; of
# copies with 1 to 5 in 100 rows changed or added, three in four were below.
LEAST_PAIRS, NEAR = 20, 0.08


def find_copies(panel: Panel) -> tuple[tuple[int, ...], ...]:
    """Groups of two or more clients with the same evidence, by number, in order."""
    alike = {*_near(panel), *_equal(panel)}
    groups: list[list[int]] = []
    for k in sorted({k for clients in alike for k in clients}):
        # With every member, not with one of them: nobody can join two that are none.
        for group in groups:
            if all((j, k) in alike for j in group):
                group.append(k)
                break
        else:
            groups.append([k])
    return tuple(tuple(group) for group in groups if len(group) > 1)


def _equal(panel: Panel) -> set[tuple[int, int]]:
    """Pairs of clients with most numbers equal, and enough of them different from each other."""
    said = [_numbers(panel, k) for k in range(len(panel.rows))]
    count = np.array([len(numbers) for numbers in said])
    each, number = np.unique(np.concatenate(said), return_inverse=True)
    who, shape = np.repeat(np.arange(len(said)), count), (len(said), len(each))
    tells = csr_array((np.ones(len(who), dtype=np.int32), (who, number)), shape=shape)
    same = triu(tells @ tells.T, 1)
    most = 2 * same.data > np.maximum(count[same.row], count[same.col])
    pairs = zip(same.row[most].tolist(), same.col[most].tolist(), strict=True)
    return {
        (j, k)
        for j, k in pairs
        if len(np.unique(np.intersect1d(said[j], said[k]).imag)) >= LEAST_EQUAL
    }


def _near(panel: Panel) -> list[tuple[int, int]]:
    """Pairs of clients with the same labels and nearly the same shares."""
    alike: dict[bytes, list[tuple[int, FloatArray, FloatArray]]] = defaultdict(list)
    for k, rows in enumerate(panel.rows):
        if rows.shares is not None:
            alike[rows.members.tobytes()].append((k, *rows.shares))
    found = []
    for (one, s, e), (other, t, f) in (
        both for group in alike.values() for both in combinations(group, 2)
    ):
        with np.errstate(invalid="ignore", divide="ignore"):
            z = (s - t) ** 2 / (2 * np.minimum(e, f) ** 2)
        z = z[np.isfinite(z) & ~np.eye(len(z), dtype=bool)]
        if len(z) >= LEAST_PAIRS and z.mean() < NEAR:
            found.append((one, other))
    return found


def _numbers(panel: Panel, k: int) -> npt.NDArray[np.complex128]:
    """Pairs of labels (real part), and the client's log factors of the first scale; no zeros."""
    rows = panel.rows[k]
    if rows.bayes is None:
        return np.zeros(0, dtype=complex)
    x, pair = rows.bayes.ancestor[0], rows.members[:, None] * len(panel.labels) + rows.members
    told = ~np.isnan(x) & (x != 0.0) & ~np.eye(len(x), dtype=bool)
    return np.asarray(pair[told] + 1j * x[told])


# -- linearity ------------------------------------------------------------------------------------

# What contradicts a linear system where the features of most clients have light tails.
LIGHT, CURVED = "light-tails", {"leaning-lines", "unclear-regime"}


def clients_against_linearity(fragments: Sequence[Fragment]) -> tuple[str, ...]:
    """The clients that contradict a linear system, if most of them do."""
    checks = {f.client: {x.check for x in f.findings} for f in fragments if f.bayes is not None}
    light = sum(LIGHT in found for found in checks.values())
    curved = tuple(name for name, found in checks.items() if found & CURVED)
    return curved if len(curved) > 1 and 2 * min(light, len(curved)) > len(checks) else ()
