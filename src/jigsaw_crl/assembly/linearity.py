"""Do the clients' lines contradict a linear system?

In a linear system the line of a target with a single direction is orthogonal to the lines of all
other targets (T2), up to what a second direction that was missed may tilt it. A client names the
labels whose lines lean further in its findings (`leaning-lines`). That happens in linear systems
too, and then the same label leans at many clients. So labels are counted, not clients: if more of a
study's labels lean than chance explains, the model does not fit: the system or the sensors are not
linear, or latents are missing from the clients' counts. `recover`, which reads the rows itself,
then withholds what the clients state about ancestors. If the features of most clients have light
tails (`light-tails`), as saturation makes them, and most have such lines or regimes that move more
directions than one target explains, that says the same. Of fragments that others sent only a note
is made: a few sites that claim leaning lines must not be able to silence all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import bdtrc

from jigsaw_crl.fragment.fragment import Fragment, Outcome

__all__ = [
    "LEANING",
    "LEANS",
    "NOT_LINEAR",
    "SOUND",
    "Lines",
    "is_bent",
    "leaning_clients",
    "more_than_chance",
    "withheld",
]

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
LEANS = (
    "the lines of more targets contradict a linear system than chance explains, so "
    "verdicts may be wrong"
)
NOT_LINEAR = (
    "the lines of the targets contradict a linear system, so nothing is stated about ancestors"
)


def leaning_clients(fragments: Iterable[Fragment]) -> tuple[str, ...]:
    """The clients that contradict a linear system if they are more than chance explains."""
    return more_than_chance(map(Lines.of, fragments))


@dataclass(frozen=True)
class Lines:
    """What one client says about its lines.

    Parameters
    ----------
    client : str
    labels : tuple of str
        Empty where the client states rather than weighs: nothing was tested.
    checks : frozenset of str
        The findings.
    leaning : frozenset of str
        Regimes whose lines lean.
    """

    client: str
    labels: tuple[str, ...]
    checks: frozenset[str]
    leaning: frozenset[str | None]

    @classmethod
    def of(cls, fragment: Fragment) -> Lines:
        found = fragment.findings
        return cls(
            fragment.client,
            fragment.labels if fragment.bayes is not None else (),
            frozenset(x.check for x in found),
            frozenset(x.regime for x in found if x.check == LEANING),
        )


def more_than_chance(lines: Iterable[Lines]) -> tuple[str, ...]:
    """The clients that contradict a linear system: see `leaning_clients`."""
    tested = light = 0
    labels, lean = set[str](), set[str | None]()
    both, leaning = [], []
    for one in lines:
        if not one.labels:
            continue
        tested += 1
        labels.update(one.labels)
        light += LIGHT in one.checks
        if one.checks & {LEANING, MORE_THAN_ONE}:
            both.append(one.client)
        if LEANING in one.checks:
            leaning.append(one.client)
        if not one.checks & SECOND:
            lean |= one.leaning
    if len(both) > 1 and 2 * min(light, len(both)) > tested:
        return tuple(both)
    if len(lean) < 2 or bdtrc(len(lean) - 1, len(labels), SOUND) > FALSE_ALARM:
        return ()
    return tuple(leaning)


def is_bent(fragment: Fragment) -> bool:
    """The client was read without linearity (T9)."""
    return any(x.check == BENT for x in fragment.findings)


def withheld(fragments: Sequence[Fragment]) -> list[Fragment]:
    """The fragments without what those from samples say about ancestors.

    What was read without linearity stays.
    """
    return [f if f.bayes is None or is_bent(f) else _withheld(f) for f in fragments]


def _withheld(fragment: Fragment) -> Fragment:
    assert fragment.bayes is not None
    nothing = np.full_like(fragment.bayes.ancestor, np.nan)
    return replace(
        fragment,
        bayes=replace(fragment.bayes, ancestor=nothing),
        outcome=Outcome(
            "not-identified",
            f"{NOT_LINEAR[0].upper()}{NOT_LINEAR[1:]}.",
            "Use hard interventions that shift the mean; or, if the sensors are not linear, "
            "transform the features so that they respond linearly; or pass n_latent if some "
            "latents have no label.",
        ),
    )
