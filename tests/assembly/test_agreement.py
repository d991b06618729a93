"""Sites of which some have an effect and others lack it are tested for and named."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from jigsaw_crl.assembly import dissent
from jigsaw_crl.assembly.conclusion import conclude
from jigsaw_crl.assembly.evidence import Evidence
from jigsaw_crl.assembly.panel import Use, read_fragments
from jigsaw_crl.assembly.verdict import SURE

from .clients import weighs


def says(name, factor, labels=("pump", "valve")):
    """A site that says this of the first label's effect on the second, and nothing else."""
    ancestor = np.zeros((2, len(labels), len(labels)))
    ancestor[0, 0, 1] = factor
    return weighs(name, labels, ancestor, np.full(ancestor.shape[1:], -3.0))


def evidence_of(fragments):
    panel = read_fragments(fragments)
    return Evidence.heard(panel, Use.all_of(panel)).without_single_directions()


def panel(*factors):
    return evidence_of([says(f"site-{i}", x) for i, x in enumerate(factors)])


def agreement(evidence):
    return expit(SURE - dissent.sites_differ(evidence))


def pairs_apart(evidence):
    return dissent.pairs_apart(evidence, dissent.sites_differ(evidence))


def test_sites_that_are_sure_of_opposite_things_do_not_agree():
    found = panel(8, 8, 8, -4, -4, -4)
    assert agreement(found)[0, 1] < 0.3
    ((a, d, having, lacking, factor),) = pairs_apart(found)
    assert (a, d) == ("pump", "valve")
    assert having == ("site-0", "site-1", "site-2")
    assert lacking == ("site-3", "site-4", "site-5")
    assert factor > 20


def test_the_factor_is_that_of_its_formula():
    x = np.array([2.0, -1.0, 3.0])
    # With no evidence about districts and one scale, what a site says is what it brings.
    share = (np.arange(20_000) + 0.5) / 20_000
    found = panel(*x)
    brought = np.array([c.evidence.ancestor[:2, 0, 1] for c in found.claims])
    each = [np.mean(np.prod(share[:, None] * np.exp(s) + 1 - share[:, None], 1)) for s in brought.T]
    one = (1 + np.mean(np.exp(brought.sum(axis=0)))) / 2
    odds = 19 * one / np.mean(each)
    assert agreement(found)[0, 1] == pytest.approx(odds / (1 + odds), rel=1e-6)


def test_a_hidden_common_cause_is_no_disagreement():
    labels = ("pump", "valve", "flow")
    cause = []
    for name in ("site-6", "site-7", "site-8"):
        f = says(name, 0.0, labels)
        ancestor = f.bayes.ancestor.copy()
        ancestor[0, 2, :2] = 8.0
        cause.append(replace(f, bayes=replace(f.bayes, ancestor=ancestor)))
    sites = [says(f"site-{i}", x) for i, x in enumerate((8, 8, 8, -4, -4, -4))]
    assert pairs_apart(evidence_of(sites))
    assert not pairs_apart(evidence_of(sites + cause))


def test_one_site_has_nothing_to_agree_with():
    assert np.isnan(agreement(panel(7.0))).all()


def test_a_result_names_the_effect_on_which_sites_differ():
    said = [says(f"site-{i}", x) for i, x in enumerate((8, 8, 8, -4, -4, -4))]
    (found,) = (f for f in conclude(said).findings if f.check == "sites-differ")
    assert "'pump' on 'valve'" in found.message
