"""Do the clients' lines contradict a linear system?

In a linear system the line of a target with a single direction is orthogonal to the lines of all
other targets (T2), up to what a second direction that was missed may tilt it. A client names the
labels whose lines lean further in its findings (`leaning-lines`). That happens in linear systems
too, and then the same label leans at many clients. So labels are counted, not clients: if more of a
study's labels lean than chance explains, the model does not fit. If the features of most clients
have light tails (`light-tails`), as saturation makes them, and most have such lines or regimes that
move more directions than one target explains, that says the same.

A few sites that claim leaning lines must not silence all others: the fifth of the clients that name
most labels is left out of the count.
"""

from __future__ import annotations

from collections.abc import Sequence

from scipy.special import bdtrc

from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["clients_against_linearity", "is_bent"]

LEANING = "leaning-lines"
# The finding of a client that was read without linearity.
BENT = "nonlinear-response"
# What else contradicts a linear system where the features of most clients have light tails.
LIGHT, MORE_THAN_ONE = "light-tails", "unclear-regime"
# Regimes with a second target bend the lines of others too.
SECOND = {"off-target", "several-targets"}
# Share of labels whose lines lean at some client of a sound study, and the chance of a false
# verdict about a study.
SOUND, FALSE_ALARM = 0.04, 5e-3
# Share of the clients whose word is not enough.
MINORITY = 5


def is_bent(fragment: Fragment) -> bool:
    """The client was read without linearity (T9)."""
    return any(x.check == BENT for x in fragment.findings)


def clients_against_linearity(fragments: Sequence[Fragment]) -> tuple[str, ...]:
    """The clients that contradict a linear system, if they are more than chance explains."""
    tested = [f for f in fragments if f.bayes is not None]
    checks = {f.client: {finding.check for finding in f.findings} for f in tested}
    light = sum(LIGHT in found for found in checks.values())
    both = [name for name, found in checks.items() if found & {LEANING, MORE_THAN_ONE}]
    if len(both) > 1 and 2 * min(light, len(both)) > len(tested):
        return tuple(both)
    lean = {
        f.client: {x.regime for x in f.findings if x.check == LEANING}
        for f in tested
        if not checks[f.client] & SECOND
    }
    ranked = sorted(lean, key=lambda name: len(lean[name]))
    trusted = ranked[: len(ranked) - len(tested) // MINORITY]
    labels = {label for f in tested for label in f.labels}
    leaning = set[str | None]().union(*(lean[name] for name in trusted))
    if len(leaning) < 2 or bdtrc(len(leaning) - 1, len(labels), SOUND) > FALSE_ALARM:
        return ()
    return tuple(name for name, found in checks.items() if LEANING in found)
