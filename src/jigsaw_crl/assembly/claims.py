"""Do the sites of a study agree in what their hard interventions reveal? Findings where not."""

from __future__ import annotations

from collections.abc import Iterable

from jigsaw_crl.assembly.effects import labels_not_hard, pool_effects
from jigsaw_crl.assembly.panel import read_fragments
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.diagnostics.labels import effects_apart, not_hard_across
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["claims_across"]


def claims_across(fragments: Iterable[Fragment]) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Labels whose interventions cannot all have been hard, and findings about labels and sites.

    Sites whose effects stand apart in many pairs are set aside first, so that one of them does not
    make the claim of all sites look wrong.
    """
    effects = pool_effects(read_fragments(fragments))
    if effects is None:
        return (), ()
    doubted = labels_not_hard(effects)
    sites = (effects_apart(site, *counts) for site, counts in effects.apart.items())
    labels = (not_hard_across(label, value) for label, value in doubted.items())
    return tuple(doubted), (*sites, *labels)
