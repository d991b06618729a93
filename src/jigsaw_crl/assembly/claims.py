"""Do the sites of a study agree with each other and with the model? Findings where not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jigsaw_crl.assembly.agreement import pairs_apart
from jigsaw_crl.assembly.effects import labels_not_hard, pool_effects
from jigsaw_crl.assembly.linearity import is_bent, leaning_clients, withheld
from jigsaw_crl.assembly.meanings import differing_labels, without_labels
from jigsaw_crl.assembly.panel import read_fragments
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.diagnostics.labels import (
    effects_apart,
    label_differs,
    not_hard_across,
    not_linear,
    sites_differ,
)
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["against_the_model", "claims_across"]


def claims_across(fragments: Iterable[Fragment]) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Labels whose interventions cannot all have been hard, and findings about labels and sites.

    Sites whose effects stand apart in many pairs are set aside first, so that one of them does not
    make the claim of all sites look wrong. In a system that is not linear, effects depend on the
    dose and so on the site.
    """
    given = list(fragments)
    effects = None if any(map(is_bent, given)) else pool_effects(read_fragments(given))
    if effects is None:
        return (), ()
    doubted = labels_not_hard(effects)
    sites = (effects_apart(site, *counts) for site, counts in effects.apart.items())
    labels = (not_hard_across(label, value) for label, value in doubted.items())
    return tuple(doubted), (*sites, *labels)


def against_the_model(
    fragments: Sequence[Fragment],
) -> tuple[list[Fragment], tuple[Finding, ...]]:
    """What all clients together say against a linear system, or against one truth for all sites.

    Returns
    -------
    fragments : list of Fragment
        Without what a client says about a label that differs there, or about any ancestors if the
        system is not linear.
    findings : tuple of Finding
    """
    leaning = leaning_clients(fragments)
    if leaning:
        return withheld(fragments), (not_linear(leaning),)
    panel = read_fragments(fragments)
    differing = differing_labels(panel)
    findings = [label_differs(*which) for which in differing]
    kept = without_labels(fragments, differing)
    if differing:
        panel = read_fragments(kept)
    findings += [sites_differ(*pair) for pair in pairs_apart(panel)]
    return kept, tuple(findings)
